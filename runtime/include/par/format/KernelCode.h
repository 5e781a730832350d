// Checks the form of a bundle's kernel files before they are loaded: their kind, that they hold nothing but code, and
// that they define the symbols that programs name. It does not check the code itself. Errors are reasons without the
// file's name.
#pragma once

#include "par/format/Error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace par::format {

/// A kernel of a program, and its symbol in a file of kernels.
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
