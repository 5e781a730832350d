// A sum over ranks is reduced where it has become small.
//
// What a product of rows makes is a sum of parts, one a rank, and is reduced where it stands unless it goes to an
// accumulator. Ops that are linear in it may stand between it and a smaller value, or one that is cut over the same
// ranks: experts' results, one for each token and expert, are weighed and added up for each token. Where all that reads
// such a sum is linear in it up to values that take at most three quarters of what reducing it would, the sum is
// carried there, also from forward into backward, which reads it for the weights' gradient:
//
//     %p = dot %a, %w    [tokens * k, h]  unreduced        %p = dot %a, %w    unreduced
//     %e = all_reduce %p                                   %m = multiply %p, %g
//     %m = multiply %e, %g                            ->   %s = reduce %m     [tokens, h]  unreduced
//     %s = reduce %m     [tokens, h]                       %r = reduce_scatter %s
//
// Where a value ends being a sum, its one user brings it into the layout that it wants. Numbers of ranks and links are
// not looked at.
#include "Propagation.h"

#include "par/Dialect/Interfaces/Cost.h"

using namespace mlir;

namespace par {

constexpr int64_t fewElements = 1024; ///< a reduction of these takes its latency, wherever it stands

static bool isCutBy(ArrayRef<Axes> dims, const Axes &axes) {
  return llvm::any_of(dims, [&](const Axes &dim) {
    return llvm::any_of(dim, [&](StringAttr axis) { return llvm::is_contained(axes, axis); });
  });
}

/// An all-reduce moves what it reduces twice, a reduce-scatter once.
static int64_t reductionBytes(Value value, bool cut) { return cut ? getByteSize(value) : 2 * getByteSize(value); }

/// The arguments by which other fragments read what a fragment returns; nothing if anything else reads it, or a
/// fragment that runs several times, which may be handed what is no sum.
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

/// Whether one use of a carried sum can bear it.
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

/// Adds a value to those that are carried: up to smaller ones, if all its uses can bear it, else to its one user, which
/// reduces it. What lies cut over the axes is as far as a sum goes.
bool Propagation::carry(Value value, CarriedSum &carried) {
  bool cut = isCutBy(dimsOf(value), carried.axes);
  bool ends = value.hasOneUse() && !isa<ReturnOp>(*value.getUsers().begin());
  bool liesOtherwise = dimsOf(value) != ArrayRef<Axes>(layoutOf(value).dims); // a summand of an accumulator
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

/// The sums that fragments make and reduce where they stand, with their axes.
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

/// Carries what pays. All sums are found first: what reads a carried sum is none by that.
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
