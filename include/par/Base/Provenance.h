// The origin of an op (its ONNX node, module and source line), carried in the op's location.
#pragma once

#include "mlir/IR/Location.h"

#include <optional>
#include <string>

namespace par {

/// Printed, a location reads
/// `loc(fused<{module = "h.0.mlp", node = "node_MatMul_41", path = "h.0.mlp/MatMul"}>["modeling_gpt2.py":573:0])`.
struct Provenance {
  llvm::StringRef node;   ///< the ONNX node's own name
  llvm::StringRef module; ///< `transformer.h.0.mlp`; "" at the top
  llvm::StringRef path;   ///< `MODULE/OpType`, `MODULE/OpType.1`, ...: the name that plans use
  llvm::StringRef file;   ///< source file, "" if unknown
  unsigned line = 0;
};

mlir::Location makeLocation(mlir::MLIRContext *context, const Provenance &provenance);

/// The first provenance found in a location, however it was fused or nested since.
std::optional<Provenance> getProvenance(mlir::Location location);

/// The known parts of `transformer.h.0.mlp, detect.py:61`; "" if nothing is known.
std::string describe(const Provenance &provenance);

} // namespace par
