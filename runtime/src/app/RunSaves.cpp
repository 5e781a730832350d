#include "RunSaves.h"

#include <utility>

namespace par::core {

void RunSaves::keep(const std::string &whole) {
  if (!whole.empty())
    newest = whole;
}

bool RunSaves::passed(const RunPosition &position, uint64_t every) const {
  return every > 0 && position.step / every != (position.step - job.bundle.manifest.calls) / every;
}

SaidOfSaves RunSaves::afterStep(const RunPosition &position, bool othersBusy) {
  const RunOptions &options = job.options;
  if (writer.pending() && !othersBusy)
    writes([&] { keep(writer.advance()); });
  warnOfFull();
  if (options.save.empty())
    return {};
  if (position.step == job.steps)
    return {save(position), ""};
  if (!passed(position, options.saveEvery))
    return {};
  finish();
  SaidOfSaves said;
  said.saving = begin(position);
  if (!writer.remark().empty() && !std::exchange(saidRemark, true))
    progress.say(options.save + ": note: " + writer.remark() + ": each save is written before the next step begins");
  return said;
}

std::string RunSaves::takeUp() {
  if (job.options.save.empty())
    return "";
  SaveFolder *own = control.rank() == 0 ? job.saves.get() : nullptr;
  std::string earlier;
  writes([&] {
    if (own)
      own->takeUp();
    keep(control.broadcast("newest save", own ? own->newest() : ""));
    earlier = control.broadcast("save to go on from", own ? own->newest(job.steps) : "");
  });
  if (own && !newest.empty())
    control.saved(newest);
  return earlier;
}

void RunSaves::makeAgain(const RunPosition &position) {
  const RunOptions &options = job.options;
  if (options.save.empty() || newest == options.save + "/" + std::to_string(position.step))
    return;
  if (position.step == job.steps)
    save(position);
  else if (passed(position, options.saveEvery))
    begin(position);
}

std::string RunSaves::save(const RunPosition &position) {
  writes([&] { keep(writer.save(position)); });
  return newest;
}

void RunSaves::finish() {
  writes([&] { keep(writer.finish()); });
  warnOfFull();
}

std::string RunSaves::begin(const RunPosition &position) {
  std::string saving;
  writes([&] { saving = writer.begin(position); });
  warnOfFull();
  return saving;
}

void RunSaves::warnOfFull() {
  std::string full = writer.takeFull(), error = ": error: ";
  if (full.empty() || control.rank() != 0)
    return;
  if (size_t at = full.find(error); at != std::string::npos)
    full.replace(at, error.size(), ": warning: ");
  progress.say(full + "; the run goes on without this save, and makes the next one after " +
               std::to_string(job.options.saveEvery) + " steps");
}

std::string RunSaves::whereToGoOn() const {
  return newest.empty() ? "nothing was saved before" : "the last save is " + newest + ": --resume " + newest;
}

} // namespace par::core
