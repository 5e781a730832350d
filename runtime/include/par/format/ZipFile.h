// The members of a zip archive as numpy (.npz) and PyTorch (.pt) write it, by its central directory. Members lie in the
// archive as they are; compressed ones are listed, and unpacked one by one.
#pragma once

#include "par/format/Error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace par::format {

struct ZipMember {
  std::string name;
  std::string_view bytes; ///< of the archive; of a compressed member the compressed ones
  bool compressed = false;
  uint16_t method = 0;   ///< of compression, as the archive numbers them; 8 is deflate
  uint64_t size = 0;     ///< in bytes, unpacked; as the directory says
  uint32_t checksum = 0; ///< CRC-32 of the unpacked bytes
};

/// Reads and checks the directory of an archive that is wholly there; the error is a sentence without the path.
Expected<std::vector<ZipMember>> readZip(std::string_view file);

/// The `member.size` bytes of a compressed member. Fails, with the rest of a sentence that begins with the member's
/// name, where the method is not deflate or the bytes are not those that the directory promises. Takes no more memory
/// than deflate could have packed into the member.
Expected<std::unique_ptr<std::byte[]>> unpack(const ZipMember &member);

} // namespace par::format
