#pragma once

#include "Combiner.h"
#include "ElementEmitter.h"

namespace par::codegen {

/// Emits one row of a kernel, one nest after the other, as loops of one thread. The caller opens the loops over rows
/// and sets `rowIndices`.
class RowEmitter {
public:
  RowEmitter(mlir::func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers,
             mlir::LLVM::LLVMFuncOp target)
      : plan(plan), buffers(buffers), elements(function, plan, buffers, target) {}

  /// A loop over [from, to) that carries values; the body gives the next ones.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value from, mlir::Value to, mlir::Value step, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  /// Values of one element a row stay in elements.registers; their stores come last, so that every read of a
  /// tied argument in this row precedes them.
  void emitRow() { storeRow(computeRow()); }
  /// The same for several rows at once, with these indices of the last row loop. Each element adds in the order of a
  /// single row; operands that all rows share are read once. Only if the plan's rows share reads.
  void emitRowsTogether(llvm::ArrayRef<mlir::Value> lastIndices);
  using Pending = llvm::SmallVector<std::pair<const Nest *, mlir::Value>>;
  Pending computeRow();
  void storeRow(const Pending &pending);
  bool hasRowsInOrder(const Nest &nest);
  /// Row loops of the nest get the rows' indices; the others are set as their loops are opened.
  void bindLoops(const Nest &nest);
  /// Opens the loop `position` of the nest around `body`; nothing to open for size 1.
  llvm::SmallVector<mlir::Value> open(const Nest &nest, unsigned position, mlir::ValueRange carried,
                                      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)> body);
  /// Initial value of a reduction, at the current result index.
  mlir::Value start(const Nest &nest);
  /// The reduced loops from `number` on, with the value in a register.
  mlir::Value reduceToRegister(const Nest &nest, size_t number, mlir::Value value);
  /// The same for a long sum: loops are split into parts, each of which is summed by itself.
  mlir::Value sumInParts(const Nest &nest, const Combiner &sum, size_t number);
  /// The result's loops from free loop `number` on, the element in the middle.
  void emitElements(const Nest &nest, size_t number);
  /// A loop over parts of [from, to), as long as a square's side but for the last unless they are `whole`; `body` gets
  /// their bounds.
  void openParts(mlir::Value from, mlir::Value to, bool whole, llvm::function_ref<void(mlir::Value, mlir::Value)> body);
  void emitStart(const Nest &nest, size_t number);
  /// Reduced loops outside, the result's inside, the innermost one last.
  llvm::SmallVector<unsigned> loopOrder(const Nest &nest);
  /// One step of a reduction whose element is in memory.
  void accumulateElement(const Nest &nest);
  /// Adds to the elements in memory.
  void emitAccumulation(const Nest &nest, llvm::ArrayRef<unsigned> order, size_t number);
  /// Takes the updates in their order, each to the element that its index names: of those that `isOwn` wants, if that
  /// is set. An index outside names none.
  void emitUpdates(const Nest &nest, llvm::function_ref<mlir::Value(mlir::Value)> isOwn = {});
  void emitUpdates(const Nest &nest, llvm::ArrayRef<unsigned> order, size_t named, size_t number,
                   llvm::function_ref<mlir::Value(mlir::Value)> isOwn);
  /// Each element from its neighbour.
  void emitRunning(const Nest &nest);
  /// Sorts by the nest's comparison, in the result's memory.
  void emitSorting(const Nest &nest);
  /// The loops from `number` on around `body`.
  void forEach(const Nest &nest, llvm::ArrayRef<unsigned> loops, size_t number, llvm::function_ref<void()> body);
  std::pair<mlir::Value, mlir::Value> resultElement(const Nest &nest);
  void storeElement(const Nest &nest, mlir::Value value);

  const KernelPlan &plan;
  const KernelBuffers &buffers;
  ElementEmitter elements;
  /// The value of each row loop.
  llvm::SmallVector<mlir::Value> rowIndices;
  /// ElementEmitter::Step among rows; `dim` is a row dim of the kernel.
  std::optional<ElementEmitter::Step> rowStep;
  /// Iteration of the current nest.
  Index iteration;
};

} // namespace par::codegen
