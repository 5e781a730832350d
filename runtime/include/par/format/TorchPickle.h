// The tensors of PyTorch's .pt: data.pkl of its archive, a program of pickle's machine. This reader runs none of the
// program's code: it knows the opcodes that build values, follows calls of torch's four functions that rebuild tensors,
// and takes whatever else is called for a value of unknown content.
#pragma once

#include "par/format/Error.h"
#include "par/format/Program.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace par::format {

struct TorchTensor {
  std::string name; ///< the keys that lead to it, joined by dots; "" of a file that is one tensor
  DType type = DType::F32;
  std::string storage; ///< the archive's member data/STORAGE
  int64_t offset = 0;  ///< in elements
  std::vector<int64_t> shape, strides;
};

/// The tensors of a pickle, in its order; the error is a sentence without the path.
Expected<std::vector<TorchTensor>> readTorchPickle(std::string_view pickle);

} // namespace par::format
