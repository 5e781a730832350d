// Masters: f32 parameters that steps read rounded only.
#pragma once

#include "par/Dialect/Par.h"

#include "llvm/ADT/StringSet.h"

namespace par {

struct PropagateOptions;

/// The parameter itself or the one that this is a copy of, with `ofStates` a state of; null for other variables.
VariableOp ownerOfVariable(llvm::StringRef name, const mlir::SymbolTable &symbols, bool ofStates = false);

/// Whether the op runs an update, once a step.
bool isUpdateRun(mlir::Operation *op, const mlir::SymbolTable &symbols);

/// The results of a run before the loops that depend on this operand only elementwise; none if any op combines it with
/// another value.
llvm::SmallVector<mlir::Value> madeBeforeLoops(mlir::OpOperand &use, const mlir::SymbolTable &symbols);

/// The names of the step's masters, by the option `masters`. The first step, which updates, says which these are; the
/// others find them stored so.
llvm::StringSet<> findMasters(StepOp step, const mlir::SymbolTable &symbols, const PropagateOptions &options);

} // namespace par
