// Finds hardware files, and which ranks of a group share hosts and wider units.
#include "par/Base/Hardware.h"

#include "par/Base/HostCores.h"
#include "par/format/PlainFile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Threading.h"

using namespace par;
using llvm::StringRef;
using llvm::Twine;

namespace {

struct HardwareFile {
  const char *name;
  const char *text;
};

const HardwareFile shippedFiles[] = {
#include "par/Base/HardwareFiles.inc"
};

} // namespace

static llvm::Error hardwareError(StringRef where, const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), where + ": " + message);
}

/// "; did you mean h100-sxm?" of "H100"
static std::string suggestName(StringRef text) {
  auto found = llvm::find_if(
      shippedFiles, [&](const HardwareFile &file) { return StringRef(file.name).starts_with_insensitive(text); });
  return text.empty() || found == std::end(shippedFiles) ? ""
                                                         : ("; did you mean " + StringRef(found->name) + "?").str();
}

llvm::Expected<Hardware> Hardware::find(StringRef nameOrPath) {
  for (const HardwareFile &file : shippedFiles)
    if (nameOrPath == file.name)
      return parse(file.text, (nameOrPath + ".yaml").str());
  if (!nameOrPath.ends_with(".yaml"))
    return hardwareError(
        nameOrPath,
        "no hardware file of this name; there are " +
            llvm::join(llvm::map_range(shippedFiles, [](const HardwareFile &file) { return StringRef(file.name); }),
                       ", ") +
            ", or name a .yaml file" + suggestName(nameOrPath));
  auto text = format::readPlainFile(nameOrPath.str());
  if (!text)
    return hardwareError(nameOrPath, text.message());
  return parse(*text, nameOrPath);
}

Hardware Hardware::onThisHost() const {
  Hardware here = *this;
  if (cores == HostCores)
    here.cores = coresOfHost();
  return here;
}

int64_t Hardware::peak(format::DType type) const {
  switch (type) {
  case format::DType::F64:
    return f64;
  case format::DType::BF16:
    return bf16 > 0 ? bf16 : f32;
  case format::DType::F16:
    return f16 > 0 ? f16 : f32;
  default:
    return f32;
  }
}

/// How many units of that many ranks the members are on, and how many are on that with fewest.
static RankGroup::Units unitsOf(llvm::ArrayRef<int64_t> members, llvm::function_ref<int64_t(int64_t rank)> unitOf) {
  llvm::SmallDenseMap<int64_t, int64_t, 8> byUnit;
  for (int64_t rank : members)
    ++byUnit[unitOf(rank)];
  RankGroup::Units units{std::max<int64_t>(byUnit.size(), 1), static_cast<int64_t>(members.size())};
  for (auto [unit, count] : byUnit)
    units.fewest = std::min(units.fewest, count);
  return units;
}

RankGroup Hardware::groupOf(llvm::ArrayRef<int64_t> members) const {
  RankGroup group(members.size());
  RankGroup::Units hosts = unitsOf(members, [&](int64_t rank) { return hostOf(rank); });
  group.hosts = hosts.count;
  group.fewest = hosts.fewest;
  for (auto [level, link] : llvm::enumerate(wider))
    if (RankGroup::Units units = unitsOf(members, [ranks = link.ranks](int64_t rank) { return rank / ranks; });
        units.count > 1)
      group.wider[level] = units;
  return group;
}

bool RankGroup::isWiderThan(const RankGroup &other) const {
  for (size_t level = wider.size(); level-- > 0;)
    if (wider[level] != other.wider[level])
      return std::pair(wider[level].count, -wider[level].fewest) >
             std::pair(other.wider[level].count, -other.wider[level].fewest);
  return std::pair(hosts, -fewest) > std::pair(other.hosts, -other.fewest);
}

RankGroup Hardware::endsOf(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) const {
  RankGroup farthest = groupOf({from.front(), to.front()});
  auto consider = [&](int64_t one, int64_t other) {
    if (RankGroup ends = groupOf({one, other}); ends.isWiderThan(farthest))
      farthest = ends;
  };
  if (from.size() == to.size())
    for (auto [one, other] : llvm::zip(from, to))
      consider(one, other);
  else
    for (int64_t one : from)
      for (int64_t other : to)
        consider(one, other);
  return farthest;
}
