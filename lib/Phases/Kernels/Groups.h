#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// True for ops that a group computes already.
using IsTaken = llvm::function_ref<bool(mlir::Operation *)>;

/// The tensor ops of a block that become one kernel.
struct Group {
  /// Ops that no other group computes, in block order.
  llvm::SmallVector<mlir::Operation *> ops;
  /// Layout ops of arguments that this group computes for itself; all free ones if `clonesFree`.
  llvm::SmallPtrSet<mlir::Operation *, 4> clones;
  bool clonesFree = false;
  std::string implementation = "generated";
  /// Results and the arguments whose storage they take over.
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> tied;
  /// The group is launched where this op stood.
  mlir::Operation *anchor = nullptr;

  // The body, computed by `close`: clones and ops in an order of dependence, and the values they read.
  llvm::SmallVector<mlir::Operation *> body;
  llvm::SmallVector<mlir::Value> arguments;
  llvm::SmallVector<mlir::Value> results;

  /// Computes `body` and `arguments`; results of other groups become arguments.
  void close(IsTaken isTaken);
  /// Absorbs `op` and the ops it absorbed earlier, even if another group computes them too.
  void absorb(mlir::Operation *op, IsTaken isTaken);
};

/// True for ops that cost nothing inside a kernel: each kernel that reads their result recomputes it.
bool isFree(mlir::Operation *op);
/// True for ops that may be in kernels.
bool isKernelOp(mlir::Operation *op);
/// True for a load that may stand anywhere before its place: no store to its buffer comes earlier in the block.
bool isEarlyLoad(mlir::Operation *op);

/// The add of `value` to an accumulator that the sum may overwrite: a loaded buffer to which the sum is stored, or a
/// result of an earlier group. Neither operand has another user.
AddOp findAccumulation(mlir::Value value, mlir::Value &accumulator, IsTaken isTaken);
/// The group of an f32 matmul that is one library call, with the layout ops and the accumulation that the call can
/// express. With `narrow` the call may read and write bf16 or f16. Null if there is none.
std::unique_ptr<Group> formMatmul(DotOp dot, bool narrow, IsTaken isTaken);
/// The group of an op that the runtime has a kernel for, on a GPU perhaps a form that a CPU has not; null for other
/// ops.
std::unique_ptr<Group> formBuiltin(mlir::Operation *op, bool gpu, IsTaken isTaken);
/// The group, closed, as the builtin that its body amounts to; null if it is none, or one that only a GPU has.
std::unique_ptr<Group> finishBuiltin(std::unique_ptr<Group> group, bool gpu, IsTaken isTaken);
/// The group of an attention that a library computes, with the layout ops of heads that it supports; null for other
/// ops. `isRead`: whether another group reads a value, and may have its own layout ops.
std::unique_ptr<Group> formAttention(mlir::Operation *op, IsTaken isTaken,
                                     llvm::function_ref<bool(mlir::Value)> isRead);
/// Has attentions write their results in the order in which others read them, where other attentions can follow.
void arrangeAttention(BlockOp block);
/// Lets a result take over an argument that is read here for the last time.
void tieAccumulator(Group &group);
/// Writes a result in its argument's buffer if it only appends zeros to it: only the zeros are written.
void fillInPlace(Group &group);

/// Forms the groups of all generated ops that no group computes yet: as many ops in one as share their loops.
void fuseGroups(BlockOp block, bool gpu, llvm::DenseMap<mlir::Operation *, Group *> &groupOf,
                std::vector<std::unique_ptr<Group>> &groups);

/// Makes a concatenation of many inputs one of concatenations of few: a kernel's operands and its code stay bounded.
void splitConcats(BlockOp block);
/// Splits reductions that would run on few blocks of a GPU into two: of parts, and of the parts' results.
void splitSums(BlockOp block, IsTaken isTaken);
/// Halves groups of more operands than a kernel may have.
void splitWideGroups(bool gpu, llvm::DenseMap<mlir::Operation *, Group *> &groupOf,
                     std::vector<std::unique_ptr<Group>> &groups);
/// Changes fused groups for a GPU, where memory traffic is the cost of a kernel: a group recomputes elementwise values
/// whose operands take fewer bytes to read.
void refineForGpu(BlockOp block, llvm::DenseMap<mlir::Operation *, Group *> &groupOf,
                  std::vector<std::unique_ptr<Group>> &groups);

/// Rounds rows that are added to matmuls before their broadcast: the library adds rows of the matmul's type.
void roundRowsFirst(BlockOp block);
/// Rounds f32 results of ops with bf16 or f16 operands to that type, if a GPU's library has no other variant: its
/// convolutions of 16-bit operands have no f32 results.
void roundForLibrary(BlockOp block);
/// Fuses a group on a matmul's result into the matmul's epilogue, if the library has it and the result has no other
/// users. Groups have their results by then.
void fuseEpilogues(BlockOp block, llvm::DenseMap<mlir::Operation *, Group *> &groupOf,
                   std::vector<std::unique_ptr<Group>> &groups);

/// Fuses the sum of a matmul's operand over the contracted dims into the matmul, if the library can compute it (a bias
/// gradient with a weight gradient): before sums are split.
void fuseBiasGradients(BlockOp block, llvm::DenseMap<mlir::Operation *, Group *> &groupOf,
                       std::vector<std::unique_ptr<Group>> &groups);

/// All groups of a block; every value that a group or another op reads is a result of one or of no tensor op.
std::vector<std::unique_ptr<Group>> formGroups(BlockOp block, bool gpu);

/// A kernel with a group's body, at the builder's place, named "kernel".
KernelOp buildKernel(mlir::OpBuilder &builder, const Group &group);

} // namespace par
