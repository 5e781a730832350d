#include "Progress.h"

#include "par/core/Failure.h"

#include <nlohmann/json.hpp>

namespace par::core {

using json = nlohmann::ordered_json;

Trace::Trace(const std::string &spec) : path(spec) {
  size_t colon = spec.rfind(':'), dash = spec.rfind('-');
  bool ranged = colon != std::string::npos && dash != std::string::npos && dash > colon + 1 && dash + 1 < spec.size() &&
                spec.find_first_not_of("0123456789-", colon + 1) == std::string::npos;
  if (!ranged)
    return;
  path = spec.substr(0, colon);
  first = std::stoull(spec.substr(colon + 1, dash - colon - 1));
  last = std::stoull(spec.substr(dash + 1));
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
  if (control.rank() != 0)
    return;
  std::ofstream out(path);
  out << "{\"traceEvents\": [\n";
  for (const std::string &rank : all)
    out << rank;
  out << "{\"name\": \"end\", \"ph\": \"i\", \"ts\": 0, \"pid\": 0, \"tid\": \"compute\"}]}\n";
  if (!out.flush())
    throw Failure::at(path, Message::cannotWrite, "not all of it was written");
}

} // namespace par::core
