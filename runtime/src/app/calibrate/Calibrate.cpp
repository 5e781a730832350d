// Measures in a fixed order: each role's local work alone, copies and the largest rates on rank 0, communication, and
// processes beside each other. Each part has its share of time; ranks that have nothing to do wait.
#include "Calibrate.h"

#include "HardwareText.h"
#include "Links.h"
#include "LocalWork.h"
#include "app/Agreement.h"
#include "app/Progress.h"
#include "par/app/Devices.h"
#include "par/files/PartFile.h"
#include "par/format/PlainFile.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <set>
#include <thread>
#include <unistd.h>

namespace par::core {

namespace fs = std::filesystem;
using format::DType;

std::string calibrationFile(const RunOptions &options, const std::string &bundle) {
  return options.calibrate->empty() ? bundle + ".hardware.yaml" : *options.calibrate;
}

static void refuseExisting(const std::string &path) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error)))
    throw Failure::at(path, Message::calibrationThere);
}

void checkCalibration(const RunOptions &options, const std::string &bundle) {
  std::string path = calibrationFile(options, bundle);
  if (!path.ends_with(".yaml"))
    throw Failure::at("par-run", Message::flagBad, "--calibrate", "a file that ends in .yaml", path)
        .exitsWith(exitUsage);
  refuseExisting(path);
  fs::path folder = fs::path(path).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    throw Failure::at(path, Message::cannotWrite, strerror(errno));
}

namespace {

/// Seconds of each part.
constexpr double localSeconds = 10, copySeconds = 3, rateSeconds = 1, linkSeconds = 15, togetherSeconds = 4;
constexpr uint64_t smallestCopy = 4 << 10;

struct Sizes {
  uint64_t copy = 0;  ///< bytes of the largest
  int64_t matmul = 0; ///< rows, columns and depth of the one that shows the peak
};

Sizes sizesFor(const std::string &device) { return device == "cuda" ? Sizes{256 << 20, 4096} : Sizes{32 << 20, 512}; }

/// The bundle with matmuls of a size that reaches the peak after each program's own calls.
format::Bundle withReferences(const format::Bundle &bundle) {
  format::Bundle wider = bundle;
  int64_t size = sizesFor(bundle.manifest.device).matmul;
  std::vector<DType> types{DType::F32};
  for (const format::Program &program : bundle.programs)
    for (const format::Call &call : program.calls)
      if (std::find(types.begin(), types.end(), call.type) == types.end())
        types.push_back(call.type);
  for (format::Program &program : wider.programs)
    for (DType type : types) {
      format::Call call;
      call.name = "calibrate";
      call.type = call.typeC = type;
      call.m = call.n = call.k = call.lda = call.ldb = call.ldc = size;
      program.calls.push_back(call);
    }
  return wider;
}

class Calibration {
public:
  Calibration(const Job &job, comm::Control &control)
      : job(job), control(control), wider(withReferences(job.bundle)), manifest(wider.manifest), links(linksOf(wider)),
        session(wider, job.name, control, deviceNamed(job.device()), optionsOf(job)), progress(job, control) {}

  int run() {
    if (job.alone)
      agreeOnFlags(job, control);
    progress.start();
    session.initialize(nullptr, job.seed);
    bench.emplace(session, wider, scratchBytes);
    local.emplace(*bench);
    for (auto part : {&Calibration::measureLocalWork, &Calibration::measureRates, &Calibration::measureLinks,
                      &Calibration::measureTogether}) {
      if (!control.startStep(++parts))
        return 0; // the control plane says which signal came
      (this->*part)();
    }
    write();
    progress.finish();
    return 0;
  }

private:
  SessionOptions optionsOf(const Job &job) {
    auto table = comm::tableOf(wider);
    scratchBytes = scratchForLinks(links, table);
    if (control.rank() == 0) {
      Sizes sizes = sizesFor(manifest.device);
      auto matrix = static_cast<uint64_t>(sizes.matmul * sizes.matmul) * sizeof(double);
      scratchBytes = std::max({scratchBytes, 2 * sizes.copy, 3 * matrix});
    }
    SessionOptions options;
    options.threads = job.options.threads ? job.options.threads : static_cast<int>(job.bundle.manifest.threads);
    options.comm = job.options.comm;
    options.tuning.times = !job.options.noTuning;
    options.scratchBytes = scratchBytes;
    return options;
  }

  void say(const std::string &line) {
    if (control.rank() == 0 && !job.options.quiet)
      progress.say("calibrate: " + line);
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
        alone = local->measure(rows, localSeconds / manifest.roles);
      control.barrier("calibrate local");
    }
  }

