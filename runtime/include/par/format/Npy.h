// The header of numpy's .npy format: a magic word, a version, and a Python dict as text. The text is compared with the
// three keys that numpy writes; nothing of it is run.
#pragma once

#include "par/format/Error.h"
#include "par/format/Program.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace par::format {

struct NpyHeader {
  DType type = DType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0; ///< of the data, which go to the end of the file
};

/// Reads and checks the header of an array that is wholly there; the error is a sentence without the path.
Expected<NpyHeader> readNpy(std::string_view file);

/// Bytes of a shape; nullopt if they do not fit 62 bits or a dim is negative.
std::optional<uint64_t> bytesOfShape(const std::vector<int64_t> &shape, DType type);

} // namespace par::format
