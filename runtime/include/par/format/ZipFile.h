// The members of a zip archive as numpy (.npz) and PyTorch (.pt) write it, by its central directory. Members lie in the
// archive as they are; compressed ones are listed and not unpacked.
#pragma once

#include "par/format/Error.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace par::format {

struct ZipMember {
  std::string name;
  std::string_view bytes; ///< of the archive; of a compressed member the compressed ones
  bool compressed = false;
};

/// Reads and checks the directory of an archive that is wholly there; the error is a sentence without the path.
Expected<std::vector<ZipMember>> readZip(std::string_view file);

} // namespace par::format
