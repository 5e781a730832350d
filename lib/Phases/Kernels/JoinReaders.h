#pragma once

#include "EarlyLoads.h"
#include "Groups.h"

namespace par {

/// Finds which group may be delayed until another one that reads its results, so that the two can become one: no other
/// group has to wait, there is no cycle, and no store comes between.
class JoinReaders {
public:
  /// `isCloned`: for ops that only their readers compute. The groups may change between calls, the block may not.
  JoinReaders(BlockOp block, const llvm::DenseMap<mlir::Operation *, Group *> &groupOf, IsTaken isCloned);

  /// Whether `maker` may move to where `reader` is, which reads it.
  bool mayWait(const Group &maker, const Group &reader) const;
  /// Whether `group` may move to where `other` is, which reads all that it reads, but not its results.
  bool mayWaitBeside(const Group &group, const Group &other) const;

private:
  /// Readers of a group's results, other than the two groups.
  struct Others {
    llvm::SmallVector<mlir::Operation *> ops;
    bool inTime = true;  ///< they come after all dependences of the second one
    int64_t bytes = 0;   ///< of the results that are read outside of the group
    bool isRead = false; ///< by the second one, too
  };
  Others findOthers(const Group &group, const Group &second) const;
  template <typename Visit>
  void forEachReader(mlir::Operation *op, Visit visit) const;
  unsigned lastSource(const Group &maker, const Group &reader) const;
  bool readsStored(const Group &maker) const;
  bool leadsTo(llvm::SmallVector<mlir::Operation *> from, const Group &reader) const;
  bool isComputedByReaders(mlir::Operation *op) const { return !groupOf.contains(op) && (isFree(op) || isCloned(op)); }

  const llvm::DenseMap<mlir::Operation *, Group *> &groupOf;
  IsTaken isCloned;
  llvm::DenseMap<mlir::Operation *, unsigned> position;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> nextFixed; ///< ops that stay keep their order
  EarlyLoads loads;
};

} // namespace par
