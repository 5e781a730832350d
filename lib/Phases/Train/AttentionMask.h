#pragma once

#include "MaskFormula.h"

namespace par {

/// A score that counts as masked beside any other of a causal row: e^x of the difference is 0.
constexpr double lowScore = -1e4;

/// Recognises masks of attention; evaluates each distinct mask once.
class AttentionMasks {
public:
  /// Whether a tensor [..., q, k] of booleans, computed only from constants, is `meets` exactly where k <= q, for all
  /// of its leading dims.
  bool isCausalCondition(mlir::Value condition, bool meets);
  /// For a tensor [..., q, k] of floats, computed only from constants, that is 0 where k <= q and at most `lowScore`
  /// elsewhere: its maximum elsewhere. None for any other tensor.
  std::optional<double> causalSum(mlir::Value mask);

private:
  /// Causal: true where k <= q, true elsewhere, or added to scores.
  enum class Kind { Other, Meets, Hides, Adds };
  struct Class {
    Kind kind = Kind::Other;
    double hidden = 0; ///< Adds: the maximum that is added to hidden scores
  };
  static Class classify(const MaskRows &mask);
  Class classOf(mlir::Value mask);
  Class readClass(mlir::Value mask);

  llvm::DenseMap<mlir::Value, Class> known;
  std::map<std::vector<intptr_t>, Class> byFormula; ///< by MaskFormula::key: equal masks of other layers
};

/// A bound of the magnitude of all elements, in the range of f32, derived from ops and constants; none if a parameter
/// or an unknown op takes part.
std::optional<double> boundOf(mlir::Value value);

} // namespace par
