// Reads hardware files.
#include "par/Base/Hardware.h"
#include "par/format/PlainFile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/YAMLTraits.h"

using namespace par;
using llvm::StringRef;
using llvm::Twine;

namespace {

struct PeakTable {
  Hardware &hardware;
};

struct BetweenTable {
  Hardware &hardware;
};

/// A number, or `host`.
struct Cores {
  int64_t count = 0;
};

struct HardwareFile {
  const char *name;
  const char *text;
};

const HardwareFile shippedFiles[] = {
#include "par/Base/HardwareFiles.inc"
};

} // namespace

template <>
struct llvm::yaml::ScalarTraits<Cores> {
  static void output(const Cores &cores, void *, raw_ostream &os) {
    if (cores.count == Hardware::HostCores)
      os << "host";
    else
      os << cores.count;
  }
  static StringRef input(StringRef text, void *, Cores &cores) {
    if (text == "host") {
      cores.count = Hardware::HostCores;
      return "";
    }
    return text.getAsInteger(10, cores.count) || cores.count < 0 ? "expected a number of cores, or host" : "";
  }
  static QuotingType mustQuote(StringRef) { return QuotingType::None; }
};

template <>
struct llvm::yaml::MappingTraits<PeakTable> {
  static void mapping(IO &io, PeakTable &peak) {
    io.mapRequired("f32", peak.hardware.f32);
    io.mapRequired("f64", peak.hardware.f64);
    io.mapOptional("bf16", peak.hardware.bf16);
    io.mapOptional("f16", peak.hardware.f16);
  }
};

template <>
struct llvm::yaml::MappingTraits<BetweenTable> {
  static void mapping(IO &io, BetweenTable &between) {
    io.mapRequired("link", between.hardware.hostLink);
    io.mapRequired("latency", between.hardware.hostLatency);
    if (between.hardware.hostLink <= 0)
      io.setError("between.link is " + Twine(between.hardware.hostLink) + ", expected more than 0");
  }
};

template <>
struct llvm::yaml::MappingTraits<Hardware> {
  static void mapping(IO &io, Hardware &hardware) {
    PeakTable peak{hardware};
    io.mapRequired("name", hardware.name);
    io.mapRequired("peak", peak);
    io.mapRequired("memory", hardware.memory);
    io.mapRequired("link", hardware.link);
    io.mapRequired("latency", hardware.latency);
    io.mapRequired("launch", hardware.launch);
    io.mapOptional("overlap", hardware.overlap);
    Cores cores{hardware.cores};
    io.mapOptional("cores", cores);
    hardware.cores = cores.count;
    io.mapOptional("ranks", hardware.ranks);
    BetweenTable between{hardware};
    io.mapOptional("between", between);
    io.mapOptional("host", hardware.host);
    io.mapOptional("capacity", hardware.capacity);
    io.mapOptional("reserve", hardware.reserve);
  }
};

static llvm::Error hardwareError(StringRef where, const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), where + ": " + message);
}

llvm::Expected<Hardware> Hardware::parse(StringRef text, StringRef where) {
  std::string message;
  auto keepFirst = [](const llvm::SMDiagnostic &diagnostic, void *context) {
    auto &first = *static_cast<std::string *>(context);
    if (first.empty())
      first = (Twine(diagnostic.getLineNo()) + ": " + diagnostic.getMessage()).str();
  };
  Hardware hardware;
  llvm::yaml::Input input(text, nullptr, keepFirst, &message);
  input >> hardware;
  if (input.error())
    return hardwareError(where, message);
  constexpr int64_t most = int64_t(1) << 40, maxCores = 1 << 16;
  for (auto [key, value] : {std::pair("peak.f32", hardware.f32), std::pair("peak.f64", hardware.f64),
                            std::pair("memory", hardware.memory), std::pair("link", hardware.link)})
    if (value <= 0 || value > most)
      return hardwareError(where, Twine(key) + " is " + Twine(value) + ", expected 1 to 2^40");
  for (auto [key, value] :
       {std::pair("latency", hardware.latency), std::pair("launch", hardware.launch),
        std::pair("ranks", hardware.ranks), std::pair("capacity", hardware.capacity),
        std::pair("reserve", hardware.reserve), std::pair("peak.bf16", hardware.bf16),
        std::pair("peak.f16", hardware.f16), std::pair("host", hardware.host),
        std::pair("between.link", hardware.hostLink), std::pair("between.latency", hardware.hostLatency)})
    if (value < 0 || value > most)
      return hardwareError(where, Twine(key) + " is " + Twine(value) + ", expected 0 to 2^40");
  // The simulator keeps the time of each core.
  if (hardware.cores > maxCores)
    return hardwareError(where, "cores is " + Twine(hardware.cores) + ", expected at most " + Twine(maxCores));
  if (hardware.hostLink && hardware.ranks == 0)
    return hardwareError(where, "between is a link of hosts, but ranks (of a host) is 0: all ranks are on one host");
  return hardware;
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
            ", or name a .yaml file");
  auto text = format::readPlainFile(nameOrPath.str());
  if (!text)
    return hardwareError(nameOrPath, text.message());
  return parse(*text, nameOrPath);
}

Hardware Hardware::onThisHost() const {
  Hardware here = *this;
  if (cores == HostCores)
    here.cores = llvm::hardware_concurrency().compute_thread_count();
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

RankGroup Hardware::groupOf(llvm::ArrayRef<int64_t> members) const {
  RankGroup group(members.size());
  llvm::SmallDenseMap<int64_t, int64_t, 8> byHost;
  for (int64_t rank : members)
    ++byHost[hostOf(rank)];
  group.hosts = std::max<int64_t>(byHost.size(), 1);
  for (auto [host, count] : byHost)
    group.fewest = std::min(group.fewest, count);
  return group;
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
