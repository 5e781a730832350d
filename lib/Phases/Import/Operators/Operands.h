// Operands of elementwise ops: broadcasting is made explicit.
#pragma once

#include "../Graph/GraphImporter.h"
#include "par/Dialect/Term.h"

#include <limits>

namespace par {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Operands of one shape.
struct Operands {
  llvm::SmallVector<mlir::Value> values;
  Shape finalShape; ///< of the node's result; the values' own if no merge was undone

  mlir::Value operator[](size_t i) const { return values[i]; }
  mlir::RankedTensorType type(size_t i) const { return llvm::cast<mlir::RankedTensorType>(values[i].getType()); }
  mlir::Type element(size_t i) const { return type(i).getElementType(); }
};

/// All inputs, stretched to one shape.
llvm::FailureOr<Operands> joinOperands(NodeImporter &importer);
/// The same if all have one element type; `floats`: it must be a float.
llvm::FailureOr<Operands> sameTypeOperands(NodeImporter &importer, bool floats);
/// Makes an elementwise function of the operands the node's result.
mlir::LogicalResult bindElements(NodeImporter &importer, mlir::Value result, const Operands &operands);

/// A term at the node's place.
inline Term termOf(NodeImporter &importer, mlir::Value value) { return Term(importer.builder, importer.loc, value); }

/// A term with each element of `type`'s shape its index along `dim`, in i64.
Term positions(NodeImporter &importer, mlir::RankedTensorType type, int64_t dim);

Term sigmoid(Term x);
Term absolute(Term x);
/// log(1 + x) for x > -1 with all digits of a small x: the logarithm of the rounded u = 1 + x and, below 1, the
/// rounding error divided by u (the next term of the Taylor series). The derivative is 1 / u.
Term log1p(Term x);

/// x - max - log(sum of e^(x - max)) along `dim`: the logarithm of a softmax would lose small ones.
Term logSoftmax(Term x, int64_t dim);

} // namespace par
