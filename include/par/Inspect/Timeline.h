// The predicted step as a picture: what each class of ranks does when, and what it holds.
#pragma once

#include "par/Simulator/Simulator.h"

namespace par {

/// The work of a rank while it is not idle. The order is that of the report's keys.
enum class SpanKind : uint8_t { Forward, Backward, Weight, Update, Communication, Other };
llvm::StringRef toString(SpanKind kind);

/// A part of a step. Instructions of one run that follow each other more closely than the picture shows are one.
struct TimelineSpan {
  SpanKind kind = SpanKind::Other;
  int64_t microbatch = -1; ///< -1: of none
  int64_t start = 0, duration = 0;
  int64_t busy = 0;     ///< ns of its duration in which an instruction runs
  int64_t critical = 0; ///< ns of it that belong to the longest chain
  int64_t exposed = 0;  ///< of communication: ns beside no compute
  uint32_t label = 0;   ///< of `labels`: its block, or what is communicated
};

/// Ranks that do the same at the same times.
struct TimelineRow {
  std::string role;
  std::vector<uint32_t> ranks;
  RankTime time;
  std::vector<TimelineSpan> spans; ///< by start; communication after compute
};

struct TimelineFacts {
  int64_t stepNs = 0;  ///< of the entry
  int64_t batches = 1; ///< that it takes
  int64_t gridNs = 1;  ///< shorter gaps within a run are not shown
  std::vector<std::string> labels;
  std::vector<TimelineRow> rows; ///< by their lowest ranks
};

/// `maxSpans`: about as many spans are made at most.
TimelineFacts describeTimeline(const format::Bundle &bundle, llvm::StringRef entry, const Simulation &simulation,
                               size_t maxSpans = 40'000);

} // namespace par
