#include "Pictures.h"

using namespace llvm;

namespace par {

static std::string numbers(ArrayRef<int64_t> values) {
  std::string text = "[";
  for (int64_t value : values)
    text += (text.size() > 1 ? "," : "") + std::to_string(value);
  return text + "]";
}

/// An array of arrays of numbers, without spaces.
template <typename Range, typename Fn>
static void rows(json::OStream &json, StringRef key, const Range &values, Fn numbersOf) {
  std::string text = "[";
  for (const auto &value : values)
    text += (text.size() > 1 ? "," : "") + numbers(numbersOf(value));
  json.attributeBegin(key);
  json.rawValue(text + "]");
  json.attributeEnd();
}

static std::vector<int64_t> numbersOf(const TimelineSpan &span) {
  return {int64_t(span.kind), span.microbatch, span.start,   span.duration,
          span.busy,          span.critical,   span.exposed, span.label};
}

static void writeRow(json::OStream &json, const TimelineRow &row) {
  json.attribute("role", json::fixUTF8(row.role));
  json.attributeBegin("ranks");
  json.rawValue(numbers(std::vector<int64_t>(row.ranks.begin(), row.ranks.end())));
  json.attributeEnd();
  json.attribute("compute_ns", row.time.compute);
  json.attribute("communication_ns", row.time.communication);
  json.attribute("core_ns", row.time.core);
  json.attribute("idle_ns", row.time.idle);
  rows(json, "spans", row.spans, [](const TimelineSpan &span) { return numbersOf(span); });
}

static void writeTimeline(json::OStream &json, const TimelineFacts &timeline) {
  json.attribute("step_ns", timeline.stepNs);
  json.attribute("batches", timeline.batches);
  json.attribute("grid_ns", timeline.gridNs);
  json.attributeArray("kinds", [&] {
    for (SpanKind kind : {SpanKind::Forward, SpanKind::Backward, SpanKind::Weight, SpanKind::Update,
                          SpanKind::Communication, SpanKind::Other})
      json.value(toString(kind));
  });
  json.attributeArray("labels", [&] {
    for (const std::string &label : timeline.labels)
      json.value(json::fixUTF8(label));
  });
  json.attributeArray("rows", [&] {
    for (const TimelineRow &row : timeline.rows)
      json.object([&] { writeRow(json, row); });
  });
}

static void writeRole(json::OStream &json, const RoleOverTime &role) {
  json.attribute("role", json::fixUTF8(role.role));
  json.attribute("params", int64_t(role.params));
  json.attribute("states", int64_t(role.states));
  json.attribute("peak", int64_t(role.peak));
  json.attribute("peak_ns", role.peakNs);
  rows(json, "moments", role.moments, [](const MemoryMoment &moment) {
    return std::vector<int64_t>{moment.time, int64_t(moment.grads), int64_t(moment.saved), int64_t(moment.buffers)};
  });
  json.attributeArray("largest", [&] {
    for (const PeakValues &values : role.largest)
      json.object([&] {
        json.attribute("name", json::fixUTF8(values.name));
        json.attribute("type", values.type);
        json.attribute("purpose", values.purpose);
        json.attribute("count", int64_t(values.count));
        json.attribute("bytes", int64_t(values.bytes));
      });
  });
}

void writePictures(json::OStream &json, const Facts &facts) {
  if (facts.timeline)
    json.attributeObject("timeline", [&] { writeTimeline(json, *facts.timeline); });
  json.attributeArray("memory_over_time", [&] {
    for (const RoleOverTime &role : facts.memoryOverTime)
      json.object([&] { writeRole(json, role); });
  });
}

} // namespace par
