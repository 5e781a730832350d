#include "ContentSample.h"

#include "par/files/Checksum.h"
#include "par/format/PlainFile.h"

#include <algorithm>
#include <span>

namespace par::core {

std::string sampleOf(const std::string &path) {
  constexpr uint64_t page = 4096, pages = 64;
  auto file = format::PlainFile::open(path);
  if (!file)
    return "";
  Checksum sum;
  std::string bytes = std::to_string(file->size());
  auto add = [&] { sum.add(std::as_bytes(std::span(bytes))); };
  add();
  for (uint64_t i = 0; i < pages; ++i) {
    uint64_t at = file->size() <= page * pages ? i * page : (file->size() - page) / (pages - 1) * i;
    if (at >= file->size())
      break;
    bytes.resize(std::min(page, file->size() - at));
    if (!file->read(at, bytes.data(), bytes.size()))
      return "";
    add();
  }
  return sum.digest();
}

} // namespace par::core
