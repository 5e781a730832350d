#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

// Reductions whose bodies say that most steps change nothing, so that they need not take them: as linalg sees them,
// each element of the result meets all of the operand along a dim, which is the square of what there is to do.

namespace par::codegen {

/// result[.., i, ..] = combination over the updates of (index of the update == i ? update : what changes nothing), as
/// put_add and scatter_add are lowered. Each update changes one element: the one that its index names.
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
