#include "SessionOptions.h"

#include <filesystem>

namespace par::core {

/// Beside the checkpoints: DIR/tuning.json for DIR/STEP.
static Tuning tuningOf(const Job &job) {
  namespace fs = std::filesystem;
  auto fileIn = [](const fs::path &folder) { return (folder / "tuning.json").string(); };
  Tuning tuning;
  tuning.times = !job.options.noTuning;
  if (!job.options.save.empty())
    tuning.read = tuning.write = fileIn(job.options.save);
  if (job.checkpoint) {
    fs::path step = job.checkpoint->store.place;
    tuning.read = fileIn((step.has_filename() ? step : step.parent_path()).parent_path());
  }
  return tuning;
}

SessionOptions sessionOptions(const Job &job) {
  int threads = job.options.threads ? job.options.threads : static_cast<int>(job.bundle.manifest.threads);
  return {threads, job.options.checkArena, job.world, job.options.comm, tuningOf(job)};
}

} // namespace par::core
