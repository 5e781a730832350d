// Rows of the instructions' times in a trace that a run wrote.
#pragma once

#include "WrittenFile.h"
#include "par/format/Bundle.h"

namespace par::calibrate {

/// One interval of a trace.
struct TracedInstruction {
  const format::Program *program = nullptr;
  const format::Block *block = nullptr;
  size_t index = 0; ///< of the instruction in its block
  uint32_t rank = 0;
  int64_t microbatch = 0;
  int64_t begin = 0, end = 0; ///< ns

  const format::Instruction &instruction() const { return block->instructions[index]; }
};

/// Rank after rank, each rank's in the order of its program.
using TracedStep = std::vector<TracedInstruction>;

/// The steps of a trace of this bundle. Throws core::Failure, at `path`.
std::vector<TracedStep> readTrace(const format::Bundle &bundle, const std::string &path);

/// Half of the steps, those around the median by time: their mean is about the median, which the means of instructions
/// add up to, and a step that another process has disturbed does not count.
std::vector<TracedStep> middleHalf(std::vector<TracedStep> steps);

/// The means over the steps, as one process takes by itself: less what processes beside each other take by the file's
/// rows of `together`, and less the wake-ups of its `wakeups`, so that predictions, which add these, give the trace's
/// times.
Rows rowsOfSteps(const format::Bundle &bundle, const std::vector<TracedStep> &steps, const WrittenFile &file);

} // namespace par::calibrate
