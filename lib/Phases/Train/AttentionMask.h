#pragma once

#include "MaskFormula.h"

namespace par {

/// A score that counts as masked beside any other of a causal row: e^x of the difference is 0.
constexpr double lowScore = -1e4;

/// What masks of attentions are, each distinct one looked at once.
class AttentionMasks {
public:
  /// Whether a tensor [..., q, k] of booleans, computed from constants alone, is `meets` exactly where k <= q, for all
  /// of its leading dims.
  bool isCausalCondition(mlir::Value condition, bool meets);
  /// Where a tensor [..., q, k] of floats, computed from constants alone, is 0 where k <= q and at most `lowScore`
  /// elsewhere: the most that it is there. None where it is not.
  std::optional<double> causalSum(mlir::Value mask);

private:
  /// Causal: true where k <= q, true elsewhere, or added to scores.
  enum class Kind { Other, Meets, Hides, Adds };
  struct Class {
    Kind kind = Kind::Other;
    double hidden = 0; ///< Adds: the most that is added to what is hidden
  };
  static Class classify(const MaskRows &mask);
  Class classOf(mlir::Value mask);
  Class readClass(mlir::Value mask);

  llvm::DenseMap<mlir::Value, Class> known;
  std::map<std::vector<intptr_t>, Class> byFormula; ///< by MaskFormula::key: equal masks of other layers
};

/// A bound of the magnitude of all elements, in the range of f32, where ops and constants show one and no parameter
/// takes part; none otherwise.
std::optional<double> boundOf(mlir::Value value);

} // namespace par
