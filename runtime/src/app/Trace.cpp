#include "Progress.h"

#include <nlohmann/json.hpp>

namespace par::core {

using json = nlohmann::ordered_json;

static constexpr const char *schedule = "schedule"; ///< the thread of the slots

Trace::Trace(const Job &job, bool writes)
    : manifest(job.bundle.manifest), path(job.options.trace), first(job.options.traceFirst),
      last(job.options.traceLast) {
  if (writes && !path.empty())
    out.emplace(path);
}

/// "F0", "B1", "W0" of a step's run; "" outside of the schedule's loop.
static std::string slotOf(std::string_view block, int64_t microbatch) {
  for (auto [part, letter] : {std::pair(".forward", "F"), {".backward", "B"}, {".weight", "W"}})
    if (block.find(part) != std::string_view::npos)
      return letter + std::to_string(microbatch);
  return "";
}

/// The block of an instruction: "s0/train.forward" of "s0/train.forward:12".
static std::string_view blockOf(std::string_view id) { return id.substr(0, id.rfind(':')); }

/// Perfetto shows the numbers of processes and threads unless their names are told.
void Trace::nameThreads(uint32_t rank, const format::Program &program) {
  auto name = [&](const char *what, const std::string &thread, const std::string &text) {
    json event = {{"name", what}, {"ph", "M"}, {"pid", rank}};
    if (!thread.empty())
      event["tid"] = thread;
    event["args"] = {{"name", text}};
    events += event.dump() + ",\n";
  };
  std::string place = manifest.mesh.empty() ? "" : " (" + coordinatesOf(manifest, rank) + ")";
  name("process_name", "", "rank " + std::to_string(rank) + place);
  name("thread_name", schedule, schedule);
  for (const std::string &queue : program.queues)
    name("thread_name", queue, queue + (queue == "compute" ? "" : " (communication)"));
}

/// A slot lasts from the begin of its first instruction to the end of its last one.
void Trace::addSlots(Session &session, uint64_t step) {
  const auto &steps = session.lastEntry().steps;
  const auto &stamps = session.stamps();
  for (size_t i = 0, end = 0; i < steps.size(); i = end) {
    uint64_t until = 0;
    for (end = i; end < steps.size() && blockOf(steps[end].id) == blockOf(steps[i].id) &&
                  steps[end].microbatch == steps[i].microbatch;
         ++end)
      until = std::max<uint64_t>(until, stamps[end].end);
    std::string slot = slotOf(blockOf(steps[i].id), steps[i].microbatch);
    for (auto [phase, at] : {std::pair("B", static_cast<uint64_t>(stamps[i].begin)), {"E", until}})
      if (!slot.empty())
        events += json({{"name", slot},
                        {"ph", phase},
                        {"ts", static_cast<double>(at) / 1000},
                        {"pid", session.rank()},
                        {"tid", schedule},
                        {"args", {{"step", step}, {"block", blockOf(steps[i].id)}}}})
                      .dump() +
                  ",\n";
  }
}

void Trace::add(Session &session, uint64_t step, const format::Program &program) {
  if (!covers(step))
    return;
  if (events.empty())
    nameThreads(session.rank(), program);
  addSlots(session, step);
  const auto &steps = session.lastEntry().steps;
  const auto &stamps = session.stamps();
  for (size_t i = 0; i < steps.size(); ++i) {
    json args = {{"step", step}, {"microbatch", steps[i].microbatch}};
    if (std::string slot = slotOf(blockOf(steps[i].id), steps[i].microbatch); !slot.empty())
      args["slot"] = slot;
    json event = {{"name", steps[i].id},
                  {"cat", format::toString(steps[i].op)},
                  {"ph", "X"},
                  {"ts", static_cast<double>(stamps[i].begin) / 1000},
                  {"dur", static_cast<double>(stamps[i].end - stamps[i].begin) / 1000},
                  {"pid", session.rank()},
                  {"tid", program.queues[steps[i].queue]},
                  {"args", args}};
    events += event.dump() + ",\n";
  }
}

void Trace::write(comm::Control &control) {
  if (path.empty())
    return;
  auto all = control.gather("trace", events);
  if (!out)
    return;
  std::string text;
  for (const std::string &rank : all)
    text += rank;
  if (text.ends_with(",\n"))
    text.erase(text.size() - 2, 1); // the last event has no comma
  out->write("{\"traceEvents\": [\n");
  out->write(text);
  out->write("]}\n");
}

} // namespace par::core
