// Checks one sharding: every axis and its parts, every entry of the list of devices and its group.
#include "CheckSharding.h"

#include <algorithm>
#include <map>
#include <set>

namespace par::onnx {

std::unordered_map<int64_t, const DeviceGroup *> TensorSharding::groupsByKey() const {
  std::unordered_map<int64_t, const DeviceGroup *> result;
  for (const DeviceGroup &group : groups)
    result.try_emplace(group.key, &group);
  return result;
}

std::vector<std::vector<int64_t>> TensorSharding::holders() const {
  std::vector<std::vector<int64_t>> result;
  std::unordered_map<int64_t, const DeviceGroup *> byKey = groupsByKey();
  for (int64_t device : devices) {
    auto group = byKey.find(device);
    result.push_back(group != byKey.end() ? group->second->devices : std::vector<int64_t>{device});
  }
  return result;
}

namespace {

constexpr int64_t maxShards = int64_t(1) << 31;

class ShardingChecker {
public:
  ShardingChecker(const ShardingAtNode &at, std::vector<DeviceFinding> &findings)
      : at(at), sharding(at.sharding), findings(findings), place(at.place) {}

  void run();

private:
  void checkDevices();
  void checkGroups();
  void checkHolders();
  void checkAxes();
  void checkParts(const ShardedAxis &axis, const Dim *dim);
  void checkPart(const SimpleSharding &part, const Dim *dim, bool isOnly);

  void find(const std::string &what) { findings.push_back({place + what, false}); }
  void note(const std::string &what) { findings.push_back({place + what, true}); }

