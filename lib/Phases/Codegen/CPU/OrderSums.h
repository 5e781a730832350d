#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace par::cpu {

/// Fixes the order in which a loop adds up floats by the loop's length, so that the same sum has the same bits in every
/// kernel that it is fused into: a value that backward recomputes is the one that forward had. The vectorizer would
/// choose by the loop's other work.
///
///     elements       order
///     under 16       one after the other
///     16 to 63       vectors of 8 or, from 32 on, of 16, each lane its own sum, then the rest
///     64 and more    two vectors of 16 at once
///
/// To be called before LLVM optimizes.
void orderSums(llvm::Module &module);

} // namespace par::cpu
