#ifndef PAR_LIB_TRAIN_ATTENTIONMASK_H
#define PAR_LIB_TRAIN_ATTENTIONMASK_H

#include "par/Dialect/Par.h"

namespace par {

/// A score that counts as masked beside any other of a causal row: e^x of the difference is 0.
constexpr double lowScore = -1e4;

/// Whether a tensor [..., q, k] of booleans, computed from constants alone, is `meets` exactly where k <= q, for all of
/// its leading dims.
bool isCausalCondition(mlir::Value condition, bool meets);
/// Whether a tensor [..., q, k] of floats, computed from constants alone, is 0 where k <= q and at most `lowScore`
/// elsewhere.
bool isCausalSum(mlir::Value mask);
/// A bound of the magnitude of all elements, in the range of f32, where ops and constants show one and no parameter
/// takes part; none otherwise.
std::optional<double> boundOf(mlir::Value value);

} // namespace par

#endif
