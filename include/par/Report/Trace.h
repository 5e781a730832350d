#pragma once

#include "par/Simulator/Simulator.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace par {

/// A trace that par-run wrote.
struct RunTrace {
  llvm::json::Array events; ///< as they are in the file
  double begin = 0;         ///< of its middle step, in its clock's us
};

/// Reads a file of par-run --trace.
llvm::Expected<RunTrace> readRunTrace(const std::string &path);

/// Writes the simulation as a Perfetto (Chrome trace event) file: one process a rank, one thread a queue, memory as
/// counters. With `run`, its events are in the file too, on one clock: the predicted step begins with the middle one of
/// the run, and each rank's prediction stands above its measured steps.
void writeTrace(const Simulation &simulation, const format::Bundle &bundle, llvm::raw_ostream &os,
                const RunTrace *run = nullptr);

} // namespace par
