// Reads a hardware file: YAML to figures, and which of them cannot be.
#include "par/Base/Hardware.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/YAMLTraits.h"

using namespace par;
using llvm::StringRef;
using llvm::Twine;

namespace {

struct PeakTable {
  Hardware &hardware;
};

struct BetweenTable {
  int64_t link = 0, latency = 0;
};

/// A number, or `host`.
struct Cores {
  int64_t count = 0;
};

/// A part, `0.6`, in 1/1000.
struct Part {
  int64_t permille = 1000;
};

struct AttentionTable {
  Part rate, backward;
};

struct ConvolutionTable {
  Part rate;
};

struct KernelTable {
  Hardware &hardware;
};

struct Level {
  std::string name;
  int64_t ranks = 0, link = 0, latency = 0, share = 0;
};

struct MeasuredTable {
  MeasuredRows &rows;
};

/// A file as it is written, before its keys are compared with each other.
struct File {
  Hardware hardware;
  std::optional<std::vector<Level>> levels;
  bool old = false; ///< has a key that `levels` stands for
};

} // namespace

LLVM_YAML_IS_SEQUENCE_VECTOR(Level)
LLVM_YAML_IS_SEQUENCE_VECTOR(std::vector<std::string>)

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
struct llvm::yaml::ScalarTraits<Part> {
  static void output(const Part &part, void *, raw_ostream &os) { os << part.permille / 1000.0; }
  static StringRef input(StringRef text, void *, Part &part) {
    double value = 0;
    bool wrong = text.getAsDouble(value) || !(value >= 0.001) || value > 1;
    part.permille = wrong ? 1000 : static_cast<int64_t>(value * 1000 + 0.5);
    return wrong ? "expected a part of the peak, 0.001 to 1" : "";
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
    io.mapRequired("link", between.link);
    io.mapRequired("latency", between.latency);
    if (between.link <= 0)
      io.setError("between.link is " + Twine(between.link) + ", expected more than 0");
  }
};

template <>
struct llvm::yaml::MappingTraits<MatmulWaves> {
  static void mapping(IO &io, MatmulWaves &waves) {
    io.mapRequired("units", waves.units);
    std::optional<std::vector<int64_t>> tile;
    io.mapOptional("tile", tile);
    if (tile && tile->size() != 2) {
      io.setError("matmul.tile has " + Twine(tile->size()) + " numbers, expected rows and columns");
    } else if (tile) {
      waves.rows = tile->front();
      waves.columns = tile->back();
    }
    io.mapOptional("depth", waves.depth);
    io.mapOptional("overhead", waves.overhead);
  }
};

template <>
struct llvm::yaml::MappingTraits<AttentionTable> {
  static void mapping(IO &io, AttentionTable &attention) {
    io.mapRequired("rate", attention.rate);
    attention.backward = attention.rate;
    io.mapOptional("backward", attention.backward);
  }
};

template <>
struct llvm::yaml::MappingTraits<ConvolutionTable> {
  static void mapping(IO &io, ConvolutionTable &convolution) { io.mapRequired("rate", convolution.rate); }
};

template <>
struct llvm::yaml::MappingTraits<KernelTable> {
  static void mapping(IO &io, KernelTable &kernels) {
    io.mapOptional("flops", kernels.hardware.kernelFlops);
    io.mapOptional("overhead", kernels.hardware.kernelOverhead);
  }
};

template <>
struct llvm::yaml::MappingTraits<Level> {
  static void mapping(IO &io, Level &level) {
    io.mapRequired("name", level.name);
    io.mapOptional("ranks", level.ranks);
    io.mapRequired("link", level.link);
    io.mapRequired("latency", level.latency);
    io.mapOptional("share", level.share);
  }
};

template <>
struct llvm::yaml::MappingTraits<MeasuredTable> {
  static void mapping(IO &io, MeasuredTable &measured) {
    for (StringRef key : measuredKeys()) {
      RowTexts texts;
      io.mapOptional(key.data(), texts);
      if (llvm::Error error = readMeasured(key, texts, measured.rows))
        io.setError(llvm::toString(std::move(error)));
    }
  }
};

