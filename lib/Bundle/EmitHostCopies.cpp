#include "EmitProgram.h"

using namespace mlir;

namespace par {

namespace {

/// What copies between device and host of one block wait for, and what waits for them. Positions count the
/// block's instructions; what ran before the block stands at -1.
class HostCopies {
public:
  HostCopies(const format::Program &program, const std::vector<format::Instruction> &list)
      : program(program), list(list), copy(list.size(), -1), after(list.size()) {}

  /// Whether the instruction is such a copy.
  bool is(size_t n) const {
    const format::Instruction &it = list[n];
    return it.op == format::Op::Copy && space(it.operands[0]) != space(it.operands[1]);
  }
  void plan();

  const format::Program &program;
  const std::vector<format::Instruction> &list;
  std::vector<int64_t> copy; ///< by instruction: the copy that its queue waits for before it, or -1
  /// By copy: positions, the last ones on their queues, that the queue of copies waits for before it.
  std::vector<SmallVector<int64_t, 1>> after;
  int64_t last = -1;   ///< copy of the block
  bool joined = false; ///< compute has waited for it

private:
  format::Space space(const format::Operand &operand) const { return program.buffers[operand.buffer].space; }
  size_t lastOf(size_t n) const { return list[n].op == format::Op::Group ? n + list[n].n : n; }
  bool overlap(const format::Operand &mine, const format::Operand &theirs) const;
  bool meet(size_t one, size_t other) const;
  void planCopy(size_t n, llvm::DenseMap<uint32_t, int64_t> &told);
};

} // namespace

/// In the memory of the device; what lies in the host's is touched by copies alone.
bool HostCopies::overlap(const format::Operand &mine, const format::Operand &theirs) const {
  const format::Buffer &a = program.buffers[mine.buffer], &b = program.buffers[theirs.buffer];
  if (a.space != format::Space::Dev || b.space != format::Space::Dev)
    return false;
  for (uint64_t one : a.at)
    for (uint64_t other : b.at)
      if (one < other + b.bytes() && other < one + a.bytes())
        return true;
  return false;
}

/// Whether two instructions touch common bytes; a group with all its members.
bool HostCopies::meet(size_t one, size_t other) const {
  for (size_t a = one; a <= lastOf(one); ++a)
    for (size_t b = other; b <= lastOf(other); ++b)
      for (const format::Operand &mine : list[a].operands)
        for (const format::Operand &theirs : list[b].operands)
          if (overlap(mine, theirs))
            return true;
  return false;
}

/// `told`: by queue, the position that the queue of copies has waited for.
void HostCopies::planCopy(size_t n, llvm::DenseMap<uint32_t, int64_t> &told) {
  llvm::DenseMap<uint32_t, int64_t> before = {{0, -1}};
  for (size_t m = 0; m < n; m = lastOf(m) + 1)
    if (!is(m) && meet(m, n))
      before[list[m].queue] = lastOf(m);
  for (auto [queue, position] : before) {
    auto [known, fresh] = told.try_emplace(queue, position);
    if (!fresh && known->second >= position)
      continue;
    known->second = position;
    after[n].push_back(position);
  }
}

void HostCopies::plan() {
  llvm::DenseMap<uint32_t, int64_t> told, awaited;
  for (size_t n = 0; n < list.size(); n = lastOf(n) + 1) {
    if (is(n)) {
      planCopy(n, told);
      last = n;
      continue;
    }
    int64_t &known = awaited.try_emplace(list[n].queue, -1).first->second;
    for (int64_t m = known + 1; m < int64_t(n); ++m)
      if (is(m) && meet(m, n))
        copy[n] = m;
    known = std::max(known, copy[n]);
  }
  joined = awaited.lookup(0) >= last && last >= 0;
}

void ProgramEmitter::giveCopiesAQueue(format::Block &block) {
  HostCopies copies(out, block.instructions);
  if (llvm::none_of(llvm::seq(block.instructions.size()), [&](size_t n) { return copies.is(n); }))
    return;
  copies.plan();
  uint32_t beside = llvm::find(out.queues, "copies") - out.queues.begin();
  if (beside == out.queues.size())
    out.queues.push_back("copies");
  llvm::DenseMap<int64_t, uint32_t> ready, done; // events by the position and the copy that they follow
  auto eventOf = [&](llvm::DenseMap<int64_t, uint32_t> &table, StringRef word, int64_t position) {
    if (!table.count(position))
      table[position] = event((word + "." + Twine(out.events.size())).str());
    return table[position];
  };
  std::vector<format::Instruction> ordered;
  auto append = [&](format::Op op, uint32_t queue, uint32_t event) {
    format::Instruction &it = ordered.emplace_back();
    it.op = op;
    it.queue = queue;
    it.event = event;
  };
  for (size_t n = 0; n < block.instructions.size(); ++n) {
    for (int64_t position : copies.after[n])
      eventOf(ready, "free", position);
    if (copies.copy[n] >= 0)
      eventOf(done, "copied", copies.copy[n]);
  }
  if (!copies.joined)
    eventOf(done, "copied", copies.last);
  if (ready.count(-1))
    append(format::Op::Signal, 0, ready[-1]);
  for (auto [n, it] : llvm::enumerate(block.instructions)) {
    uint32_t queue = it.queue;
    if (copies.copy[n] >= 0)
      append(format::Op::Wait, queue, done[copies.copy[n]]);
    for (int64_t position : copies.after[n])
      append(format::Op::Wait, beside, ready[position]);
    ordered.push_back(it);
    if (copies.is(n))
      ordered.back().queue = beside;
    if (done.count(n))
      append(format::Op::Signal, beside, done[n]);
    if (ready.count(n))
      append(format::Op::Signal, queue, ready[n]);
  }
  if (!copies.joined)
    append(format::Op::Wait, 0, done[copies.last]);
  block.instructions = std::move(ordered);
}

} // namespace par
