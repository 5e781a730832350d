#pragma once

#include "../Combiner.h"
#include "../RowEmitter.h"
#include "LaunchPlan.h"
#include "Threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/MapVector.h"

namespace par::cuda {

using codegen::Combiner;

/// Emits a kernel into a function whose arguments are the operands' pointers and the immediates. Rows that a
/// team holds are in EmitRegisterRow.cpp, sums over leading dims in EmitColumns.cpp, the other ways to share rows in
/// EmitThreads.cpp.
class ThreadEmitter {
public:
  ThreadEmitter(mlir::func::FuncOp function, const codegen::KernelPlan &plan, const LaunchPlan &launch,
                const codegen::KernelBuffers &buffers, mlir::LLVM::LLVMFuncOp target)
      : plan(plan), launch(launch), buffers(buffers), target(target), row(function, plan, buffers, target),
        elements(row.elements), builder(elements.builder), threads{builder, elements.loc} {}

  void emit();

private:
  using Nest = codegen::Nest;
  using Pending = codegen::RowEmitter::Pending;
  using Values = llvm::SmallVector<mlir::Value>;

  mlir::Value constant(int64_t value) { return elements.constant(value); }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(builder, elements.loc, x, y, mlir::arith::IntegerOverflowFlags::nsw);
  }
  mlir::Value multiply(mlir::Value x, int64_t by) {
    return mlir::arith::MulIOp::create(builder, elements.loc, x, constant(by), mlir::arith::IntegerOverflowFlags::nsw);
  }
  mlir::Value divide(mlir::Value x, int64_t by) {
    return mlir::arith::DivUIOp::create(builder, elements.loc, x, constant(by));
  }
  mlir::Value remainder(mlir::Value x, int64_t by) {
    return mlir::arith::RemUIOp::create(builder, elements.loc, x, constant(by));
  }
  mlir::Value isBelow(mlir::Value x, int64_t limit) {
    return mlir::arith::CmpIOp::create(builder, elements.loc, mlir::arith::CmpIPredicate::ult, x, constant(limit));
  }
  mlir::Value least(mlir::Value x, int64_t limit) {
    return mlir::arith::MinUIOp::create(builder, elements.loc, x, constant(limit));
  }
  /// Both, where a null condition always holds.
  mlir::Value both(mlir::Value x, mlir::Value y);
  /// Without a branch where the condition is null.
  void emitIf(mlir::Value condition, llvm::function_ref<void()> body);
  /// The index in an iteration space of these sizes of its element `number`; of size 1: 0.
  Values split(mlir::Value number, llvm::ArrayRef<int64_t> sizes);
  static llvm::SmallVector<int64_t> sizesOf(const Nest &nest, llvm::ArrayRef<unsigned> loops);
  void bindRow(mlir::Value number) { row.rowIndices = split(number, plan.rowLoops); }
  /// The row is one of the `perThread` neighbours that are run `run` of all rows.
  void bindNeighbour(mlir::Value run, unsigned offset);
  /// A part of the block's shared memory as a generic pointer.
  mlir::Value shared(int64_t offset);
  /// A barrier of the threads that share a row, and of their writes.
  void sync();
  /// Stores values with one element a row: one thread does, after every read of the row.
  void storePending(const Pending &pending, mlir::Value active);

  void emitRows();

  void emitTeams();
  void emitTeamRow();
  void emitNest(const Nest &nest);
  void emitUpdates(const Nest &nest);
  void placeValues(mlir::Value team);
  Values forShare(const Nest &nest, llvm::ArrayRef<unsigned> loops, int64_t run, mlir::ValueRange carried,
                  llvm::function_ref<Values(mlir::ValueRange)> body, llvm::function_ref<void()> after);
  int64_t runOf(const Nest &nest, llvm::ArrayRef<unsigned> loops) const;
  mlir::Value reduce(const Nest &nest);
  /// Joined over the threads of a row; `slots` is where in shared memory warps leave their parts.
  mlir::Value join(const Combiner &combiner, mlir::Value part, int64_t slots);

  /// A run of neighbouring elements that this thread has of its row.
  struct Chunk {
    mlir::Value number;
    mlir::Value valid; ///< null: it is within every row
  };
  void emitHeld();
  /// Calls `body` for each element of a chunk, with the nest's loops there and the values that are held of it
  /// known.
  void forChunk(const Nest &nest, llvm::ArrayRef<unsigned> loops, unsigned chunk, llvm::function_ref<void()> body);
  mlir::Value reduceHeld(const Nest &nest, int64_t slots);
  void computeHeld(const Nest &nest, mlir::Value active);
  bool overwritesArgument(const Nest &nest) const;

  void emitColumns();
  /// Binds the nest's rows to a column of this thread, with the values of other nests there.
  void bindColumn(const Nest &nest, unsigned column);
  /// The value of `body` in each column.
  Values forColumns(const Nest &nest, llvm::function_ref<mlir::Value(unsigned)> body);
  Values reduceColumns(const Nest &nest);
  Values joinColumns(const Combiner &combiner, Values parts);
  void storeColumns(mlir::Value active);

  const codegen::KernelPlan &plan;
  const LaunchPlan &launch;
  const codegen::KernelBuffers &buffers;
  mlir::LLVM::LLVMFuncOp target;
  codegen::RowEmitter row;
  codegen::ElementEmitter &elements;
  mlir::OpBuilder &builder;
  Threads threads;
  mlir::LLVM::GlobalOp memory;
  /// Index of this thread among those that share a row, and of its rows in the block.
  mlir::Value member, team;
  /// Held: this thread's part of its row.
  llvm::SmallVector<Chunk> chunks;
  /// Columns: the indices of each of its columns as a row, and where it is among its neighbours.
  std::vector<std::pair<Values, std::optional<codegen::ElementEmitter::Step>>> columns;
  /// Values of nests with several elements a row in those that are this thread's; in columns, of all nests.
  llvm::MapVector<mlir::Value, Values> held;
};

} // namespace par::cuda
