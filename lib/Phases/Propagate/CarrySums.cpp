// Reduces a sum over ranks where its value has become small.
//
// A row-parallel matmul gives a partial sum on each rank, which is reduced in place unless it goes to an accumulator.
// Ops that are linear in it may lead to a smaller value, or to one that is sharded over the same ranks: experts'
// results, one for each token and expert, are weighted and added up for each token. If all users of such a sum are
// linear in it up to values whose reductions move at most three quarters of the bytes, the partial sum is carried
// there, also from forward into backward, which reads it for the weights' gradient:
//
//     %p = dot %a, %w    [tokens * k, h]  unreduced        %p = dot %a, %w    unreduced
//     %e = all_reduce %p                                   %m = multiply %p, %g
//     %m = multiply %e, %g                            ->   %s = reduce %m     [tokens, h]  unreduced
//     %s = reduce %m     [tokens, h]                       %r = reduce_scatter %s
//
// The one user of the last partial sum reduces it into its own layout. The choice does not depend on the number of
// ranks or on links.
#include "Propagation.h"

#include "par/Dialect/Interfaces/Cost.h"

using namespace mlir;

namespace par {

constexpr int64_t fewElements = 1024; ///< smaller reductions take only their latency, in any place

static bool isCutBy(ArrayRef<Axes> dims, const Axes &axes) {
  return llvm::any_of(dims, [&](const Axes &dim) {
    return llvm::any_of(dim, [&](StringAttr axis) { return llvm::is_contained(axes, axis); });
  });
}

/// An all-reduce moves its bytes twice, a reduce-scatter once.
static int64_t reductionBytes(Value value, bool cut) { return cut ? getByteSize(value) : 2 * getByteSize(value); }

/// The arguments by which other fragments read a fragment's result. Nothing if it has other users, or if a reader has
/// several runs, which might pass a value that is no partial sum.
std::optional<SmallVector<Value>> Propagation::readersOf(FragmentOp fragment, unsigned result) {
  SmallVector<Value> readers;
  auto runsOf = [&](FragmentOp of) { return llvm::count_if(runs, [&](auto &run) { return run.second == of; }); };
  for (auto [run, ran] : runs) {
    if (ran != fragment)
      continue;
    for (OpOperand &use : run.getResult(result).getUses()) {
      auto reader = llvm::find_if(runs, [&](auto &other) { return other.first == use.getOwner(); });
      if (reader == runs.end() || runsOf(reader->second) != 1)
        return std::nullopt;
      readers.push_back(reader->second.getArgument(use.getOperandNumber()));
    }
  }
  return readers;
}

bool Propagation::carryUse(OpOperand &use, CarriedSum &carried) {
  Operation *user = use.getOwner();
  if (isa<ReturnOp>(user)) {
    auto readers = readersOf(cast<FragmentOp>(user->getParentOp()), use.getOperandNumber());
    return readers && llvm::all_of(*readers, [&](Value reader) { return carry(reader, carried); });
  }
  bool joint = false;
  if (isa<ConstrainOp>(user) || !isLinearIn(use, joint) || joint || !unreduced.lookup(user->getResult(0)).empty())
    return false;
  for (Value operand : user->getOperands())
    if (isCutBy(dimsOf(operand), carried.axes))
      return false;
  return carry(user->getResult(0), carried);
}

/// Adds a value to the carried ones: up to smaller values, if all its uses allow that, else to its one user, which
/// reduces it. A value already sharded over the sum's axes ends the chain.
bool Propagation::carry(Value value, CarriedSum &carried) {
  bool cut = isCutBy(dimsOf(value), carried.axes);
  bool ends = value.hasOneUse() && !isa<ReturnOp>(*value.getUsers().begin());
  bool liesOtherwise = dimsOf(value) != ArrayRef<Axes>(layouts.of(value).dims); // a summand of an accumulator
  if (llvm::is_contained(carried.values, value) || liesOtherwise || (cut && !ends))
    return false;
  size_t count = carried.values.size();
  int64_t bytes = carried.bytes;
  carried.values.push_back(value);
  if (!cut && llvm::all_of(value.getUses(), [&](OpOperand &use) { return carryUse(use, carried); }) &&
      carried.bytes - bytes <= reductionBytes(value, cut))
    return true;
  carried.values.truncate(count + 1);
  carried.bytes = bytes + reductionBytes(value, cut);
  return ends;
}

/// The sums that fragments compute and reduce in place, with their axes.
SmallVector<std::pair<Value, Axes>> Propagation::listReducedSums() {
  SmallVector<std::pair<Value, Axes>> sums;
  for (auto [run, fragment] : runs)
    for (Operation &op : fragment.getBlock().without_terminator()) {
      if (op.getNumResults() != 1 || !rules.count(&op) || isa<ConstrainOp>(op))
        continue;
      Value value = op.getResult(0);
      Axes axes = unreduced.lookup(value).empty() ? sumAxes(&op, value) : Axes();
      if (!axes.empty() && cast<RankedTensorType>(value.getType()).getNumElements() >= fewElements)
        sums.push_back({value, axes});
    }
  return sums;
}

/// Carries sums if that pays; all are listed first, since carrying one makes its users unreduced.
void Propagation::carrySums() {
  for (auto &[sum, axes] : listReducedSums()) {
    CarriedSum carried;
    carried.axes = axes;
    if (!unreduced.lookup(sum).empty() || !carry(sum, carried) ||
        4 * carried.bytes > 3 * reductionBytes(sum, /*cut=*/false))
      continue;
    for (Value value : carried.values) {
      SmallVector<Axes> dims(dimsOf(value));
      for (Axes &dim : dims)
        llvm::erase_if(dim, [&](StringAttr axis) { return llvm::is_contained(axes, axis); });
      bare[value] = dims;
      unreduced[value] = axes;
      setSharding(value, makeSharding(value.getContext(), dims, axes));
    }
  }
}

} // namespace par
