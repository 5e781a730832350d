// Measures in a fixed order: each role's local work with the other ranks idle, copies and the largest rates on rank 0,
// communication, and processes beside each other. Each part has its share of time; ranks that have nothing to do wait.
#include "par/calibrate/Calibrate.h"

#include "HardwareText.h"
#include "Links.h"
#include "LocalWork.h"
#include "Wakeups.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <set>
#include <thread>
#include <unistd.h>

namespace par::calibrate {

using format::DType;

namespace {

/// Seconds of each part.
constexpr double localSeconds = 10, copySeconds = 1.5, rateSeconds = 1, linkSeconds = 15, togetherSeconds = 4,
                 wakeupSeconds = 2;
constexpr uint64_t smallestCopy = 64;
constexpr const char *referenceName = "calibrate";

class Calibration {
public:
  explicit Calibration(const Setting &setting)
      : setting(setting), control(setting.control), largest(setting.largest), manifest(setting.bundle.manifest),
        bench(setting, scratchBytes(setting.bundle, control.rank(), largest)), local(bench) {}

  std::optional<std::string> run() {
    warnOfLoad();
    for (auto part : {&Calibration::measureLocalWork, &Calibration::measureRates, &Calibration::measureAllLinks,
                      &Calibration::measureTogether}) {
      if (!control.startStep(++parts))
        return std::nullopt;
      (this->*part)();
    }
    return text();
  }

private:
  void say(const std::string &line) {
    if (control.rank() == 0)
      setting.say(line);
  }

  void warnOfLoad() {
    double load = 0;
    unsigned cores = std::thread::hardware_concurrency();
    if (getloadavg(&load, 1) == 1 && load > cores)
      say(core::format("warning: other processes use the cores (load average {} of {}): times will be too long",
                       std::round(load), cores));
  }

  uint32_t roleOf(uint32_t rank) const { return manifest.ranks[rank].role; }
  bool isFirstOfRole(uint32_t rank) const {
    for (uint32_t other = 0; other < rank; ++other)
      if (roleOf(other) == roleOf(rank))
        return false;
    return true;
  }

  /// One rank of each role after the other, the others idle.
  void measureLocalWork() {
    for (uint32_t rank = 0; rank < manifest.ranks.size(); ++rank) {
      if (!isFirstOfRole(rank))
        continue;
      say(core::format("kernels and matmuls of rank {} ({} of {} roles)", rank, roleOf(rank) + 1, manifest.roles));
      if (control.rank() == rank)
        alone = local.measure(rows, localSeconds / manifest.roles);
      control.barrier("calibrate local");
    }
  }

  /// The largest rates of memory and matmuls, and an instruction without work.
  void measureRates() {
    say("copies, launches and the largest matmul");
    if (control.rank() == 0) {
      std::byte *from = bench.scratch(), *to = bench.scratch(largest.copy);
      for (uint64_t bytes = smallestCopy; bytes <= largest.copy; bytes *= 2)
        rows.add(copyRow(false, bytes), timeOfStep(
                                            bench, [&](MadeEntry &entry) { entry.copy(to, from, bytes, bench.queue); },
                                            copySeconds / copies()));
      launchNs =
          timeOfStep(bench, [&](MadeEntry &entry) { entry.copy(to, from, 0, bench.queue); }, copySeconds / copies());
      for (uint32_t call = 0; call < bench.program.calls.size(); ++call)
        if (bench.program.calls[call].name == referenceName)
          measureReference(call);
    }
    control.barrier("calibrate rates");
  }

  double copies() const {
    double count = 1;
    for (uint64_t bytes = smallestCopy; bytes <= largest.copy; bytes *= 2)
      ++count;
    return count;
  }

  void measureReference(uint32_t call) {
    const format::Call &matmul = bench.program.calls[call];
    uint64_t bytes = static_cast<uint64_t>(matmul.m * matmul.n) * format::sizeOf(matmul.type);
    std::vector<void *> operands{bench.scratch(), bench.scratch(bytes), bench.scratch(2 * bytes)};
    format::Instruction instruction;
    instruction.op = format::Op::Call;
    instruction.call = call;
    rows.add(*rowOf(bench.program, instruction),
             timeOfStep(bench, [&](MadeEntry &entry) { entry.call(call, operands, bench.queue); }, rateSeconds));
  }

  void measureAllLinks() {
    std::vector<Link> links = linksOf(setting.bundle);
    if (!links.empty())
      say(core::format("{} kinds and sizes of communication", links.size()));
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    hosts = control.allGather("calibrate hosts", host);
    calibrate::measureLinks(bench, links, hosts, linkSeconds, rows);
    measureWakeups(bench, links, hosts, wakeupSeconds, rows);
  }

  /// 2, 4, ... processes of one host at once, at most one a core. GPUs share neither.
  void measureTogether() {
    auto most = std::min<size_t>(std::thread::hardware_concurrency(),
                                 static_cast<size_t>(std::count(hosts.begin(), hosts.end(), hosts[0])));
    for (size_t count = 2; manifest.device == "cpu" && count <= most; count *= 2) {
      say(core::format("{} processes at once", count));
      control.barrier("calibrate together");
      bool plays = control.rank() < count;
      Pass beside = plays ? local.passes(togetherSeconds) : Pass{};
      addTogether(count, beside);
      if (control.rank() == 0 && 2 * count > most)
        for (auto [computed, late] : local.spread())
          rows.put({"spread", {}, {computed}}, late);
    }
  }

