#include "par/Dialect/FusedTime.h"

#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Interfaces/Timed.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace par {
namespace {

/// Groups the ops of a block that are not calls.
class KernelGroups {
public:
  explicit KernelGroups(Block &block) {
    for (Operation &op : block)
      place(&op);
    for (Operation &op : block)
      if (isJoined(&op))
        for (Value operand : op.getOperands())
          if (Operation *source = operand.getDefiningOp();
              source && isJoined(source) && getCost(source).fusable && phases.lookup(source) == phases.lookup(&op))
            groups.unionSets(source, &op);
  }

  /// The ops of each group, in the block's order.
  llvm::MapVector<Operation *, SmallVector<Operation *>> collect(Block &block) {
    llvm::MapVector<Operation *, SmallVector<Operation *>> result;
    for (Operation &op : block)
      if (isJoined(&op))
        result[groups.getOrInsertLeaderValue(&op)].push_back(&op);
    return result;
  }

private:
  static bool isJoined(Operation *op) { return !isa<TimedOpInterface>(op) && !op->hasTrait<OpTrait::IsTerminator>(); }

  /// Calls after each other on the way to an op: ops of one group have as many, so that no group waits for itself.
  void place(Operation *op) {
    unsigned phase = 0;
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp())
        phase = std::max(phase, phases.lookup(source) + !isJoined(source));
    phases[op] = phase;
  }

  DenseMap<Operation *, unsigned> phases;
  llvm::EquivalenceClasses<Operation *> groups;
};

} // namespace

/// Bytes of an operand that an op reads: a slice reads no more than it has.
static int64_t readBytes(Operation *op, Value operand) {
  int64_t bytes = getByteSize(operand);
  return movesElements(op) ? std::min(bytes, getByteSize(op->getResults())) : bytes;
}

static int64_t timeOfKernel(ArrayRef<Operation *> ops, const CostTable &costs) {
  llvm::SmallPtrSet<Operation *, 16> members(ops.begin(), ops.end());
  llvm::SmallDenseMap<Value, int64_t, 16> read;
  int64_t flops = 0, bytes = 0;
  bool onlyViews = true;
  for (Operation *op : ops) {
    OpCost cost = getCost(op);
    flops += cost.flops;
    onlyViews &= cost.fusable && movesElements(op);
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp(); !source || !members.contains(source))
        read[operand] = std::max(read[operand], readBytes(op, operand));
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !members.contains(user); }))
        bytes += getByteSize(result);
  }
  for (auto [value, size] : read)
    bytes += size;
  return onlyViews ? 0 : costs.kernel(bytes, flops).ns;
}

int64_t timeOfBlock(Block &block, const CostTable &costs) {
  int64_t time = 0;
  for (Operation &op : block)
    if (isa<TimedOpInterface>(op))
      time += timeOf(&op, costs).ns;
  for (const auto &[leader, ops] : KernelGroups(block).collect(block))
    time += timeOfKernel(ops, costs);
  return time;
}

} // namespace par
