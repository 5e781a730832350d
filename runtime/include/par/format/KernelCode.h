// Checks the files of a bundle's kernels before they are loaded. Looks at the form of the files of kernels, without
// loading them: what they are, that they are nothing but code, and that they define what programs name. What the code
// does is its author's. Errors are reasons without the file's name.
#pragma once

#include "par/format/Error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace par::format {

/// A kernel of a program, and what stands for it in a file of kernels.
struct WantedKernel {
  std::string kernel, symbol;
  uint64_t parameters = 0; ///< of an entry of PTX: operands, then immediates
};

/// A shared object for x86-64 that depends on nothing, leaves no symbol undefined, runs nothing when it is
/// loaded, and defines each wanted symbol as a function in its code.
Status checkKernelObject(std::string_view bytes, const std::vector<WantedKernel> &wanted = {});

/// Text of PTX with a visible entry of as many parameters for each wanted symbol.
Status checkPtx(std::string_view text, const std::vector<WantedKernel> &wanted);

/// An ELF file for CUDA with code for each wanted symbol.
Status checkCubin(std::string_view bytes, const std::vector<WantedKernel> &wanted);

} // namespace par::format
