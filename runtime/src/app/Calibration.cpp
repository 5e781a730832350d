#include "Calibration.h"

#include "Agreement.h"
#include "Progress.h"
#include "par/app/Devices.h"
#include "par/calibrate/Refinement.h"
#include "par/files/PartFile.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>
#include <unistd.h>

namespace par::core {

namespace fs = std::filesystem;

static std::string fileOf(const RunOptions &options, const std::string &bundle) {
  return options.calibrate->empty() ? bundle + ".hardware.yaml" : *options.calibrate;
}

static void refuseExisting(const std::string &path) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error)))
    throw Failure::at(path, Message::calibrationThere);
}

void checkCalibration(const RunOptions &options, const std::string &bundle) {
  std::string path = fileOf(options, bundle);
  if (!path.ends_with(".yaml"))
    throw Failure::at("par-run", Message::flagBad, "--calibrate", "a file that ends in .yaml", path)
        .exitsWith(exitUsage);
  if (options.trace.empty())
    refuseExisting(path);
  fs::path folder = fs::path(path).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    throw Failure::at(path, Message::cannotWrite, strerror(errno));
}

void widenForCalibration(Job &job) {
  if (job.device() != "cpu" || job.bundle.manifest.ranks.size() != 1 || std::thread::hardware_concurrency() < 2)
    return;
  job.bundle = calibrate::besideItself(job.bundle);
  if (job.options.n)
    job.options.n = 2;
}

void refineCalibration(const Job &job) {
  std::string path = fileOf(job.options, job.name);
  calibrate::Refined refined = calibrate::refine(job.bundle, job.name, path, job.options.trace);
  PartFile part(path);
  FileWriter(part.name(), true).write(0, std::as_bytes(std::span(refined.text)));
  part.giveName();
  if (!job.options.quiet)
    printf("calibrate: refined %s by %zu rows of %s (means of %zu steps)\n", path.c_str(), refined.rows,
           job.options.trace.c_str(), refined.steps);
}

int runCalibration(const Job &job, comm::Control &control, const calibrate::LargestWork &largest) {
  if (job.alone)
    agreeOnFlags(job, control);
  format::Bundle bundle = calibrate::withReferences(job.bundle, largest);
  SessionOptions options;
  options.threads = job.options.threads ? job.options.threads : static_cast<int>(bundle.manifest.threads);
  options.comm = job.options.comm;
  options.tuning.times = !job.options.noTuning;
  options.scratchBytes = calibrate::scratchBytes(bundle, control.rank(), largest);
  Session session(bundle, job.name, control, deviceNamed(job.device()), options);
  session.initialize(nullptr, job.seed);
  Printed printed;
  Progress progress(job, control, printed);
  progress.start();
  auto say = [&](const std::string &line) { progress.remark("calibrate: " + line); };
  std::string path = fileOf(job.options, job.name);
  std::optional<std::string> text = calibrate::measure(
      {session.onDevice(), bundle, job.name, control, largest, options.threads, fs::path(path).stem().string(), say});
  if (!text)
    return 0; // the control plane says which signal came
  PartFile part(path, control);
  if (control.rank() == 0) {
    FileWriter(part.name(), true).write(0, std::as_bytes(std::span(*text)));
    refuseExisting(path);
    part.giveName();
    say("wrote " + path);
  }
  progress.finish();
  return 0;
}

} // namespace par::core
