#pragma once

#include "FragmentPair.h"

#include "par/Plan/Language/Pattern.h"

namespace par {

// The values of a forward that each mode of `recompute` saves. All others that the backward needs are recomputed.

/// The inputs of every module that matches, and residuals outside of them.
ValueSet saveModuleInputs(const FragmentPair &pair, llvm::ArrayRef<NamePattern> modules);
/// All residuals but those that match, and the inputs of their ops.
ValueSet saveOthers(const FragmentPair &pair, llvm::ArrayRef<NamePattern> recomputed);
/// The values that match, whether residuals or not, in the layout in which backward reads them.
ValueSet saveMatching(const FragmentPair &pair, llvm::ArrayRef<NamePattern> kept);
/// All residuals but those of attention's core: of the ops after the dot that makes scores of queries and keys, up to
/// the dot that reads them with values. Attention that is one op saves no scores and stays.
ValueSet saveAroundAttention(const FragmentPair &pair);
/// The inputs of segments (Segments.h), and residuals of the last one, which backward needs at once. With several
/// microbatches in flight, nothing: the stage's inputs are there.
ValueSet saveSegmentInputs(const FragmentPair &pair, int64_t inFlight);

/// Whether an op is the pattern's: of a node or module that matches, of op(T in M), of the values that leave M of
/// out(M).
bool matchesOp(const NamePattern &pattern, mlir::Operation *op);

} // namespace par