template <>
struct llvm::yaml::MappingTraits<File> {
  /// The keys of links and hosts, or `levels`, which stands for them.
  static void mapLinks(IO &io, File &file) {
    Hardware &hardware = file.hardware;
    io.mapOptional("levels", file.levels);
    std::optional<int64_t> link, latency, ranks;
    if (file.levels) {
      io.mapOptional("link", link);
      io.mapOptional("latency", latency);
    } else {
      io.mapRequired("link", hardware.link);
      io.mapRequired("latency", hardware.latency);
    }
    io.mapOptional("ranks", ranks);
    std::optional<BetweenTable> between;
    io.mapOptional("between", between);
    file.old = link || latency || ranks || between;
    hardware.ranks = ranks.value_or(0);
    if (between) {
      hardware.hostLink = between->link;
      hardware.hostLatency = between->latency;
    }
  }

  /// The keys of the models of matmuls, attention, convolutions and kernels.
  static void mapModels(IO &io, Hardware &hardware) {
    io.mapOptional("matmul", hardware.waves);
    AttentionTable attention;
    io.mapOptional("attention", attention);
    hardware.attention = attention.rate.permille;
    hardware.attentionBackward = attention.backward.permille;
    ConvolutionTable convolution;
    io.mapOptional("convolution", convolution);
    hardware.convolution = convolution.rate.permille;
    KernelTable kernels{hardware};
    io.mapOptional("kernels", kernels);
    MeasuredTable measured{hardware.measured};
    io.mapOptional("measured", measured);
  }

  static void mapping(IO &io, File &file) {
    Hardware &hardware = file.hardware;
    PeakTable peak{hardware};
    io.mapRequired("name", hardware.name);
    io.mapOptional("source", hardware.source);
    io.mapOptional("isa", hardware.isa);
    io.mapRequired("peak", peak);
    io.mapRequired("memory", hardware.memory);
    mapLinks(io, file);
    io.mapRequired("launch", hardware.launch);
    io.mapOptional("overlap", hardware.overlap);
    Cores cores{hardware.cores};
    io.mapOptional("cores", cores);
    hardware.cores = cores.count;
    io.mapOptional("host", hardware.host);
    io.mapOptional("capacity", hardware.capacity);
    io.mapOptional("reserve", hardware.reserve);
    mapModels(io, hardware);
  }
};

static llvm::Error hardwareError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static constexpr int64_t most = int64_t(1) << 40;

/// Fails on levels that do not hold each other, or that say nothing of a link.
static llvm::Error checkLevels(llvm::ArrayRef<Level> levels) {
  constexpr size_t maxLevels = 2 + RankGroup::maxWider;
  if (levels.empty() || levels.size() > maxLevels)
    return hardwareError("levels has " + Twine(levels.size()) + " entries, expected 1 to " + Twine(maxLevels));
  int64_t inner = 1;
  for (const Level &level : levels) {
    bool last = &level == &levels.back();
    if (level.link <= 0 || level.link > most)
      return hardwareError("level " + level.name + ": link is " + Twine(level.link) + ", expected 1 to 2^40");
    if (level.latency < 0 || level.latency > most)
      return hardwareError("level " + level.name + ": latency is " + Twine(level.latency) + ", expected 0 to 2^40");
    if (level.share < 0 || level.share >= 1000)
      return hardwareError("level " + level.name + ": share is " + Twine(level.share) +
                           ", expected 0 to 999 (of 1000 of the compute)");
    if (last && level.ranks == 0)
      break;
    if (level.ranks <= 0 || level.ranks > most || level.ranks % inner != 0 ||
        (level.ranks == inner && &level != &levels.front()))
      return hardwareError("level " + level.name + ": ranks is " + Twine(level.ranks) +
                           ", expected several times the " + Twine(inner) + " of the level within" +
                           (last ? ", or none: all" : ""));
    inner = level.ranks;
  }
  return llvm::Error::success();
}

