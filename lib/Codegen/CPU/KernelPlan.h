#ifndef PAR_LIB_CODEGEN_CPU_KERNELPLAN_H
#define PAR_LIB_CODEGEN_CPU_KERNELPLAN_H

#include "Access.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/MapVector.h"

namespace par::cpu {

/// How often each loop of a generic runs: a result's loops as far as the result, the others as far as the operands.
llvm::SmallVector<int64_t> loopSizes(mlir::linalg::GenericOp op);

/// An element that a nest reads from a buffer: of an argument, or of what another nest has computed.
struct Read {
  mlir::Value source;
  Index index;              ///< in the source's shape
  mlir::AffineExpr address; ///< row-major, in elements
};

/// Where the value of a nest lies.
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
  /// Results of the kernel that this nest writes.
  llvm::SmallVector<unsigned> results;
  Place place = Place::Register;
  uint64_t offset = 0; ///< Scratch: bytes

  mlir::Value value() const { return mlir::linalg::GenericOp(op).getResult(0); }
  llvm::SmallVector<int64_t> sizes() const { return loopSizes(op); }
  bool isReduction() const { return !reducedLoops.empty(); }
};

/// The loops of one kernel: an outer nest over `rows`, the leading dims that all nests share, and in it, in
/// this order, the rest of every nest.
struct KernelPlan {
  std::vector<Nest> nests;
  llvm::DenseMap<mlir::Value, unsigned> nestOf;
  llvm::SmallVector<int64_t> rows;
  uint64_t scratchBytes = 0;
  /// Rows of the first dim in one tile, and the number of tiles.
  int64_t tileRows = 1;
  uint32_t tiles = 1;

  /// Bytes of the part of a nest's value that one row has.
  uint64_t bytesPerRow(const Nest &nest) const;
};

/// Bytes of an element in memory; booleans take one.
uint64_t elementBytes(mlir::Type element);

/// Decides which generics of a lowered kernel get a nest, and their common rows.
KernelPlan planKernel(mlir::func::FuncOp function);

} // namespace par::cpu

#endif
