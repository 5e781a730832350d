#pragma once

#include "par/Simulator/Simulator.h"

#include "llvm/Support/raw_ostream.h"

namespace par {

/// Writes the simulation as a Perfetto (Chrome trace event) file: one process a rank, one thread a queue, memory as
/// counters.
void writeTrace(const Simulation &simulation, const format::Bundle &bundle, llvm::raw_ostream &os);

} // namespace par
