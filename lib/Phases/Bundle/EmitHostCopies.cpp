// Puts copies between device and host on queues of their own, one for each direction. An instruction waits for the last
// one of another queue that touches its bytes, where one of the two is a copy and no earlier wait covers it.
#include "EmitProgram.h"

using namespace mlir;

namespace par {

static format::Space spaceOf(const format::Program &program, const format::Operand &operand) {
  return program.buffers[operand.buffer].space;
}

/// Whether an instruction copies between device and host.
static bool isHostCopy(const format::Program &program, const format::Instruction &it) {
  return it.op == format::Op::Copy && spaceOf(program, it.operands[0]) != spaceOf(program, it.operands[1]);
}

namespace {

/// Copies between device and host of one block on queues of their own, one for each direction, and the waits between
/// queues. Positions count the block's instructions; a group counts at its last one. Earlier blocks are at -1.
class HostCopies {
public:
  HostCopies(const format::Program &program, const std::vector<format::Instruction> &list, uint32_t in, uint32_t out)
      : program(program), list(list), in(in), out(out), after(list.size()) {}

  void plan();
  bool is(size_t n) const { return isHostCopy(program, list[n]); }
  uint32_t queueOf(size_t n) const {
    return !is(n) ? list[n].queue : spaceOf(program, list[n].operands[0]) == format::Space::Host ? in : out;
  }
  /// Positions for which the instruction's queue waits before it.
  ArrayRef<int64_t> waitsOf(size_t n) const { return after[n]; }
  /// Copies that compute has to wait for at the block's end.
  SmallVector<int64_t> unfinished() const;

private:
  size_t lastOf(size_t n) const { return list[n].op == format::Op::Group ? n + list[n].n : n; }
  bool overlap(const format::Operand &mine, const format::Operand &theirs) const;
  bool meet(size_t one, size_t other) const;
  void planOne(size_t n);

  const format::Program &program;
  const std::vector<format::Instruction> &list;
  uint32_t in, out;
  std::vector<SmallVector<int64_t, 1>> after;
  SmallVector<size_t> heads, copies; ///< instructions and groups before this one; copies of them
  llvm::DenseMap<std::pair<uint32_t, uint32_t>, int64_t> told; ///< by queue and other queue: last position waited for
  llvm::DenseMap<uint32_t, int64_t> last;                      ///< by queue of copies
};

} // namespace

bool HostCopies::overlap(const format::Operand &mine, const format::Operand &theirs) const {
  const format::Buffer &a = program.buffers[ownerOf(program, mine.buffer)],
                       &b = program.buffers[ownerOf(program, theirs.buffer)];
  if (a.space != b.space)
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

/// For each other queue, finds the last instruction that accesses the same bytes, if one of the two is a copy and its
/// queue has not waited for that position yet.
void HostCopies::planOne(size_t n) {
  uint32_t queue = queueOf(n);
  SmallVector<std::pair<uint32_t, int64_t>, 2> found;
  if (is(n))
    found.push_back({0, -1});
  for (size_t m : llvm::reverse(is(n) ? heads : copies)) {
    uint32_t other = queueOf(m);
    auto known = told.find({queue, other});
    bool settled = known != told.end() && known->second >= int64_t(lastOf(m));
    auto mine = llvm::find_if(found, [&](const auto &entry) { return entry.first == other; });
    if (other == queue || settled || (mine != found.end() && mine->second >= 0) || !meet(m, n))
      continue;
    if (mine == found.end())
      found.push_back({other, lastOf(m)});
    else
      mine->second = lastOf(m);
  }
  for (auto [other, position] : found) {
    auto [known, fresh] = told.try_emplace({queue, other}, position);
    if (!fresh && known->second >= position)
      continue;
    known->second = position;
    after[n].push_back(position);
  }
}

void HostCopies::plan() {
  for (size_t n = 0; n < list.size(); n = lastOf(n) + 1) {
    planOne(n);
    heads.push_back(n);
    if (!is(n))
      continue;
    copies.push_back(n);
    last[queueOf(n)] = n;
  }
}

SmallVector<int64_t> HostCopies::unfinished() const {
  SmallVector<int64_t> positions;
  for (uint32_t queue : {in, out})
    if (auto found = last.find(queue); found != last.end()) {
      auto known = told.find({0u, queue});
      if (known == told.end() || known->second < found->second)
        positions.push_back(found->second);
    }
  return positions;
}

void ProgramEmitter::giveCopiesQueues(format::Block &block) {
  if (llvm::none_of(block.instructions, [&](const format::Instruction &it) { return isHostCopy(out, it); }))
    return;
  HostCopies copies(out, block.instructions, queueNamed("copies.in"), queueNamed("copies.out"));
  copies.plan();
  llvm::DenseMap<int64_t, uint32_t> done; // events by the position that they follow
  auto need = [&](int64_t position) {
    StringRef word = position >= 0 && copies.is(position) ? "copied." : "free.";
    if (!done.count(position))
      done[position] = event((word + Twine(out.events.size())).str());
  };
  SmallVector<int64_t> unfinished = copies.unfinished();
  for (size_t n = 0; n < block.instructions.size(); ++n)
    llvm::for_each(copies.waitsOf(n), need);
  llvm::for_each(unfinished, need);
  std::vector<format::Instruction> ordered;
  auto append = [&](format::Op op, uint32_t queue, uint32_t event) {
    format::Instruction &it = ordered.emplace_back();
    it.op = op;
    it.queue = queue;
    it.event = event;
  };
  if (done.count(-1))
    append(format::Op::Signal, 0, done[-1]);
  for (auto [n, it] : llvm::enumerate(block.instructions)) {
    uint32_t queue = copies.queueOf(n);
    for (int64_t position : copies.waitsOf(n))
      append(format::Op::Wait, queue, done[position]);
    ordered.push_back(it);
    ordered.back().queue = queue;
    if (done.count(n))
      append(format::Op::Signal, queue, done[n]);
  }
  for (int64_t position : unfinished)
    append(format::Op::Wait, 0, done[position]);
  block.instructions = std::move(ordered);
}

} // namespace par
