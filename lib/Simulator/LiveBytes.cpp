#include "Expansion.h"
#include "llvm/ADT/STLExtras.h"

using namespace par;
using namespace par::format;

namespace {

/// The life of the value that is in one slot of a buffer.
struct SlotLife {
  int64_t begin = -1, end = -1; ///< ns; -1: nothing lives
  bool wasRead = false;
};

/// Collects the lives of slots from accesses in issue order.
class LifeCollector {
public:
  explicit LifeCollector(const Program &program) : program(program), lives(program.buffers.size()) {
    for (uint32_t buffer = 0; buffer < program.buffers.size(); ++buffer)
      lives[buffer].resize(depthOf(program, buffer));
  }

  void access(const Operand &operand, const Run &run, const PlayedInstruction &node) {
    bool isAlias = program.buffers[operand.buffer].of != noIndex;
    uint32_t owner = isAlias ? program.buffers[operand.buffer].of : operand.buffer;
    const Buffer &buffer = program.buffers[owner];
    if (buffer.space != Space::Dev || buffer.kind == format::BufferKind::State)
      return;
    uint32_t slot = slotOf(operand.slot, depthOf(program, operand.buffer), run);
    SlotLife &life = lives[owner][slot];
    // A write of all of it after a read begins a new life; a write through an alias may be one of several
    // parts.
    if (life.begin < 0 || (operand.access == Access::Write && !isAlias && life.wasRead)) {
      close(owner, slot, life);
      life = {node.start, node.start, false};
    }
    life.begin = std::min(life.begin, node.start);
    life.end = std::max(life.end, node.start + node.duration);
    life.wasRead |= operand.access != Access::Write;
  }

  std::vector<BufferLife> finish() {
    for (uint32_t buffer = 0; buffer < lives.size(); ++buffer)
      for (auto [slot, life] : llvm::enumerate(lives[buffer]))
        close(buffer, slot, life);
    endReplaced();
    return std::move(ended);
  }

private:
  void close(uint32_t buffer, uint32_t slot, const SlotLife &life) {
    if (life.begin < 0 || life.end == life.begin)
      return;
    ended.push_back({buffer, program.buffers[buffer].at[slot], life.begin, life.end});
  }

  /// A result that takes the place of an operand ends it.
  void endReplaced() {
    std::vector<BufferLife *> byPlace;
    for (BufferLife &life : ended)
      byPlace.push_back(&life);
    llvm::sort(byPlace, [](const BufferLife *one, const BufferLife *other) {
      return std::tie(one->offset, one->begin, one->end) < std::tie(other->offset, other->begin, other->end);
    });
    for (size_t i = 1; i < byPlace.size(); ++i)
      if (BufferLife &before = *byPlace[i - 1]; before.offset == byPlace[i]->offset)
        before.end = std::min(before.end, byPlace[i]->begin);
  }

  const Program &program;
  std::vector<std::vector<SlotLife>> lives; ///< by buffer and slot
  std::vector<BufferLife> ended;
};

} // namespace

std::vector<BufferLife> par::findLives(const Program &program, const Entry &entry,
                                       llvm::ArrayRef<PlayedInstruction> nodes) {
  LifeCollector collector(program);
  for (const PlayedInstruction &node : nodes) {
    const auto &instructions = program.blocks[node.block].instructions;
    const Instruction &first = instructions[node.instruction];
    size_t length = first.op == Op::Group ? std::min<size_t>(first.n + 1, instructions.size() - node.instruction) : 1;
    for (const Instruction &instruction : llvm::ArrayRef(instructions).slice(node.instruction, length))
      for (const Operand &operand : instruction.operands)
        collector.access(operand, entry.runs[node.run], node);
  }
  return collector.finish();
}

std::vector<MemorySample> par::liveBytes(const Program &program, const Entry &entry,
                                         llvm::ArrayRef<PlayedInstruction> nodes) {
  std::vector<std::pair<int64_t, int64_t>> changes; // a time, and the change of live bytes at it
  for (const BufferLife &life : findLives(program, entry, nodes)) {
    auto bytes = static_cast<int64_t>(program.buffers[life.buffer].bytes());
    changes.push_back({life.begin, bytes});
    changes.push_back({life.end, -bytes});
  }
  llvm::stable_sort(changes, llvm::less_first());
  std::vector<MemorySample> samples{{0, static_cast<int64_t>(program.arena.state)}};
  for (auto [time, delta] : changes) {
    if (time > samples.back().time)
      samples.push_back({time, samples.back().bytes});
    samples.back().bytes += delta;
  }
  return samples;
}