/// The first level is within a host, the second between hosts, further ones between units of them.
static void takeLevels(llvm::ArrayRef<Level> levels, Hardware &hardware) {
  for (auto [index, level] : llvm::enumerate(levels)) {
    hardware.levels.push_back(level.name);
    if (index == 0) {
      hardware.ranks = level.ranks;
      hardware.link = level.link;
      hardware.latency = level.latency;
      hardware.share = level.share;
    } else if (index == 1) {
      hardware.hostLink = level.link;
      hardware.hostLatency = level.latency;
      hardware.hostShare = level.share;
    } else {
      hardware.wider.push_back({levels[index - 1].ranks, level.link, level.latency, level.share});
    }
  }
}

/// Fails on a figure that is out of its range.
static llvm::Error checkFigures(const Hardware &hardware) {
  constexpr int64_t maxCores = 1 << 16, maxTile = 1 << 16;
  for (auto [key, value] : {std::pair("peak.f32", hardware.f32), std::pair("peak.f64", hardware.f64),
                            std::pair("memory", hardware.memory), std::pair("link", hardware.link)})
    if (value <= 0 || value > most)
      return hardwareError(Twine(key) + " is " + Twine(value) + ", expected 1 to 2^40");
  for (auto [key, value] :
       {std::pair("latency", hardware.latency), std::pair("launch", hardware.launch),
        std::pair("ranks", hardware.ranks), std::pair("capacity", hardware.capacity),
        std::pair("reserve", hardware.reserve), std::pair("peak.bf16", hardware.bf16),
        std::pair("peak.f16", hardware.f16), std::pair("host", hardware.host),
        std::pair("between.link", hardware.hostLink), std::pair("between.latency", hardware.hostLatency),
        std::pair("kernels.flops", hardware.kernelFlops), std::pair("kernels.overhead", hardware.kernelOverhead),
        std::pair("matmul.overhead", hardware.waves.overhead)})
    if (value < 0 || value > most)
      return hardwareError(Twine(key) + " is " + Twine(value) + ", expected 0 to 2^40");
  for (auto [key, value] :
       {std::pair("matmul.units", hardware.waves.units), std::pair("matmul.tile", hardware.waves.rows),
        std::pair("matmul.tile", hardware.waves.columns), std::pair("matmul.depth", hardware.waves.depth)})
    if (value < (StringRef(key) == "matmul.units" ? 0 : 1) || value > maxTile)
      return hardwareError(Twine(key) + " is " + Twine(value) + ", expected 1 to " + Twine(maxTile));
  // The simulator keeps the time of each core.
  if (hardware.cores > maxCores)
    return hardwareError("cores is " + Twine(hardware.cores) + ", expected at most " + Twine(maxCores));
  if (hardware.hostLink && hardware.ranks == 0)
    return hardwareError("between is a link of hosts, but ranks (of a host) is 0: all ranks are on one host");
  return llvm::Error::success();
}

/// Fails on what is no name of an instruction set: plans and bundles print it.
static llvm::Error checkIsa(StringRef isa) {
  constexpr size_t maxLetters = 64;
  auto isOfName = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.'; };
  if (isa.size() <= maxLetters && llvm::all_of(isa, isOfName) && isa != "all" && isa != "native")
    return llvm::Error::success();
  return hardwareError("isa is no name of up to 64 letters, digits, '_', '-' or '.'; write one as sm_80");
}

static llvm::Error check(File &file) {
  if (llvm::Error error = checkIsa(file.hardware.isa))
    return error;
  if (file.levels && file.old)
    return hardwareError("levels says what link, latency, ranks and between say; leave those out");
  if (file.levels) {
    if (llvm::Error error = checkLevels(*file.levels))
      return error;
    takeLevels(*file.levels, file.hardware);
  }
  return checkFigures(file.hardware);
}

llvm::Expected<Hardware> Hardware::parse(StringRef text, StringRef where) {
  std::string message;
  auto keepFirst = [](const llvm::SMDiagnostic &diagnostic, void *context) {
    auto &first = *static_cast<std::string *>(context);
    if (first.empty())
      first = (Twine(diagnostic.getLineNo()) + ": " + diagnostic.getMessage()).str();
  };
  File file;
  llvm::yaml::Input input(text, nullptr, keepFirst, &message);
  input >> file;
  if (!input.error())
    if (llvm::Error error = check(file))
      message = llvm::toString(std::move(error));
  if (input.error() || !message.empty())
    return hardwareError(where + ": " + message);
  return std::move(file.hardware);
}
