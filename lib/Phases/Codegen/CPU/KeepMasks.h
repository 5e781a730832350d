#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace par::cpu {

/// Keeps the largest and smallest of what a mask chooses in the form that LLVM's vectorizer knows. `maximum(a,
/// select(c, x, -inf))` is `select(c, maximum(a, x), a)` to InstCombine, since -inf changes nothing; but a loop over
/// that is no reduction to the vectorizer, and takes one element at a time. Through a freeze InstCombine does not look.
/// To be called before LLVM optimizes.
void keepMasks(llvm::Module &module);

} // namespace par::cpu
