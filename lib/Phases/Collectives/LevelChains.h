#pragma once

#include "par/Dialect/Beside.h"
#include "par/Phases/Decompose/HostLevels.h"

namespace par {

/// Ops that replace one collective.
struct Chain {
  llvm::SmallVector<mlir::Operation *> ops; ///< in their order
  llvm::SmallVector<mlir::Value> kept;      ///< their operands, alive until the last one has ended
  llvm::SmallVector<mlir::Type> types;      ///< of the collective's results
  mlir::ValueRange results() const { return ops.back()->getResults(); }
};

/// Kernels that give their operand under another shape, one for each pair of shapes.
class Views {
public:
  explicit Views(mlir::SymbolTable &symbols) : symbols(symbols) {}
  KernelOp kernelOf(mlir::Location loc, mlir::RankedTensorType from, mlir::RankedTensorType to);
  /// The value of which `value` is a reshape.
  mlir::Value seen(mlir::Value value) const {
    auto launch = value.getDefiningOp<LaunchOp>();
    bool view = launch && names.contains(launch.getKernelAttr().getAttr());
    return view ? launch->getOperand(0) : value;
  }

private:
  mlir::SymbolTable &symbols; ///< of the module
  llvm::DenseMap<std::pair<mlir::Type, mlir::Type>, KernelOp> made;
  llvm::DenseSet<mlir::StringAttr> names; ///< of these
};

/// Builds chains at a place of a block.
class ChainBuilder {
public:
  ChainBuilder(Views &views, mlir::OpBuilder builder) : views(views), builder(builder) {}

  /// That of a collective, in front of it.
  Chain build(mlir::Operation *collective, const HostLevels &levels);
  /// The chain's results under the types of the collective's, at `before` (null: at the end of `block`); waits for them
  /// if the chain has a queue.
  llvm::SmallVector<mlir::Value> end(const Chain &chain, mlir::Block *block, mlir::Operation *before);

private:
  mlir::Value see(mlir::Value value, mlir::RankedTensorType type);
  mlir::Operation *add(Chain &chain, mlir::Operation *made, bool byBlocks = false);
  Chain reduce(AllReduceOp reduce, const HostLevels &levels);
  Chain gather(AllGatherOp gather, const HostLevels &levels);
  Chain scatter(ReduceScatterOp scatter, const HostLevels &levels);
  mlir::ArrayAttr names(llvm::ArrayRef<mlir::StringAttr> axes) {
    return builder.getArrayAttr(llvm::SmallVector<mlir::Attribute>(axes.begin(), axes.end()));
  }

  Views &views;
  mlir::OpBuilder builder;
  llvm::StringRef queue; ///< of the collective that is divided
  mlir::Location loc = mlir::UnknownLoc::get(builder.getContext());
};

} // namespace par
