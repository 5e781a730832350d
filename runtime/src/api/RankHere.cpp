// The only rank of a bundle as a guest in the caller's process.
#include "api/RankWork.h"
#include "api/Ranks.h"
#include "comm/shared/Memory.h"
#include "par/comm/job/Alone.h"
#include "par/cpu/Matmul.h"

#include <thread>

namespace par::api {

namespace {

core::RunOptions inThisProcess(core::RunOptions options) {
  options.here = true;
  return options;
}

class RankHere final : public Ranks {
public:
  explicit RankHere(const core::RunOptions &options)
      : job(core::prepareJob(inThisProcess(options))), control(comm::controlOfGuest(job.name)),
        places(job.bundle.manifest), memory(comm::mapPrivate(places.bytes())) {
    places.lieIn(memory.bytes);
    work = std::make_unique<RankWork>(job, *control, places);
    caller = std::this_thread::get_id();
  }

  const format::Bundle &bundle() const override { return job.bundle; }
  const Exchange &exchange() const override { return places; }
  Answer start() override { return work->answer(); }

  Answer perform(const Command &command) override {
    knowThread();
    places.arrive(command.ahead.number); // read where they are
    try {
      work->prepare(command);
      return work->perform(command);
    } catch (const core::Failure &failure) {
      Answer answer = work->answer();
      answer.error = failure.what();
      answer.code = failure.exitCode();
      return answer;
    }
  }

  void end() override {
    knowThread();
    work->perform({});
    work.reset();
  }

private:
  /// Libraries keep their number of threads by the thread that calls them.
  void knowThread() {
    if (std::this_thread::get_id() == caller)
      return;
    caller = std::this_thread::get_id();
    if (job.device() == "cpu")
      cpu::setLibraryThreads(core::sessionOptions(job).threads);
  }

  core::Job job;
  std::unique_ptr<comm::Control> control;
  Exchange places;
  comm::Mapping memory; ///< of pages that are cleared only when they are used
  std::unique_ptr<RankWork> work;
  std::thread::id caller;
};

} // namespace

std::unique_ptr<Ranks> rankHere(const core::RunOptions &options) { return std::make_unique<RankHere>(options); }

} // namespace par::api
