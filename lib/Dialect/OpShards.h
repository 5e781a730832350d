#pragma once

#include "par/Dialect/Par.h"

// Declarations shared by the shards of the op definitions. TableGen writes all definitions into one file, which takes
// most of a minute to compile; CMakeLists.txt makes a source of each shard instead.

namespace par {

/// `[sum, stack]`
mlir::ParseResult parseSymbols(mlir::OpAsmParser &parser, mlir::ArrayAttr &symbols);
void printSymbols(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::ArrayAttr symbols);
mlir::ParseResult parseYieldKinds(mlir::OpAsmParser &parser, mlir::ArrayAttr &kinds);
void printYieldKinds(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::ArrayAttr kinds);

/// Registers all ops; each of the others registers those of one shard.
void registerParDialectOperations(ParDialect *dialect);
void registerParDialectOperations0(ParDialect *dialect);
void registerParDialectOperations1(ParDialect *dialect);
void registerParDialectOperations2(ParDialect *dialect);
void registerParDialectOperations3(ParDialect *dialect);
void registerParDialectOperations4(ParDialect *dialect);
void registerParDialectOperations5(ParDialect *dialect);

} // namespace par