  /// For each kind of work: the sum over the processes, against the sum of their roles' times before.
  void addTogether(size_t count, const Pass &beside) {
    auto passOf = [](const std::string &text) {
      Pass pass;
      size_t blank = text.find(' ');
      pass.matmul = std::stod(text.substr(0, blank));
      pass.kernel = std::stod(text.substr(blank));
      return pass;
    };
    auto gather = [&](const Pass &pass) {
      return control.allGather("calibrate", core::format("{} {}", pass.matmul, pass.kernel));
    };
    std::vector<std::string> alones = gather(alone), besides = gather(beside);
    Pass sumAlone, sumBeside;
    for (uint32_t rank = 0; rank < count; ++rank) {
      uint32_t first = 0;
      while (roleOf(first) != roleOf(rank))
        ++first;
      Pass one = passOf(alones[first]), other = passOf(besides[rank]);
      sumAlone.matmul += one.matmul, sumAlone.kernel += one.kernel;
      sumBeside.matmul += other.matmul, sumBeside.kernel += other.kernel;
    }
    if (control.rank() != 0)
      return;
    auto processes = static_cast<int64_t>(count);
    if (sumAlone.matmul > 0)
      rows.add({"together", {"matmul"}, {processes}}, 1000 * sumBeside.matmul / sumAlone.matmul);
    if (sumAlone.kernel > 0)
      rows.add({"together", {"kernel"}, {processes}}, 1000 * sumBeside.kernel / sumAlone.kernel);
  }

  std::vector<std::string> remarks() const {
    std::time_t now = std::time(nullptr);
    char date[32] = "";
    std::tm parts{};
    strftime(date, sizeof date, "%Y-%m-%d", localtime_r(&now, &parts));
    std::set<std::string> names(hosts.begin(), hosts.end());
    std::string ranks = core::format("{} ranks of {} threads on {} host{}", manifest.ranks.size(), setting.threads,
                                     names.size(), names.size() > 1 ? "s" : "");
    return {core::format("Measured by par-run --calibrate on {}.", date),
            core::format("Machine: {}, {} cores; {}; {}.", setting.device.model().name,
                         std::thread::hardware_concurrency(), ranks, setting.device.libraries()),
            core::format("Bundle: {} (model {}, plan {}).", std::filesystem::path(setting.folder).filename().string(),
                         manifest.model.name, manifest.planHash.substr(0, 6)),
            local.describe()};
  }

  std::string text() const {
    std::vector<std::string> all = control.gather("calibrate rows", rows.encode());
    if (control.rank() != 0)
      return "";
    Measured measured;
    for (const std::string &text : all)
      measured.rows.addEncoded(text);
    measured.name = setting.name;
    measured.isa = setting.device.model().isa;
    measured.remark = remarks();
    measured.launchNs = launchNs;
    measured.isGpu = manifest.device == "cuda";
    auto ofFirst = static_cast<size_t>(std::count(hosts.begin(), hosts.end(), hosts[0]));
    measured.ranksOfHost = ofFirst == hosts.size() ? 0 : static_cast<int64_t>(ofFirst);
    return hardwareText(measured);
  }

  const Setting &setting;
  comm::Control &control;
  const LargestWork largest;
  const format::Manifest &manifest;
  Bench bench;
  LocalWork local;
  uint64_t parts = 0;
  Rows rows;
  Pass alone;
  double launchNs = 0;
  std::vector<std::string> hosts;
};

} // namespace

LargestWork largestFor(const std::string &device) {
  return device == "cuda" ? LargestWork{256 << 20, 4096} : LargestWork{32 << 20, 512};
}

format::Bundle withReferences(const format::Bundle &bundle, const LargestWork &largest) {
  format::Bundle wider = bundle;
  std::vector<DType> types{DType::F32};
  for (const format::Program &program : bundle.programs)
    for (const format::Call &call : program.calls)
      if (std::find(types.begin(), types.end(), call.type) == types.end())
        types.push_back(call.type);
  for (format::Program &program : wider.programs)
    for (DType type : types) {
      format::Call call;
      call.name = referenceName;
      call.type = call.typeC = type;
      call.m = call.n = call.k = call.lda = call.ldb = call.ldc = largest.matmul;
      program.calls.push_back(call);
    }
  return wider;
}

uint64_t scratchBytes(const format::Bundle &bundle, uint32_t rank, const LargestWork &largest) {
  uint64_t bytes = scratchForLinks(linksOf(bundle), comm::tableOf(bundle));
  auto matrix = static_cast<uint64_t>(largest.matmul * largest.matmul) * sizeof(double);
  return rank == 0 ? std::max({bytes, 2 * largest.copy, 3 * matrix}) : std::max(bytes, smallScratch);
}

std::optional<std::string> measure(const Setting &setting) { return Calibration(setting).run(); }

} // namespace par::calibrate
