#pragma once

#include "IndexBounds.h"
#include "KernelPlan.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

#include <map>

namespace par::codegen {

/// Emits the code of one element of a tensor at the insertion point: loads from memory, and the bodies of generics that
/// are recomputed at their use. Elements that are known already are not computed again.
class ElementEmitter {
public:
  /// Loops of one nest at most; dims from there on are indices known when running.
  static constexpr size_t maxLoops = 32;
  using MemoKey = std::pair<void *, std::vector<void *>>;
  using Memo = std::map<MemoKey, mlir::Value>;

  ElementEmitter(mlir::func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers,
                 mlir::LLVM::LLVMFuncOp target);

  mlir::Value constant(int64_t value);
  mlir::Value pointer(unsigned operand);
  void bindImmediates();
  void allocateStack();
  mlir::Value load(mlir::Value base, mlir::Type element, mlir::Value address);
  void store(mlir::Value value, mlir::Value base, mlir::Value address);
  /// Divisions round down, as those of affine expressions do.
  mlir::Value expand(mlir::AffineExpr expr);
  /// Dims up to there are the loops of this nest.
  void setLoops(llvm::ArrayRef<int64_t> sizes);
  /// One element of a tensor, computed on the spot or read from where it lies.
  mlir::Value readElement(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> index);
  mlir::Value baseOf(const Nest &nest);
  /// The body of a generic at an iteration; `combined` is its last argument, for reductions.
  mlir::Value computeBody(mlir::linalg::GenericOp generic, llvm::ArrayRef<mlir::AffineExpr> iteration,
                          mlir::Value combined);

  mlir::OpBuilder builder;
  mlir::Location loc;
  /// Values of dims: at first the loops of the nest that is being emitted, from maxLoops on indices known
  /// when running, of all nests, so that no two of them are confused.
  llvm::SmallVector<mlir::Value> dims;
  /// Bounds of each of `dims` wherever it is an index; those of loops are as in setLoops.
  llvm::SmallVector<IndexBounds> bounds;
  /// Elements known at this place.
  Memo memo;
  /// Bytes in the scratch operand before those of this row; null: none.
  mlir::Value scratchBegin;
  /// Addresses of values of Place::Stack.
  llvm::DenseMap<mlir::Value, mlir::Value> stack;
  /// Values of nests that have one element a row.
  llvm::DenseMap<mlir::Value, mlir::Value> registers;
  /// For a thread that computes runs of neighbouring elements: the dim along which they are, the length of a run, the
  /// index of the run, and of the element in it.
  struct Step {
    unsigned dim;
    int64_t run;
    mlir::Value number;
    int64_t offset;
  };
  std::optional<Step> step;
  /// Selects load the operands of both sides, from the tensor's begin where the condition is false. A GPU can then join
  /// loads of neighbouring elements.
  bool withoutBranches = false;

private:
  /// The element at an address of a tensor of `elements`; while `guard` does not hold, one near the begin.
  mlir::Value loadAt(mlir::Value base, mlir::Type element, mlir::AffineExpr address, int64_t elements);
  /// Whether the element, or the ops of the block, can be computed for any index of the tensors that it reads.
  bool isCheapAnywhere(mlir::Value tensor);
  bool isCheapAnywhere(mlir::Block &block);
  /// dividend floordiv divisor, or its remainder. LLVM divides unsigned numbers best: a dividend that may be negative
  /// is raised by a multiple of the divisor if its lower bound is known, and the quotient lowered again.
  mlir::Value divide(mlir::AffineExpr dividend, int64_t divisor, bool remainder);
  mlir::Value divideAny(mlir::Value dividend, int64_t divisor, bool remainder);
  static mlir::Type memoryType(mlir::Type element);
  mlir::Value elementPointer(mlir::Value base, mlir::Type element, mlir::Value address);
  static MemoKey makeKey(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index);
  mlir::Value computeElement(mlir::Value source, llvm::ArrayRef<mlir::AffineExpr> index, mlir::AffineExpr address);
  mlir::Value readNest(const Nest &nest, llvm::ArrayRef<mlir::AffineExpr> index, mlir::AffineExpr address);
  mlir::Value clone(mlir::Value scalar);
  /// A scalar of the function's own level: an immediate, or arithmetic on some.
  mlir::Value scalarOf(mlir::Value value);
  /// Address of a constant that is no splat, which becomes data of the object.
  mlir::Value addressOf(mlir::DenseElementsAttr dense);
  void emitBody(mlir::Block &block, llvm::ArrayRef<mlir::AffineExpr> iteration, mlir::IRMapping &mapping);
  /// A branch, which the vectoriser turns into loads under a mask; without branches: both sides.
  void emitChoice(mlir::scf::IfOp choice, llvm::ArrayRef<mlir::AffineExpr> iteration, mlir::IRMapping &mapping);
  /// Indices that depend on values become dims of their own.
  mlir::Value readExtracted(mlir::tensor::ExtractOp extract, llvm::ArrayRef<mlir::AffineExpr> iteration,
                            mlir::IRMapping &mapping);

  mlir::func::FuncOp function;
  const KernelPlan &plan;
  const KernelBuffers &buffers;
  mlir::LLVM::LLVMFuncOp target;
  llvm::DenseMap<mlir::Value, mlir::Value> immediates;
  /// The condition of the choices around this place, or null.
  mlir::Value guard;
  unsigned globals = 0;
};

} // namespace par::codegen
