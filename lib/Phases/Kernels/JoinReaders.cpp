#include "JoinReaders.h"
#include "Values.h"

using namespace mlir;

namespace par {

JoinReaders::JoinReaders(BlockOp block, const llvm::DenseMap<Operation *, Group *> &groupOf, IsTaken isCloned)
    : groupOf(groupOf), isCloned(isCloned) {
  Operation *before = nullptr;
  for (auto [number, op] : llvm::enumerate(block.getBody().front())) {
    position[&op] = number;
    if (loads.pass(&op) || isKernelOp(&op))
      continue;
    if (before)
      nextFixed[before] = &op;
    before = &op;
  }
}

/// Calls visit(reader) for the readers of `op`, also through ops that each reader recomputes.
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

/// A load is the buffer itself: a store may come before the delayed group.
bool JoinReaders::readsStored(const Group &maker) const {
  return llvm::any_of(maker.arguments, [&](Value argument) {
    auto load = argument.getDefiningOp<LoadOp>();
    return load && loads.isStored(load);
  });
}

/// Whether `reader` depends on one of the ops, at any distance.
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

JoinReaders::Others JoinReaders::findOthers(const Group &group, const Group &second) const {
  Others found;
  unsigned last = lastSource(group, second);
  for (Operation *op : group.ops) {
    bool leaves = false;
    forEachReader(op, [&](Operation *user) {
      Group *reader = groupOf.lookup(user);
      if (reader == &group)
        return;
      leaves = true;
      if (reader == &second) {
        found.isRead = true;
        return;
      }
      found.inTime &= position.lookup(user) > last;
      found.ops.push_back(user);
    });
    if (leaves)
      for (Value result : op->getResults())
        found.bytes += int64_t(bytesOf(result));
  }
  return found;
}

bool JoinReaders::mayWait(const Group &maker, const Group &reader) const {
  Others others = findOthers(maker, reader);
  int64_t bytes = -others.bytes; // that are kept until then, less those that would be otherwise
  for (Value argument : maker.arguments)
    bytes += int64_t(bytesOf(argument));
  return others.inTime && bytes <= 0 && !readsStored(maker) && !leadsTo(std::move(others.ops), reader);
}

bool JoinReaders::mayWaitBeside(const Group &group, const Group &other) const {
  Others others = findOthers(group, other);
  bool readsLess =
      llvm::all_of(group.arguments, [&](Value value) { return llvm::is_contained(other.arguments, value); });
  return readsLess && !others.isRead && others.inTime && !readsStored(group) && !leadsTo(std::move(others.ops), other);
}

} // namespace par
