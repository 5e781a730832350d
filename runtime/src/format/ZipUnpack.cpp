// Unpacks a member of a zip archive by zlib.
#include "par/format/ZipFile.h"

#include <algorithm>
#include <limits>
#include <zlib.h>

using namespace par::format;

static constexpr uint16_t deflateMethod = 8;
/// Bits of at most 258 bytes: 1 for the length's code and 1 for the distance's (RFC 1951, section 3.2.5).
static constexpr uint64_t maxRatio = 258 * 8 / 2;

namespace {

/// zlib's state of a raw stream (no header of its own), which ends with the object.
class Inflater {
public:
  Inflater() { begun = inflateInit2(&stream, -MAX_WBITS) == Z_OK; }
  ~Inflater() {
    if (begun)
      inflateEnd(&stream);
  }
  Inflater(const Inflater &) = delete;
  Inflater &operator=(const Inflater &) = delete;

  /// Whether the stream is whole and has `size` bytes, no more and no fewer. zlib counts in 32 bits.
  bool run(std::string_view packed, std::byte *to, uint64_t size) {
    if (!begun)
      return false;
    uint64_t in = 0, out = 0;
    uint8_t more; // where no byte is expected, zlib must have room all the same to find the stream's end
    for (int state = Z_OK; state != Z_STREAM_END;) {
      stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(packed.data())) + in;
      stream.avail_in = static_cast<uInt>(std::min<uint64_t>(packed.size() - in, chunk));
      bool full = out == size;
      stream.next_out = full ? &more : reinterpret_cast<Bytef *>(to) + out;
      stream.avail_out = full ? 1 : static_cast<uInt>(std::min<uint64_t>(size - out, chunk));
      uInt before = stream.avail_in, room = stream.avail_out;
      state = inflate(&stream, Z_NO_FLUSH);
      uint64_t read = before - stream.avail_in, written = room - stream.avail_out;
      if ((state != Z_OK && state != Z_STREAM_END) || (full && written) || (state == Z_OK && !read && !written))
        return false;
      in += read;
      out += written;
    }
    return out == size && in == packed.size();
  }

private:
  static constexpr uint64_t chunk = 1 << 30;

  z_stream stream{};
  bool begun = false;
};

} // namespace

static uint32_t checksumOf(const std::byte *bytes, uint64_t size) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef *>(bytes), size));
}

Expected<std::unique_ptr<std::byte[]>> par::format::unpack(const ZipMember &member) {
  if (member.method != deflateMethod)
    return Error{"is compressed by method " + std::to_string(member.method) + " of zip, and deflate (8) is read"};
  if (member.size / maxRatio > member.bytes.size())
    return Error{"says that it has " + std::to_string(member.size) + " bytes, more than its " +
                 std::to_string(member.bytes.size()) + " compressed ones can hold"};
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(member.size);
  if (!Inflater().run(member.bytes, bytes.get(), member.size) ||
      checksumOf(bytes.get(), member.size) != member.checksum)
    return Error{"is damaged: its compressed bytes are not those that the archive's directory says"};
  return bytes;
}
