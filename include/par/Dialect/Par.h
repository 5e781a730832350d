#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "par/Dialect/Interfaces/Collective.h"

#include "par/Dialect/Dialect.h.inc"
#include "par/Dialect/Enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "par/Dialect/Attributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "par/Dialect/Types.h.inc"

#define GET_OP_CLASSES
#include "par/Dialect/Ops.h.inc"

namespace par {

/// Registers the dialect and everything its ops implement (par/Interfaces).
void registerDialect(mlir::DialectRegistry &registry);

/// Sharding that Propagate computed for a value inside a fragment: for a result, its op's `shardings`; for an argument,
/// the fragment's. Null if there is none.
ShardingAttr getSharding(mlir::Value value);
/// Sets it.
void setSharding(mlir::Value value, ShardingAttr sharding);

/// True for the ops of the closed tensor set, which carry `stage` and `shardings`.
bool isTensorOp(mlir::Operation *op);

/// Stage that Annotate gave a forward op, if any.
std::optional<int64_t> getStage(mlir::Operation *op);
/// Gives a tensor op its stage; -1: none.
void setStage(mlir::Operation *op, int64_t stage);

/// The tensor type of a step-level value, on one device or on a stage: global shape.
mlir::RankedTensorType getTensorType(mlir::Type type);

/// The axes of an ArrayAttr of strings.
llvm::SmallVector<mlir::StringAttr> getAxes(mlir::ArrayAttr axes);

/// The stages of a module, grouped by their ranks, in the order of each group's first stage.
llvm::SmallVector<llvm::SmallVector<StageOp>> getStagesByRanks(mlir::ModuleOp module);

/// Mesh of the stage that `name` refers to, looked up in the module of `from`; null if there is none.
MeshAttr getMesh(mlir::Operation *from, mlir::FlatSymbolRefAttr stage);

/// Splat constant of a type (value converted to the element type) and short builders with inferred types.
mlir::Value buildSplat(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type, double value);
mlir::Value buildBroadcast(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value operand,
                           llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> shape);
mlir::Value buildReshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value operand,
                         llvm::ArrayRef<int64_t> shape);
mlir::Value buildConvert(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value operand, mlir::Type elementType);
mlir::Value buildDot(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lhs, mlir::Value rhs,
                     llvm::ArrayRef<int64_t> lhsContracting, llvm::ArrayRef<int64_t> rhsContracting,
                     llvm::ArrayRef<int64_t> lhsBatching = {}, llvm::ArrayRef<int64_t> rhsBatching = {},
                     mlir::Type elementType = {});

} // namespace par
