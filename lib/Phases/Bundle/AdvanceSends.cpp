// Sends do not wait for reductions that their values do not need.
//
// A block of backward computes a value that goes to the stage before, then starts reductions of its gradients, and
// waits for them at its end. The send is a run of its own that follows the block. All runs are issued in order, so the
// other stage would be idle until the reductions end. The send goes into the block instead, right after the value:
//
//     backward: compute, reduce, wait      becomes      backward: compute, send, reduce, wait
//     send
//
// The send's bytes are in use until its former run, so the rest of the block writes none of them.
#include "AdvanceSends.h"
#include "EmitProgram.h"

#include "mlir/Support/LLVM.h"

#include <map>
#include <set>

using namespace mlir;

namespace par {

namespace {

class SendAdvancer {
public:
  explicit SendAdvancer(format::Program &program) : program(program) {}

  void run();

private:
  /// A block, and the block of the send that goes into it.
  using Pair = std::pair<uint32_t, uint32_t>;

  std::optional<size_t> findPlace(const format::Block &block, const format::Block &send) const;
  bool isAdvanced(ArrayRef<format::Run> runs, size_t index);
  void findPairs();
  void join();
  void dropUnused();

  format::Program &program;
  std::map<Pair, std::optional<size_t>> places; ///< where the send goes; none if it stays a run
  std::map<Pair, uint32_t> joined;              ///< the block of both
  std::map<uint32_t, size_t> uses;              ///< runs of each block that are not joined with a send
};

} // namespace

/// Whether the block does nothing but send, on a queue beside compute.
static bool onlySends(const format::Block &block) {
  bool sends = false;
  for (const format::Instruction &it : block.instructions) {
    bool isSend = it.op == format::Op::Send;
    sends |= isSend;
    if ((isSend && it.queue == 0) ||
        (!isSend && it.op != format::Op::Group && it.op != format::Op::Signal && it.op != format::Op::Wait))
      return false;
  }
  return sends;
}

/// Whether compute blocks at instruction `n`: it communicates itself, or waits for a queue that the block started.
static bool holdsCompute(const format::Block &block, size_t n) {
  const format::Instruction &it = block.instructions[n];
  if (it.queue != 0)
    return false;
  if (it.op == format::Op::Coll || it.op == format::Op::Group)
    return true;
  auto isSignal = [&](const format::Instruction &other) {
    return other.op == format::Op::Signal && other.queue != 0 && other.event == it.event;
  };
  return it.op == format::Op::Wait && llvm::any_of(ArrayRef(block.instructions).take_front(n), isSignal);
}

/// The position after the block's last write of the sent bytes, if the block computes them and blocks compute later.
std::optional<size_t> SendAdvancer::findPlace(const format::Block &block, const format::Block &send) const {
  std::set<uint32_t> sent;
  for (const format::Instruction &it : send.instructions)
    for (const format::Operand &operand : it.operands)
      sent.insert(ownerOf(program, operand.buffer));
  std::optional<size_t> place;
  size_t groupEnd = 0, end = block.instructions.size();
  std::set<uint32_t> written;
  for (size_t n = 0; n < end; ++n) {
    if (block.instructions[n].op == format::Op::Group)
      groupEnd = n + 1 + block.instructions[n].n;
    for (const format::Operand &operand : block.instructions[n].operands)
      if (operand.access != format::Access::Read && sent.count(ownerOf(program, operand.buffer))) {
        written.insert(ownerOf(program, operand.buffer));
        bool computes = block.instructions[n].queue == 0 && block.instructions[n].op != format::Op::Recv;
        place = computes ? std::optional(std::max(n + 1, groupEnd)) : std::nullopt;
      }
  }
  if (!place || written != sent)
    return std::nullopt;
  for (size_t n = *place; n < end; ++n)
    if (holdsCompute(block, n))
      return place;
  return std::nullopt;
}

/// Whether the run's block takes the send of the next run, which is of the same microbatch and version.
bool SendAdvancer::isAdvanced(ArrayRef<format::Run> runs, size_t index) {
  if (index + 1 == runs.size())
    return false;
  const format::Run &run = runs[index], &next = runs[index + 1];
  if (run.microbatch != next.microbatch || run.version != next.version)
    return false;
  const format::Block &block = program.blocks[run.block], &send = program.blocks[next.block];
  auto [place, isNew] = places.try_emplace({run.block, next.block}, std::nullopt);
  if (isNew && onlySends(send) && !onlySends(block))
    place->second = findPlace(block, send);
  return place->second.has_value();
}

void SendAdvancer::findPairs() {
  for (const format::Entry &entry : program.entries)
    for (size_t index = 0; index < entry.runs.size(); ++index) {
      bool isJoined = isAdvanced(entry.runs, index);
      if (isJoined)
        joined.try_emplace({entry.runs[index].block, entry.runs[index + 1].block}, 0);
      else
        ++uses[entry.runs[index].block];
      index += isJoined;
    }
}

/// Makes the block of each pair: in place of the first block where that has no other run, else a new one.
void SendAdvancer::join() {
  std::vector<format::Block> before = program.blocks;
  for (auto &[pair, block] : joined) {
    auto [first, send] = pair;
    bool isAlone = uses[first]++ == 0;
    block = isAlone ? first : uint32_t(program.blocks.size());
    if (!isAlone)
      program.blocks.push_back({before[first].name + ".and_send", {}});
    program.blocks[block].instructions = before[first].instructions;
    std::vector<format::Instruction> &all = program.blocks[block].instructions;
    const std::vector<format::Instruction> &sent = before[send].instructions;
    all.insert(all.begin() + *places[pair], sent.begin(), sent.end());
  }
}

void SendAdvancer::run() {
  findPairs();
  join();
  for (format::Entry &entry : program.entries) {
    std::vector<format::Run> runs;
    for (size_t index = 0; index < entry.runs.size(); ++index) {
      runs.push_back(entry.runs[index]);
      if (isAdvanced(entry.runs, index)) {
        runs.back().block = joined.at({entry.runs[index].block, entry.runs[index + 1].block});
        ++index;
      }
    }
    entry.runs = std::move(runs);
  }
  dropUnused();
}

/// Leaves out the blocks of sends that all went into others.
void SendAdvancer::dropUnused() {
  std::set<uint32_t> gone;
  for (const auto &[pair, block] : joined)
    if (uses[pair.second] == 0)
      gone.insert(pair.second);
  std::vector<uint32_t> moved(program.blocks.size(), format::noIndex);
  std::vector<format::Block> kept;
  for (uint32_t index = 0; index < program.blocks.size(); ++index)
    if (!gone.count(index)) {
      moved[index] = kept.size();
      kept.push_back(std::move(program.blocks[index]));
    }
  program.blocks = std::move(kept);
  for (format::Entry &entry : program.entries)
    for (format::Run &run : entry.runs)
      run.block = moved[run.block];
}

void advanceSends(format::Program &program) { SendAdvancer(program).run(); }

} // namespace par
