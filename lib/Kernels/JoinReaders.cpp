#include "JoinReaders.h"
#include "Values.h"

using namespace mlir;

namespace par {

JoinReaders::JoinReaders(BlockOp block, const llvm::DenseMap<Operation *, Group *> &groupOf, IsTaken isCloned)
    : groupOf(groupOf), isCloned(isCloned) {
  Operation *before = nullptr;
  for (auto [number, op] : llvm::enumerate(block.getBody().front())) {
    position[&op] = number;
    if (auto store = dyn_cast<StoreOp>(op))
      stored.insert(store.getBufferAttr().getAttr());
    if (isKernelOp(&op) || isEarlyLoad(&op))
      continue;
    if (before)
      nextFixed[before] = &op;
    before = &op;
  }
}

/// Calls visit(reader) for the ops that read what `op` gives, through those that each reader computes for itself.
template <typename Visit>
void JoinReaders::forEachReader(Operation *op, Visit visit) const {
  for (Operation *user : op->getUsers())
    if (isKernelOp(user) && isComputedByReaders(user))
      forEachReader(user, visit);
    else
      visit(user);
}

/// The place of the last value that the reader waits for, other than the maker's.
unsigned JoinReaders::lastSource(const Group &maker, const Group &reader) const {
  unsigned last = 0;
  for (Value argument : reader.arguments)
    if (Operation *source = argument.getDefiningOp(); source && groupOf.lookup(source) != &maker)
      last = std::max(last, position.lookup(source));
  return last;
}

/// A load is the buffer itself: a store may come before what waits.
bool JoinReaders::readsStored(const Group &maker) const {
  return llvm::any_of(maker.arguments, [&](Value argument) {
    auto load = argument.getDefiningOp<LoadOp>();
    return load && stored.contains(load.getBufferAttr().getAttr());
  });
}

/// Whether `reader` waits for one of the ops, however far behind it.
bool JoinReaders::leadsTo(SmallVector<Operation *> from, const Group &reader) const {
  llvm::DenseSet<void *> seen;
  while (!from.empty()) {
    Operation *op = from.pop_back_val();
    Group *group = groupOf.lookup(op);
    if (group == &reader)
      return true;
    if (!seen.insert(group ? static_cast<void *>(group) : op).second)
      continue;
    for (Operation *own : group ? ArrayRef<Operation *>(group->ops) : ArrayRef<Operation *>(op))
      forEachReader(own, [&](Operation *next) {
        if (!group || groupOf.lookup(next) != group)
          from.push_back(next);
      });
    if (Operation *next = nextFixed.lookup(op))
      from.push_back(next);
  }
  return false;
}

bool JoinReaders::mayWait(const Group &maker, const Group &reader) const {
  unsigned last = lastSource(maker, reader);
  SmallVector<Operation *> others;
  int64_t bytes = 0; // that are kept until then, less those that would be otherwise
  bool inTime = true;
  for (Operation *op : maker.ops) {
    bool leaves = false;
    forEachReader(op, [&](Operation *user) {
      Group *group = groupOf.lookup(user);
      if (group == &maker)
        return;
      leaves = true;
      if (group == &reader)
        return;
      inTime &= position.lookup(user) > last;
      others.push_back(user);
    });
    if (leaves)
      for (Value result : op->getResults())
        bytes -= int64_t(bytesOf(result));
  }
  for (Value argument : maker.arguments)
    bytes += int64_t(bytesOf(argument));
  return inTime && bytes <= 0 && !readsStored(maker) && !leadsTo(std::move(others), reader);
}

} // namespace par
