// Lists of devices name no axes. A mesh is found in them by digits: the shard of a place is a sum of its coordinates
// times weights, so the borders between the coordinates are where that sum stops growing evenly.
#include "DeviceMesh.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace llvm;

namespace par {

std::optional<PlanAxes> DeviceMesh::axesOf(const ShardOfPlace &shardOf, int64_t shards) const {
  struct Digit {
    int64_t weight, stride, size;
    StringRef axis;
  };
  std::vector<Digit> digits;
  int64_t stride = 1;
  for (const auto &[axis, size] : reverse(axes)) {
    if (size > 1)
      digits.push_back({shardOf[stride], stride, size, axis});
    stride *= size;
  }
  for (auto [place, shard] : enumerate(shardOf)) {
    int64_t sum = 0;
    for (const Digit &digit : digits)
      sum += int64_t(place) / digit.stride % digit.size * digit.weight;
    if (sum != shard)
      return std::nullopt;
  }
  erase_if(digits, [](const Digit &digit) { return digit.weight == 0; });
  stable_sort(digits, [](const Digit &a, const Digit &b) { return a.weight < b.weight; });
  int64_t weight = 1;
  PlanAxes found;
  for (const Digit &digit : digits) {
    if (digit.weight != weight)
      return std::nullopt;
    weight *= digit.size;
    found.insert(found.begin(), digit.axis.str());
  }
  return weight == shards ? std::optional(found) : std::nullopt;
}

std::optional<std::vector<int64_t>> bordersOf(const ShardOfPlace &shardOf) {
  int64_t places = shardOf.size(), border = 1;
  std::vector<int64_t> borders{1};
  while (border < places) {
    int64_t weight = shardOf[border], count = 2;
    while (border * count < places && shardOf[border * count] == weight * count)
      ++count;
    border *= count;
    if (places % border)
      return std::nullopt;
    borders.push_back(border);
  }
  return borders;
}

std::optional<GroupStride> strideOf(ArrayRef<std::vector<int64_t>> groups) {
  int64_t count = groups.size(), stride = 0;
  std::map<int64_t, int64_t> groupOf;
  for (auto [number, group] : enumerate(groups))
    for (int64_t device : group)
      groupOf[device] = number;
  while (stride < int64_t(groupOf.size()) && groupOf.count(stride) && groupOf[stride] == groupOf[0])
    ++stride;
  for (auto [device, number] : groupOf)
    if (stride == 0 || device / stride % count != (number - groupOf[0] + count) % count || groupOf[0] != 0 ||
        device >= int64_t(groupOf.size()))
      return std::nullopt;
  return GroupStride{stride};
}

/// Axes of a device, each with the device's place along it.
using Coordinates = std::vector<std::pair<std::string, int64_t>>;

static std::vector<std::string> axesOf(const Coordinates &coordinates) {
  std::vector<std::string> axes;
  for (const auto &[axis, at] : coordinates)
    axes.push_back(axis);
  return axes;
}

/// The coordinates of one device, `dp=0,tp=1`, each below the number of devices.
static std::optional<Coordinates> readName(StringRef name, int64_t devices) {
  SmallVector<StringRef> parts;
  name.split(parts, ',');
  Coordinates coordinates;
  for (StringRef part : parts) {
    auto [axis, at] = part.split('=');
    int64_t coordinate = 0;
    bool isAxis =
        !axis.empty() && axis.size() <= 64 && all_of(axis, [](char c) { return isAlnum(c) || c == '_' || c == '-'; });
    if (!isAxis || at.getAsInteger(10, coordinate) || coordinate < 0 || coordinate >= devices)
      return std::nullopt;
    coordinates.push_back({axis.str(), coordinate});
  }
  return coordinates;
}

/// The axis whose coordinate is that of the group for each device; nothing if there is none.
static std::optional<size_t> axisOfGroups(ArrayRef<Coordinates> coordinates, ArrayRef<std::vector<int64_t>> groups) {
  for (size_t axis = 0; axis < coordinates.front().size(); ++axis) {
    bool parts = true;
    for (auto [number, group] : enumerate(groups))
      for (int64_t device : group)
        parts &= coordinates[device][axis].second == int64_t(number);
    if (parts)
      return axis;
  }
  return std::nullopt;
}

/// The axes by which the devices are numbered, outermost first; nothing if their numbers are of no order.
static std::optional<std::vector<std::string>> numberingOf(ArrayRef<Coordinates> coordinates, ArrayRef<int64_t> sizes) {
  std::vector<std::pair<int64_t, size_t>> strides;
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    for (auto [device, at] : enumerate(coordinates)) {
      bool isUnit = true;
      for (size_t other = 0; other < sizes.size(); ++other)
        isUnit &= at[other].second == (other == axis);
      if (isUnit)
        strides.push_back({int64_t(device), axis});
    }
  stable_sort(strides, [](const auto &a, const auto &b) { return a.first > b.first; });
  for (auto [device, at] : enumerate(coordinates)) {
    int64_t sum = 0;
    for (auto [stride, axis] : strides)
      sum += stride * at[axis].second;
    if (sum != int64_t(device))
      return std::nullopt;
  }
  std::vector<std::string> order;
  for (auto [stride, axis] : strides)
    order.push_back(coordinates.front()[axis].first);
  return order;
}

std::optional<DeviceMesh> meshOfNames(const onnx::DeviceConfiguration &configuration,
                                      ArrayRef<std::vector<int64_t>> groups) {
  std::vector<Coordinates> coordinates;
  for (const std::string &name : configuration.names) {
    auto at = readName(name, configuration.names.size());
    if (!at || (!coordinates.empty() && axesOf(*at) != axesOf(coordinates.front())))
      return std::nullopt;
    coordinates.push_back(std::move(*at));
  }
  if (coordinates.empty())
    return std::nullopt;
  std::vector<int64_t> sizes(coordinates.front().size(), 1);
  for (const auto &at : coordinates)
    for (size_t axis = 0; axis < sizes.size(); ++axis)
      sizes[axis] = std::max(sizes[axis], at[axis].second + 1);
  int64_t places = 1, devices = coordinates.size();
  for (int64_t size : sizes) // each at most the number of devices, so that the bound keeps the next step in 64 bits
    if ((places *= size) > devices)
      return std::nullopt;
  std::map<int64_t, int64_t> deviceAt; // by the place in the whole mesh
  for (auto [device, at] : enumerate(coordinates)) {
    int64_t place = 0;
    for (size_t axis = 0; axis < sizes.size(); ++axis)
      place = place * sizes[axis] + at[axis].second;
    deviceAt[place] = device;
  }
  if (places != devices || int64_t(deviceAt.size()) != places)
    return std::nullopt;
  auto order = numberingOf(coordinates, sizes);
  if (!order)
    return std::nullopt;
  DeviceMesh mesh;
  mesh.members.resize(groups.size());
  std::optional<size_t> along = groups.size() > 1 ? axisOfGroups(coordinates, groups) : std::nullopt;
  if (groups.size() > 1 && !along)
    return std::nullopt;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (axis == along) {
      mesh.pipeline = coordinates.front()[axis].first;
      mesh.pipelineAt = mesh.axes.size();
    } else if (sizes[axis] > 1) {
      mesh.axes.push_back({coordinates.front()[axis].first, sizes[axis]});
    }
  }
  std::vector<std::string> written = axesOf(coordinates.front());
  erase_if(written, [&](const std::string &axis) { return !is_contained(*order, axis); });
  if (*order != written)
    mesh.order = *order;
  for (auto [place, device] : deviceAt)
    mesh.members[along ? coordinates[device][*along].second : 0].push_back(device);
  return mesh;
}

} // namespace par
