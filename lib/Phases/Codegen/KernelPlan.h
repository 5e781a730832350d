#pragma once

#include "Access.h"
#include "LinearForms.h"
#include "par/Base/TypeSize.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/MapVector.h"

namespace par::codegen {

/// How often each loop of a generic runs: a result's loops as far as the result, the others as far as the operands.
llvm::SmallVector<int64_t> loopSizes(mlir::linalg::GenericOp op);

/// An element that a nest reads from memory: of an argument, a constant table, or another nest's value.
struct Read {
  mlir::Value source;
  Index index;              ///< in the source's shape
  mlir::AffineExpr address; ///< row-major, in elements
};

/// Storage of a nest's value.
enum class Place { Register, Stack, Scratch, Result };

/// A linalg.generic that is computed into a place of its own; every other one is computed where its elements
/// are read.
struct Nest {
  mlir::linalg::GenericOp op;
  std::vector<Read> reads;
  /// The loop along each dim of the result, and the loops that are reduced.
  llvm::SmallVector<unsigned> resultLoops, reducedLoops;
  /// The loop with most reads at stride 1, which should be innermost.
  unsigned innermost = 0;
  /// Set if not every element of the result reads the whole operand: then no row is along that loop.
  std::optional<Addressing> addressed;
  std::optional<Running> running;
  std::optional<Sorting> sorting;
  /// Something that the nest computes depends on where it is: an index, or an element that only running finds.
  bool positional = false;
  /// By row dim of the kernel, the dim of the result.
  llvm::SmallVector<unsigned> rowDims;
  /// How often each loop runs as it is emitted: 1 (index 0) for one that the next takes over.
  llvm::SmallVector<int64_t> loops;
  /// Results of the kernel that this nest writes.
  llvm::SmallVector<unsigned> results;
  Place place = Place::Register;
  uint64_t offset = 0; ///< Scratch: bytes

  mlir::Value value() const { return mlir::linalg::GenericOp(op).getResult(0); }
  llvm::SmallVector<int64_t> sizes() const { return loopSizes(op); }
  bool isReduction() const { return !reducedLoops.empty(); }
  /// The loop of the result that its elements do not run along one by one.
  std::optional<unsigned> wholeLoop() const {
    return addressed ? std::optional(addressed->loop)
           : running ? std::optional(running->loop)
           : sorting ? std::optional(sorting->loop)
                     : std::nullopt;
  }
  /// Steps that are taken: of all loops, but for those that the nest need not take.
  int64_t steps() const;
  /// The loop over row dim `row` of the kernel.
  unsigned rowLoop(size_t row) const { return resultLoops[rowDims[row]]; }
  /// The loops over the dims of the result that are no rows, outer ones first.
  llvm::SmallVector<unsigned> freeLoops() const;
  /// Row-major address of an element within the part of the value that one row has.
  mlir::AffineExpr addressInRow(llvm::ArrayRef<mlir::AffineExpr> index) const;
};

/// The loops of one kernel: an outer nest over `rows`, dims that the results of all nests share, and in it, in this
/// order, the rest of every nest.
struct KernelPlan {
  std::vector<Nest> nests;
  llvm::DenseMap<mlir::Value, unsigned> nestOf;
  llvm::SmallVector<int64_t> rows;
  /// How often each row loop runs as it is emitted: 1 for one that the next takes over.
  llvm::SmallVector<int64_t> rowLoops;
  uint64_t scratchBytes = 0;
  /// The first row loop that is left, or 0; its iterations in one tile, and the number of tiles.
  size_t tileLoop = 0;
  int64_t tileRows = 1;
  uint32_t tiles = 1;

  /// Bytes of the part of a nest's value that one row has.
  uint64_t bytesPerRow(const Nest &nest) const;
  /// A row has one element of the nest's value.
  bool isSingle(const Nest &nest) const;
  /// Whether the kernel is one sum that adds to elements in memory, a matmul for example, and rows that differ only in
  /// the last row loop read the same elements of one operand: `blockRows` of them together read it once.
  bool rowsShareReads() const;
  static constexpr int64_t blockRows = 4;
  /// The row loop along which a large tensor is contiguous, if rows are single elements and results are contiguous
  /// along the last loop: a transpose. In squares of both loops, the lines of a column stay in the nearest cache until
  /// their other elements are read.
  std::optional<size_t> rowsAcross() const;
  static constexpr int64_t square = 32;
};

/// Options of a plan that depend on the target.
struct PlanOptions {
  /// Maximum bytes of a row's values on the stack, all together; larger values go to the scratch operand.
  uint64_t stackLimit = 64 << 10;
  /// A lone reduction has its whole result as rows, whatever its innermost loop is: a row is for threads to share.
  bool manyRows = false;
  /// Maximum number of elements of a result that are computed in parallel: up to so many, each can read the whole
  /// operand in the time that one takes.
  int64_t sideBySide = 0;
};

/// Decides which generics of a lowered kernel get a nest, and their common rows.
KernelPlan planKernel(mlir::func::FuncOp function, const PlanOptions &options = {});

/// `address` with like terms added up. Its dims are a nest's loops and, beyond them, one for each index known only when
/// running: 64 where a cubic sample of a volume is read.
mlir::AffineExpr simplifyAddress(mlir::AffineExpr address);

/// By how much `address` grows with one more of loop `dim`; none if that varies.
std::optional<int64_t> strideAlong(mlir::AffineExpr address, unsigned dim);

/// Part of planKernel: the rows that all nests share, as far as every nest reads only its own row of the others. These
/// are leading dims or, where that comes to nothing, the dims that reductions keep, wherever they are in the results.
void chooseRows(KernelPlan &plan, bool manyRows);

/// Part of planKernel: makes one loop of two that step through everything as one would.
void mergeLoops(KernelPlan &plan);

/// The buffers of a kernel: one for every argument and result; a tied result has its argument's.
struct KernelBuffers {
  /// Position in the ABI's `ptr` of each tensor argument and of each result.
  llvm::SmallVector<unsigned> arguments, results;
  /// Position of the scratch operand; -1 if there is none.
  int scratch = -1;
  unsigned count = 0;
};

/// Fails where a nest would read a tied argument after its storage has got the result.
mlir::LogicalResult checkTied(mlir::func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers);

} // namespace par::codegen
