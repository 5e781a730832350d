// Where a NaN came from: the results of a step that are still in memory, in the order in which they were made.
#include "par/core/Failure.h"
#include "par/core/Session.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace par::core {
namespace {

using format::Op;

/// Calls visit(step, operand, buffer, address) for each f32 operand that kernels and calls write.
template <typename Visit>
void forEachResult(const ExpandedEntry &entry, const format::Program &program, Visit visit) {
  for (size_t i = 0; i < entry.steps.size(); ++i) {
    const Step &step = entry.steps[i];
    if (step.op != Op::Kernel && step.op != Op::Call && step.op != Op::Coll && step.op != Op::Recv)
      continue;
    for (size_t n = 0; n < step.instruction->operands.size(); ++n) {
      const format::Operand &operand = step.instruction->operands[n];
      const format::Buffer &buffer = program.buffers[operand.buffer];
      if (operand.access != format::Access::Read && buffer.type == DType::F32)
        visit(i, buffer, entry.pointers[step.operands + n]);
    }
  }
}

bool holdsNonFinite(const HostBytes &bytes) {
  auto *values = reinterpret_cast<const float *>(bytes.data());
  return !std::all_of(values, values + bytes.size() / sizeof *values, [](float value) { return std::isfinite(value); });
}

/// "adamw": what an instruction runs that comes from no node of the model.
std::string kernelOf(const Step &step, const format::Program &program) {
  if (step.op == Op::Call)
    return program.calls[step.instruction->call].kind;
  return program.kernels[step.instruction->kernel].symbol;
}

} // namespace

std::string Session::firstNonFinite() const {
  // A result is judged at its last writer: what was there before is gone.
  std::map<const void *, size_t> lastWriter;
  forEachResult(*last, program, [&](size_t step, const format::Buffer &, void *at) { lastWriter[at] = step; });
  size_t first = last->steps.size();
  std::string name;
  forEachResult(*last, program, [&](size_t step, const format::Buffer &buffer, void *at) {
    bool local = last->steps[step].op == Op::Kernel || last->steps[step].op == Op::Call;
    if (step < first && local && lastWriter[at] == step && holdsNonFinite({*device, at, buffer.bytes()})) {
      first = step;
      name = buffer.name;
    }
  });
  if (first == last->steps.size())
    return "";
  const Step &step = last->steps[first];
  int32_t provenance = step.instruction->provenance;
  bool known = provenance >= 0 && static_cast<size_t>(provenance) < bundle.provenance.size();
  std::string what = known ? "the output of " + bundle.provenance[static_cast<size_t>(provenance)]
                           : core::format("\"{}\", which {} wrote", name, kernelOf(step, program));
  return core::format("{} ({}), microbatch {}", what, step.id, step.microbatch);
}

} // namespace par::core
