#pragma once

#include "llvm/ADT/StringRef.h"

namespace par {

/// The scalar i1 variable that selects between training and inference inside a step: true in training. Import declares
/// it as true; Train folds it in every step and removes the variable and the branches not taken. No module's parameter
/// can have the name.
inline constexpr llvm::StringLiteral trainingVariable = "par.training";

/// The scalar f32 counter of the steps that have drawn random numbers; 0 while a model is evaluated. Ops that act only
/// in training test whether it is 0.
inline constexpr llvm::StringLiteral drawsVariable = "draws";

/// Attribute of a step that predicts with a batch of one: of each output the dim that is the batch. Dims of size 1 are
/// no factors of sharding rules, by which larger batches are followed from the inputs.
inline constexpr llvm::StringLiteral batchOfOneAttr = "par.batch_of_one";

/// Attribute of a step in fragments: the variables whose gradients no loop accumulates, because they depend on sums
/// over all microbatches (a normalised weight). The interpreter compares the updated variables instead.
inline constexpr llvm::StringLiteral unaccumulatedAttr = "par.unaccumulated";

} // namespace par
