// Reads a trace of par-run: docs/plan.md §3.2.
#include "par/Report/Trace.h"

#include "par/Base/Json.h"

#include "llvm/Support/MemoryBuffer.h"

#include <map>

using namespace llvm;

namespace par {

static Error refuse(const std::string &path, const Twine &why) {
  return createStringError("\"" + path + "\" is no trace of par-run --trace: " + why);
}

/// The begin of the middle one of its steps; nothing without steps.
static std::optional<double> findMiddleStep(const json::Array &events) {
  std::map<int64_t, double> begins;
  for (const json::Value &value : events) {
    const json::Object *event = value.getAsObject();
    const json::Object *args = event ? event->getObject("args") : nullptr;
    std::optional<int64_t> step = args ? args->getInteger("step") : std::nullopt;
    std::optional<double> at = event ? event->getNumber("ts") : std::nullopt;
    if (!step || !at || event->getString("ph") != "X")
      continue;
    auto [known, isNew] = begins.try_emplace(*step, *at);
    known->second = std::min(known->second, *at);
  }
  if (begins.empty())
    return std::nullopt;
  return std::next(begins.begin(), begins.size() / 2)->second;
}

Expected<RunTrace> readRunTrace(const std::string &path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(path);
  if (!file)
    return createStringError("cannot read \"" + path + "\": " + file.getError().message());
  Expected<json::Value> parsed = parseJson((*file)->getBuffer());
  if (!parsed)
    return refuse(path, "it is no JSON (" + toString(parsed.takeError()) + ")");
  json::Object *trace = parsed->getAsObject();
  json::Array *events = trace ? trace->getArray("traceEvents") : nullptr;
  if (!events)
    return refuse(path, "it has no list \"traceEvents\"");
  std::optional<double> begin = findMiddleStep(*events);
  if (!begin)
    return refuse(path, "it has no steps");
  return RunTrace{std::move(*events), *begin};
}

} // namespace par