  /// The largest rates of memory and matmuls, and an instruction without work.
  void measureRates() {
    say("copies, launches and the largest matmul");
    if (control.rank() == 0) {
      Sizes sizes = sizesFor(manifest.device);
      std::byte *from = bench->scratch(), *to = bench->scratch(sizes.copy);
      for (uint64_t bytes = smallestCopy; bytes <= sizes.copy; bytes *= 2)
        rows.add(
            {"copies", {"device"}, {static_cast<int64_t>(bytes)}},
            timeOfStep(
                *bench, [&](MadeEntry &entry) { entry.copy(to, from, bytes, bench->queue); }, copySeconds / copies()));
      launchNs =
          timeOfStep(*bench, [&](MadeEntry &entry) { entry.copy(to, from, 0, bench->queue); }, copySeconds / copies());
      for (uint32_t call = firstReference(); call < bench->program.calls.size(); ++call)
        measureReference(call);
    }
    control.barrier("calibrate rates");
  }

  double copies() const {
    double count = 1;
    for (uint64_t bytes = smallestCopy; bytes <= sizesFor(manifest.device).copy; bytes *= 2)
      ++count;
    return count;
  }

  uint32_t firstReference() const {
    return static_cast<uint32_t>(job.bundle.programs[roleOf(control.rank())].calls.size());
  }

  void measureReference(uint32_t call) {
    const format::Call &matmul = bench->program.calls[call];
    uint64_t bytes = static_cast<uint64_t>(matmul.m * matmul.n) * format::sizeOf(matmul.type);
    std::vector<void *> operands{bench->scratch(), bench->scratch(bytes), bench->scratch(2 * bytes)};
    format::Instruction instruction;
    instruction.op = format::Op::Call;
    instruction.call = call;
    rows.add(*rowOf(bench->program, instruction),
             timeOfStep(*bench, [&](MadeEntry &entry) { entry.call(call, operands, bench->queue); }, rateSeconds));
  }

  void measureLinks() {
    if (!links.empty())
      say(core::format("{} kinds and sizes of communication", links.size()));
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    hosts = control.allGather("calibrate hosts", host);
    core::measureLinks(*bench, links, hosts, linkSeconds, rows);
  }

  /// 2, 4, ... processes of one host at once, at most one a core. GPUs share neither.
  void measureTogether() {
    auto most = std::min<size_t>(std::thread::hardware_concurrency(),
                                 static_cast<size_t>(std::count(hosts.begin(), hosts.end(), hosts[0])));
    for (size_t count = 2; manifest.device == "cpu" && count <= most; count *= 2) {
      say(core::format("{} processes at once", count));
      control.barrier("calibrate together");
      bool plays = control.rank() < count;
      Pass beside = plays ? local->passes(togetherSeconds) : Pass{};
      addTogether(count, beside);
    }
  }

  /// Of each part: the sum over the processes beside each other, against the sum of each one's role alone.
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
    return {core::format("Measured by par-run --calibrate on {}.", date),
            core::format("Machine: {}, {} cores; {} ranks of {} threads on {} host{}; {}.",
                         session.onDevice().machine(), std::thread::hardware_concurrency(), manifest.ranks.size(),
                         threadsOf(), names.size(), names.size() > 1 ? "s" : "", session.onDevice().libraries()),
            core::format("Bundle: {} (model {}, plan {}).", fs::path(job.name).filename().string(), manifest.model.name,
                         manifest.planHash.substr(0, 6)),
            local->describe()};
  }

  int threadsOf() const { return job.options.threads ? job.options.threads : static_cast<int>(manifest.threads); }

  void write() {
    std::vector<std::string> all = control.gather("calibrate rows", rows.encode());
    std::string path = calibrationFile(job.options, job.name);
    PartFile part(path, control);
    if (control.rank() != 0)
      return;
    Measured measured;
    for (const std::string &text : all)
      measured.rows.addEncoded(text);
    measured.name = fs::path(path).stem().string();
    measured.remark = remarks();
    measured.launchNs = launchNs;
    measured.isGpu = manifest.device == "cuda";
    size_t ofFirst = static_cast<size_t>(std::count(hosts.begin(), hosts.end(), hosts[0]));
    measured.ranksOfHost = ofFirst == hosts.size() ? 0 : static_cast<int64_t>(ofFirst);
    std::string text = hardwareText(measured);
    FileWriter(part.name(), true).write(0, std::as_bytes(std::span(text)));
    refuseExisting(path);
    part.giveName();
    say(core::format("wrote {} ({} rows)", path, measured.rows.all().size()));
  }

  const Job &job;
  comm::Control &control;
  format::Bundle wider;
  const format::Manifest &manifest;
  std::vector<Link> links;
  uint64_t scratchBytes = 0;
  Session session;
  Progress progress;
  std::optional<Bench> bench;
  std::optional<LocalWork> local;
  uint64_t parts = 0;
  Rows rows;
  Pass alone;
  double launchNs = 0;
  std::vector<std::string> hosts;
};

} // namespace

int calibrate(const Job &job, comm::Control &control) { return Calibration(job, control).run(); }

} // namespace par::core
