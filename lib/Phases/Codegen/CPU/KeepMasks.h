#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace par::cpu {

/// Keeps masked maxima and minima in the form that LLVM's vectorizer recognises. InstCombine turns `maximum(a,
/// select(c, x, -inf))` into `select(c, maximum(a, x), a)`, which is equal, but no reduction to the vectorizer: it then
/// takes one element at a time. A freeze hides the select from InstCombine. To be called before LLVM optimizes.
void keepMasks(llvm::Module &module);

} // namespace par::cpu
