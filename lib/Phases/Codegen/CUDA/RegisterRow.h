#pragma once

#include "../KernelPlan.h"

namespace par::cuda {

/// A row whose elements threads can keep in registers from one nest to the next, each its own: every nest has
/// one element a row, or has them all, or reduces them all, and reads of another's elements the one that it
/// is at.
struct RegisterRow {
  int64_t elements = 1; ///< of the row
  unsigned access = 1;  ///< neighbouring elements that are 16 bytes of the narrowest operand, and that divide the row
  unsigned kept = 1;    ///< about how many values of each element are needed by a later nest
};

std::optional<RegisterRow> findRegisterRow(const codegen::KernelPlan &plan);

/// Elements of 16 bytes in the narrowest format that nests read one after another or that results have.
unsigned elementsInOrder(const codegen::KernelPlan &plan);

/// The loops of a nest that threads share: those that it reduces, or those of its result that are no rows.
llvm::SmallVector<unsigned> sharedLoops(const codegen::Nest &nest);

/// The last of `loops` that runs more than once, or none.
std::optional<unsigned> lastLoop(const codegen::Nest &nest, llvm::ArrayRef<unsigned> loops);

} // namespace par::cuda
