#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

// Reductions of which most steps provably change nothing, and are skipped. In linalg's form each element of the result
// reads the whole operand along a dim, which takes quadratic time; the linear forms take n or n log n.

namespace par::codegen {

/// result[.., i, ..] = combination over the updates of (index of the update == i ? update : identity), as scattered
/// sums are lowered. Each update changes one element: that of its index.
struct Addressing {
  unsigned loop;  ///< of the result, along which indices point
  unsigned index; ///< the input that has them
};
std::optional<Addressing> findAddressing(mlir::linalg::GenericOp op);

/// result[.., i, ..] = combination over j <= i (or <, >=, >) of operand[.., j, ..], as cumulative is lowered. Each
/// element follows from its neighbour's.
struct Running {
  unsigned loop;    ///< i
  unsigned reduced; ///< j
  bool reverse;     ///< of the later elements
  bool exclusive;   ///< without its own
};
std::optional<Running> findRunning(mlir::linalg::GenericOp op);

/// result[.., i, ..] = number of the j whose element comes before that of i in a total order, as sorted_position is
/// lowered. Who sorts need not hold each against each.
struct Sorting {
  unsigned loop;    ///< i
  unsigned reduced; ///< j
};
std::optional<Sorting> findSorting(mlir::linalg::GenericOp op);

} // namespace par::codegen