  const ShardingAtNode &at;
  const TensorSharding &sharding;
  std::vector<DeviceFinding> &findings;
  std::string place;
};

void ShardingChecker::checkGroups() {
  std::set<int64_t> keys, listed(sharding.devices.begin(), sharding.devices.end());
  for (const DeviceGroup &group : sharding.groups) {
    std::string name = "group " + number(group.key);
    if (!keys.insert(group.key).second)
      find(name + " stands twice in index_to_device_group_map");
    if (group.devices.empty())
      find(name + " has no devices");
    if (!listed.count(group.key))
      find(name + " holds nothing: it is not in the list of devices");
    std::set<int64_t> members;
    for (int64_t device : group.devices)
      if (!members.insert(device).second)
        find(name + " has device " + number(device) + " twice");
  }
}

/// Every number is a group or a device of the configuration, and no device holds two shards.
void ShardingChecker::checkHolders() {
  std::map<int64_t, size_t> shardOf;
  bool isCounted = at.configuration && at.configuration->devices;
  std::unordered_map<int64_t, const DeviceGroup *> byKey = sharding.groupsByKey();
  for (size_t shard = 0; shard < sharding.devices.size(); ++shard) {
    auto found = byKey.find(sharding.devices[shard]);
    const DeviceGroup *group = found == byKey.end() ? nullptr : found->second;
    std::vector<int64_t> holders = group ? group->devices : std::vector<int64_t>{sharding.devices[shard]};
    for (int64_t device : holders) {
      std::string name = "device " + number(device) + (group ? " of group " + number(group->key) : "");
      bool isKnown = device >= 0 && (!isCounted || device < *at.configuration->devices);
      if (!isKnown && device < 0 && !group)
        find(name + " is a group that index_to_device_group_map does not have");
      else if (!isKnown)
        find(name + " is none of the " +
             (isCounted ? counted(*at.configuration->devices, "device") + " of " + quoted(at.configuration->name)
                        : "devices, which count from 0"));
      auto [known, isNew] = shardOf.try_emplace(device, shard);
      if (!isNew && known->second != shard)
        find(name + " holds shard " + number(int64_t(known->second)) + " already, shard " + number(int64_t(shard)) +
             " is another one");
    }
  }
}

/// One entry of the list for every shard.
void ShardingChecker::checkDevices() {
  checkGroups();
  checkHolders();
  int64_t shards = 1;
  for (const ShardedAxis &axis : sharding.axes)
    for (const SimpleSharding &part : axis.parts)
      shards = std::min(maxShards, shards * std::clamp<int64_t>(part.shards.value_or(1), 1, maxShards));
  int64_t entries = int64_t(sharding.devices.size());
  if (entries == 0)
    find("it names no device");
  else if (shards != 1 && shards != entries) // one shard may be on all devices of the list
    find("its axes make " + number(shards) + " shards, the list of devices has " +
         (entries == 1 ? "1 entry" : number(entries) + " entries"));
}

void ShardingChecker::checkPart(const SimpleSharding &part, const Dim *dim, bool isOnly) {
  if (!part.shards)
    find("num_shards is missing");
  else if (*part.shards < 1)
    find("num_shards is " + number(*part.shards) + ", at least 1 is expected");
  if (part.symbol && part.symbol->empty())
    find("dim_param is empty");
  if (part.size && *part.size < 1)
    return find("dim_value is " + number(*part.size) + ", at least 1 is expected");
  if (isOnly && dim && part.size && dim->size >= 0 && *part.size != dim->size)
    return find("dim_value is " + number(*part.size) + ", the tensor has " + number(dim->size) + " there");
  if (isOnly && dim && part.symbol && !part.symbol->empty() && dim->size >= 0)
    find("dim_param is " + quoted(*part.symbol) + ", the tensor has " + number(dim->size) + " there");
  int64_t size = part.size ? *part.size : isOnly && dim ? dim->size : -1;
  if (size < 0 || !part.shards || *part.shards < 1)
    return;
  if (*part.shards > size)
    find(counted(*part.shards, "shard") + " of a dim of " + number(size) + ": some would be empty");
  else if (size % *part.shards)
    note(number(size) + " in " + counted(*part.shards, "shard") +
         " is not even; ONNX leaves it to a backend what the shards are, Par's have " +
         number((size - 1) / *part.shards + 1) + " each and the last ones less");
}

/// `dim`: null if the file does not have the tensor's shape.
void ShardingChecker::checkParts(const ShardedAxis &axis, const Dim *dim) {
  if (axis.parts.empty())
    return find("it says no simple_sharding");
  bool isOnly = axis.parts.size() == 1;
  bool sized = true, fits = true;
  int64_t product = 1;
  for (const SimpleSharding &part : axis.parts) {
    checkPart(part, dim, isOnly);
    bool isSized = part.size && *part.size > 0;
    sized = sized && isSized;
    fits = fits && !(isSized && __builtin_mul_overflow(product, *part.size, &product));
  }
  if (!fits)
    return find("its parts make a dim beyond 64 bits; dim_value is the size of one part");
  if (!isOnly && sized && dim && dim->size >= 0 && product != dim->size)
    find("its parts make a dim of " + number(product) + ", the tensor has " + number(dim->size) + " there");
}

void ShardingChecker::checkAxes() {
  auto shape = at.shapes.find(sharding.tensor);
  bool isRanked = shape != at.shapes.end();
  int64_t rank = isRanked ? int64_t(shape->second.size()) : 0;
  std::map<int64_t, int64_t> seen; // by the axis from the first, as it was said
  std::string outer = place;
  for (const ShardedAxis &axis : sharding.axes) {
    place = outer;
    if (!axis.axis) {
      find("a sharded_dim has no axis");
      continue;
    }
    int64_t said = *axis.axis, counted = said < 0 && isRanked ? said + rank : said;
    if (isRanked && (counted < 0 || counted >= rank)) {
      std::string range =
          rank == 0 ? ", which has no axis" : ", whose axes are " + number(-rank) + " to " + number(rank - 1);
      find("axis " + number(said) + " of a tensor of rank " + number(rank) + range);
      continue;
    }
    auto [before, isNew] = seen.try_emplace(counted, said);
    if (!isNew)
      find("axis " + number(said) + " is sharded twice" +
           (before->second != said ? ", also as " + number(before->second) : "") +
           "; say its parts in one sharded_dim");
    place = outer + "axis " + number(said) + ": ";
    checkParts(axis, isRanked ? &shape->second[counted] : nullptr);
  }
  place = outer;
}

void ShardingChecker::run() {
  if (sharding.tensor.empty())
    return find("a sharding_spec has no tensor_name");
  place += "sharding of " + quoted(sharding.tensor) + ": ";
  auto has = [&](const std::vector<std::string> &names) {
    return std::find(names.begin(), names.end(), sharding.tensor) != names.end();
  };
  if (!has(at.node.inputs) && !has(at.node.outputs))
    find("it is neither an input nor an output of the node");
  checkAxes();
  checkDevices();
}

} // namespace

void checkSharding(const ShardingAtNode &at, std::vector<DeviceFinding> &findings) {
  ShardingChecker(at, findings).run();
}

} // namespace par::onnx
