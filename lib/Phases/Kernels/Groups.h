#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// True for ops that a group computes already.
using IsTaken = llvm::function_ref<bool(mlir::Operation *)>;

/// The tensor ops of a block that become one kernel.
struct Group {
  /// Ops that no other group computes, in block order.
  llvm::SmallVector<mlir::Operation *> ops;
  /// Movements of arguments that this group computes for itself; all free ones if `clonesFree`.
  llvm::SmallPtrSet<mlir::Operation *, 4> clones;
  bool clonesFree = false;
  std::string implementation = "generated";
  /// Results and the arguments whose storage they take over.
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> tied;
  /// The group is launched where this op stood.
  mlir::Operation *anchor = nullptr;

  // What forms the body, computed by `close`: clones and ops in an order of dependence, and the values they read.
  llvm::SmallVector<mlir::Operation *> body;
  llvm::SmallVector<mlir::Value> arguments;
  llvm::SmallVector<mlir::Value> results;

  /// Computes `body` and `arguments`; what other groups compute is read from them.
  void close(IsTaken isTaken);
  /// Computes `op` for itself too. What it computed so far it goes on to, also where a group has been made since for
  /// somebody who reads that: what that group reads may be a result of this one.
  void absorb(mlir::Operation *op, IsTaken isTaken);
};

/// True for ops that cost nothing inside a kernel: each kernel that reads their result computes it anew.
bool isFree(mlir::Operation *op);
/// True for ops that kernels are made of.
bool isKernelOp(mlir::Operation *op);
/// True for a load that may stand anywhere before its place: no store to its buffer comes earlier in the block.
bool isEarlyLoad(mlir::Operation *op);

/// The add of `value` to an accumulator in whose place the sum may stand, if nobody else reads either: what a buffer
/// holds that a sum goes back to, or what another group has made before.
AddOp findAccumulation(mlir::Value value, mlir::Value &accumulator, IsTaken isTaken);
/// The group of a product of f32 that is one library call, with the movements and the accumulation that the call can
/// express, and, if calls may be `narrow`, with its operands and its result kept in bf16 or f16; null if there is none.
std::unique_ptr<Group> formProduct(DotOp dot, bool narrow, IsTaken isTaken);
/// The group of an op that the runtime has a kernel for, on a GPU perhaps a form that a CPU has not; null for other
/// ops.
std::unique_ptr<Group> formBuiltin(mlir::Operation *op, bool gpu, IsTaken isTaken);
/// The group, closed, as the builtin that its body amounts to; null if it is none, or one that only a GPU has.
std::unique_ptr<Group> finishBuiltin(std::unique_ptr<Group> group, bool gpu, IsTaken isTaken);
/// The group of an attention that a library computes, with the movements of heads that it can do; null for other ops.
/// `isRead`: whether another group reads a value, which may move it for itself.
std::unique_ptr<Group> formAttention(mlir::Operation *op, IsTaken isTaken,
                                     llvm::function_ref<bool(mlir::Value)> isRead);
/// Has attentions write their results in the order in which others read them, where other attentions can follow.
void arrangeAttention(BlockOp block);
/// Lets a result take over an argument that is read here for the last time.
void tieAccumulator(Group &group);
/// Lets a result that is its argument with zeros behind it take over the argument, so that the zeros alone are written.
void fillInPlace(Group &group);

/// Forms the groups of all generated ops that no group computes yet: as many ops in one as share their loops.
void fuseGroups(BlockOp block, bool gpu, llvm::DenseMap<mlir::Operation *, Group *> &groupOf,
                std::vector<std::unique_ptr<Group>> &groups);

/// Makes a concatenation of many inputs one of concatenations of few: a kernel's operands and its code stay bounded.
void splitConcats(BlockOp block);
/// Makes reductions that would run on few blocks of a GPU two: of parts, and of what these give. Their results stay.
void splitSums(BlockOp block, IsTaken isTaken);
/// Halves groups of more operands than a kernel may have.
void splitWideGroups(bool gpu, llvm::DenseMap<mlir::Operation *, Group *> &groupOf,
                     std::vector<std::unique_ptr<Group>> &groups);
/// Changes fused groups for a GPU, where memory traffic is what a kernel costs: a group computes elementwise values for
/// itself that take more bytes to read than what they are computed from.
void refineForGpu(BlockOp block, llvm::DenseMap<mlir::Operation *, Group *> &groupOf,
                  std::vector<std::unique_ptr<Group>> &groups);

/// Narrows rows that are added to products before they are repeated: the library adds rows of the product's format.
void roundRowsFirst(BlockOp block);
/// Rounds f32 results of ops whose operands are kept in bf16 or f16 to that, where a GPU's library computes them so
/// alone: its convolutions of narrow operands have no f32 results.
void roundForLibrary(BlockOp block);
/// Gives products of the library what a fused group does to their results, where the library can do that and nobody
/// else reads them. Groups have their results by then.
void fuseEpilogues(BlockOp block, llvm::DenseMap<mlir::Operation *, Group *> &groupOf,
                   std::vector<std::unique_ptr<Group>> &groups);

/// Gives products of the library the sums of an operand over what they contract, as the gradient of a bias beside that
/// of a weight, where the library can do that: before sums are split.
void fuseOperandSums(BlockOp block, llvm::DenseMap<mlir::Operation *, Group *> &groupOf,
                     std::vector<std::unique_ptr<Group>> &groups);

/// All groups of a block; every value that a group or another op reads is a result of one or of no tensor op.
std::vector<std::unique_ptr<Group>> formGroups(BlockOp block, bool gpu);

/// A kernel with a group's body, at the builder's place, named "kernel".
KernelOp buildKernel(mlir::OpBuilder &builder, const Group &group);

} // namespace par
