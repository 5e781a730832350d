#pragma once

#include "llvm/ADT/StringRef.h"

namespace par {

/// The scalar i1 variable by which a step that may be trained selects what it computes: true where it is trained.
/// Import declares it as true; Train knows the mode of every step, and leaves neither the variable nor what was not
/// selected. The name is none that a module's parameter can have.
inline constexpr llvm::StringLiteral trainingVariable = "par.training";

/// The scalar f32 counter of the steps that have drawn random numbers, 0 where a model is evaluated: what acts in
/// training alone asks whether there was one.
inline constexpr llvm::StringLiteral drawsVariable = "draws";

/// Attribute of a step that predicts with a batch of one: of each output the dim that is the batch. Dims of size 1 are
/// no factors of sharding rules, by which larger batches are followed from the inputs.
inline constexpr llvm::StringLiteral batchOfOneAttr = "par.batch_of_one";

/// Attribute of a step in fragments: the variables whose gradients no loop accumulates, as they are made of sums over
/// all microbatches (a weight that is normalised). What they update shows them.
inline constexpr llvm::StringLiteral unaccumulatedAttr = "par.unaccumulated";

} // namespace par
