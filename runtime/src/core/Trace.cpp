#include "Progress.h"

#include "par/core/Failure.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace par::core {

using json = nlohmann::ordered_json;

Trace::Trace(const std::string &spec, bool writes) : path(spec) {
  size_t colon = spec.rfind(':'), dash = spec.rfind('-');
  bool ranged = colon != std::string::npos && dash != std::string::npos && dash > colon + 1 && dash + 1 < spec.size() &&
                spec.find_first_not_of("0123456789-", colon + 1) == std::string::npos;
  if (ranged) {
    path = spec.substr(0, colon);
    auto number = [&](size_t from, size_t to, uint64_t &value) {
      auto [end, error] = std::from_chars(spec.data() + from, spec.data() + to, value);
      return error == std::errc() && end == spec.data() + to;
    };
    if (!number(colon + 1, dash, first) || !number(dash + 1, spec.size(), last) || first > last)
      throw Failure::at("par-run", Message::flagBad, "--trace", "F or F:A-B, steps A to B", spec).exitsWith(exitUsage);
  }
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
