// The uses of buffers: state by its tensor's kind, accumulators and saved values by the names of blocks and buffers.
#include "BufferUse.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

StringRef toString(BufferUse use) {
  constexpr StringRef names[] = {"params", "grads", "states", "saved", "buffers"};
  return names[static_cast<size_t>(use)];
}

/// Whether a buffer accumulates a gradient over microbatches: the loop's results are called so by Schedule.
static bool isAccumulator(const format::Buffer &buffer) { return StringRef(buffer.name).contains(".sum."); }

/// Names of blocks, from Schedule, tell forward from backward.
static MapVector<uint32_t, const format::Instruction *> findSaved(const format::Program &program) {
  MapVector<uint32_t, const format::Instruction *> written;
  DenseSet<uint32_t> read;
  for (const format::Block &block : program.blocks) {
    bool forward = StringRef(block.name).contains("forward"), backward = StringRef(block.name).contains("backward");
    DenseSet<uint32_t> own; // written in this block
    for (const format::Instruction &instruction : block.instructions)
      for (const format::Operand &operand : instruction.operands)
        if (program.buffers[operand.buffer].kind != format::BufferKind::Temp ||
            isAccumulator(program.buffers[operand.buffer]))
          continue;
        else if (forward && operand.access == format::Access::Write)
          written.insert({operand.buffer, &instruction});
        else if (backward && operand.access == format::Access::Write)
          own.insert(operand.buffer);
        else if (backward && operand.access == format::Access::Read && !own.contains(operand.buffer))
          read.insert(operand.buffer);
  }
  written.remove_if([&](auto &entry) { return !read.contains(entry.first); });
  return written;
}

BufferUses::BufferUses(const format::Bundle &bundle, const format::Program &program)
    : bundle(bundle), program(program), kept(findSaved(program)) {}

BufferUse BufferUses::of(uint32_t number) const {
  const format::Buffer &buffer = program.buffers[number];
  if (buffer.kind == format::BufferKind::State) {
    const format::Tensor *tensor = bundle.manifest.findTensor(buffer.tensor);
    bool state = tensor && (tensor->kind == format::TensorKind::State || tensor->kind == format::TensorKind::Counter);
    return state ? BufferUse::States : BufferUse::Params;
  }
  if (buffer.kind == format::BufferKind::Temp && buffer.index == format::Index::Ver)
    return BufferUse::Params; // older versions of the weights
  if (isAccumulator(buffer))
    return BufferUse::Grads;
  bool isSaved =
      buffer.kind == format::BufferKind::Temp && (buffer.index == format::Index::Mb || kept.contains(number));
  return isSaved ? BufferUse::Saved : BufferUse::Buffers;
}

std::string typeOf(const format::Buffer &buffer) {
  return std::string(toString(buffer.type)) + "[" +
         join(map_range(buffer.shape, [](int64_t size) { return std::to_string(size); }), "x") + "]";
}

} // namespace par
