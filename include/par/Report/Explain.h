// --explain: a screen about one name, the plan, the cuts or recomputation.
#pragma once

#include "par/Inspect/Facts.h"
#include "par/Inspect/Named.h"

#include "llvm/Support/raw_ostream.h"

namespace par {

/// Rules that met at a name, shardings, communication with who forced it, and bytes. `others`: further names that the
/// same text means.
///
///     node transformer.h.0.mlp.c_fc/Gemm: Gemm, pytorch_utils.py:119
///     rules that met
///       megatron.yaml:11: mlp.c_fc.weight {1: tp}
///     sharding
///       stage 0 forward   dot  f32[4x128x512]  [{dp}, {}, {tp}]
void explainName(const NameFacts &facts, llvm::ArrayRef<std::string> others, llvm::raw_ostream &os);

/// The keys that somebody said and those that were derived, with their origins, and what patterns match.
void explainPlan(const Facts &facts, llvm::raw_ostream &os);

/// The stages: who asked for the cuts, work, time and memory of each, and what crosses to the next.
void explainCuts(const Facts &facts, llvm::raw_ostream &os);

/// Who asked for recomputation, what is recomputed and why, and the largest values that are kept.
void explainRecomputation(const Facts &facts, llvm::raw_ostream &os);

} // namespace par
