#include "Progress.h"

#include <nlohmann/json.hpp>

namespace par::core {

using json = nlohmann::ordered_json;

Trace::Trace(const RunOptions &options, bool writes)
    : path(options.trace), first(options.traceFirst), last(options.traceLast) {
  if (writes && !path.empty())
    out.emplace(path);
}

void Trace::add(Session &session, uint64_t step, const format::Program &program) {
  if (!covers(step))
    return;
  const auto &steps = session.lastEntry().steps;
  const auto &stamps = session.stamps();
  for (size_t i = 0; i < steps.size(); ++i) {
    json event = {{"name", steps[i].id},
                  {"cat", format::toString(steps[i].op)},
                  {"ph", "X"},
                  {"ts", static_cast<double>(stamps[i].begin) / 1000},
                  {"dur", static_cast<double>(stamps[i].end - stamps[i].begin) / 1000},
                  {"pid", session.rank()},
                  {"tid", program.queues[steps[i].queue]},
                  {"args", {{"step", step}, {"microbatch", steps[i].microbatch}}}};
    events += event.dump() + ",\n";
  }
}

void Trace::write(comm::Control &control) {
  if (path.empty())
    return;
  auto all = control.gather("trace", events);
  if (!out)
    return;
  out->write("{\"traceEvents\": [\n");
  for (const std::string &rank : all)
    out->write(rank);
  out->write("{\"name\": \"end\", \"ph\": \"i\", \"ts\": 0, \"pid\": 0, \"tid\": \"compute\"}]}\n");
}

} // namespace par::core
