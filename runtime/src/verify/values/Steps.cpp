#include "Steps.h"
#include "par/kernels/Builtins.h"
#include "verify/Names.h"
#include "verify/accesses/Accesses.h"

#include <algorithm>

using namespace par;
using namespace par::format;
using namespace par::verify;

Steps::Steps(const Bundle &bundle) : bundle(bundle) {
  for (const Tensor &tensor : bundle.manifest.tensors)
    tensors.emplace(tensor.name, &tensor);
  for (uint32_t i = 0; i < bundle.manifest.communicators.size(); ++i)
    comms.emplace(bundle.manifest.communicators[i].name, i);
  for (const Program &program : bundle.programs)
    known.emplace_back(program.blocks.size());
}

const Tensor *Steps::findTensor(const std::string &name) const {
  auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : it->second;
}

const std::vector<Step> &Steps::of(uint32_t role, uint32_t block) {
  std::vector<Step> &steps = known[role][block];
  const Program &program = bundle.programs[role];
  if (steps.empty())
    for (const Instruction &it : program.blocks[block].instructions)
      steps.push_back(stepOf(program, it));
  return steps;
}

static bool isOptimizer(const Program &program, const Instruction &it) {
  if (it.op != Op::Kernel || !program.kernels[it.kernel].builtin)
    return false;
  const kernels::BuiltinKernel *builtin = kernels::findBuiltin(program.kernels[it.kernel].symbol);
  return builtin && std::ranges::any_of(builtin->operands, [](const kernels::BuiltinOperand &operand) {
           return operand.access == kernels::Access::Update;
         });
}

/// Inputs of the `written`th operand that an instruction writes: those of the kernel's table, or all that is read. A
/// sum in a matmul's epilogue depends only on its operand.
static Dependence dependenceOf(const Program &program, const Instruction &it, size_t written) {
  if (it.op == Op::Kernel && !program.kernels[it.kernel].deps.empty())
    return program.kernels[it.kernel].deps[written];
  if (it.op == Op::Call && written == 0 && program.calls[it.call].sums())
    return {{program.calls[it.call].epilogue == Epilogue::SumA ? 0u : 1u}, {}};
  Dependence all;
  for (uint32_t i = 0; i < it.operands.size(); ++i)
    if (it.operands[i].access != Access::Write)
      all.operands.push_back(i);
  for (uint32_t i = 0; i < it.imms.size(); ++i)
    all.imms.push_back(i);
  return all;
}

Step Steps::stepOf(const Program &program, const Instruction &it) const {
  Step step;
  bool computes = it.op == Op::Kernel || it.op == Op::Call;
  bool communicates = it.op == Op::Coll || it.op == Op::Send || it.op == Op::Recv;
  for (const Operand &operand : it.operands) {
    const Buffer &buffer = program.buffers[operand.buffer];
    bool alias = buffer.of != noIndex;
    const Buffer &root = alias ? program.buffers[buffer.of] : buffer;
    Step::Place place{alias ? buffer.of : operand.buffer, uint32_t(root.at.size()), alias ? buffer.offset : 0};
    place.state = root.kind == BufferKind::State;
    place.kept = buffer.kind == BufferKind::Temp && buffer.index == Index::None;
    step.operands.push_back(place);
    if (operand.access == Access::Read)
      continue;
    if (computes)
      step.written.push_back(dependenceOf(program, it, step.written.size()));
    const Tensor *tensor = buffer.kind == BufferKind::State && !alias ? findTensor(buffer.tensor) : nullptr;
    step.updates |= tensor && (tensor->kind == TensorKind::Parameter || tensor->kind == TensorKind::State);
    step.moves |= buffer.kind == BufferKind::State && buffer.bytes() > sizeOf(buffer.type);
  }
  if (communicates)
    step.comm = comms.at(program.comms[it.comm].name);
  else
    for (const ByteAccess &access : accessesOf(program, it, 0, 1))
      step.operands[access.operand].bytes = access.bytes;
  if (computes)
    step.name = nameOf(program, it, Run());
  step.optimizer = isOptimizer(program, it);
  return step;
}
