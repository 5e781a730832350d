// Derives a mask of queries and keys from its ops: comparisons of affine functions of row and column, numbers, and
// elementwise ops of these. Ops that move elements change only the row and column. All elements of a row between two
// columns where a comparison changes are equal, so that one element of each stretch represents a mask of any size.
#pragma once

#include "par/Base/Tensor.h"
#include "par/Dialect/Par.h"

#include <map>

namespace par {

/// base + row * q + column * k.
struct Affine {
  int64_t base = 0, row = 0, column = 0;

  bool isConstant() const { return row == 0 && column == 0; }
  auto operator<=>(const Affine &) const = default;
};

/// Equal elements side by side: columns [begin, end) of a row.
struct Stretch {
  int64_t row, begin, end;
};

/// A mask's elements, row by row.
struct MaskRows {
  llvm::SmallVector<Stretch> stretches;
  interp::Tensor elements; ///< one for each stretch
};

class MaskFormula {
public:
  /// The formula of a tensor [..., q, k] that all leading dims share; none if other ops compute it, or if anything is
  /// unknown at compile time.
  static std::optional<MaskFormula> read(mlir::Value mask);

  /// Masks of equal keys are equal.
  std::vector<intptr_t> key() const;
  /// None if there are too many stretches.
  std::optional<MaskRows> evaluate() const;

private:
  /// A number, an affine function, or an elementwise op of earlier nodes.
  struct Node {
    mlir::Type element;
    std::optional<double> number;
    std::optional<Affine> affine;
    mlir::Operation *op = nullptr;
    llvm::SmallVector<unsigned> operands;

    bool isConstant() const { return number || (affine && affine->isConstant()); }
  };
  using Index = std::optional<unsigned>; ///< of a node; none: not known
  /// Of an element, one for each dim; none: a dim that the mask must not depend on.
  using Coordinates = llvm::SmallVector<std::optional<Affine>>;

  MaskFormula(int64_t rows, int64_t columns) : rows(rows), columns(columns) {}

  Index read(mlir::Value value, const Coordinates &at);
  Index readOp(mlir::Operation *op, const Coordinates &at);
  Index readConstant(ConstantOp constant, const Coordinates &at);
  Index readElementwise(mlir::Operation *op, const Coordinates &at);
  Index addNumber(mlir::Type element, double number);
  Index addAffine(mlir::Type element, std::optional<Affine> affine);
  Index addOp(mlir::Operation *op, llvm::ArrayRef<unsigned> operands);
  /// Smallest and largest value.
  std::pair<__int128, __int128> rangeOf(const Affine &affine) const;
  std::optional<Affine> affineOf(mlir::Operation *op, llvm::ArrayRef<unsigned> operands) const;
  /// The function whose sign decides the result of an op that is not affine: the result is constant while the sign is.
  std::optional<Affine> changeOf(mlir::Operation *op, llvm::ArrayRef<unsigned> operands) const;
  /// The op's elements if they are the same for all rows and columns.
  std::optional<interp::Tensor> settle(mlir::Operation *op, llvm::ArrayRef<unsigned> operands,
                                       const Affine &change) const;
  std::optional<llvm::SmallVector<Stretch>> cut() const;
  /// Elements at the stretches' begins.
  interp::Tensor sample(const Node &leaf, llvm::ArrayRef<Stretch> stretches) const;

  int64_t rows, columns;
  std::vector<Node> nodes;
  std::map<std::pair<const void *, Coordinates>, Index> known;
  llvm::SmallVector<Affine> changes;
};

} // namespace par
