// A file of blocks that processes map as they lie: each begins at a page, and has a checksum. It belongs to a cache:
// one that is not as it was written counts as missing.
#pragma once

#include "par/format/PlainFile.h"

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace par::core {

struct Block {
  std::string name;
  std::span<const std::byte> bytes;
};

/// Writes another file and renames it, so that no process maps half a file. Throws Failure, and leaves nothing then.
/// `facts`: all that the blocks depend on, which open() compares.
void writeBlocks(const std::string &path, const std::string &facts, const std::vector<Block> &blocks);

/// Whether only this user (or root) writes here: the folder or file is this user's, and no link.
bool isOnlyOurs(const std::string &path);

/// A file of blocks, mapped; move-only.
class BlockFile {
public:
  /// None where there is no such file, where another user may have written it, where it depends on other facts, and
  /// where a block is not as it was written. Reads all of it.
  static std::optional<BlockFile> open(const std::string &path, const std::string &facts);

  /// In the order of their names. They stay where they are.
  const std::map<std::string, std::span<const std::byte>> &blocks() const { return found; }
  /// For a mapping of one's own: the file, and where a block's bytes begin in it.
  int descriptor() const { return file.descriptor(); }
  uint64_t offsetOf(std::span<const std::byte> block) const;

private:
  explicit BlockFile(format::PlainFile &&file) : file(std::move(file)) {}
  bool read(const std::string &facts);

  format::PlainFile file;
  format::MappedPlainFile mapped;
  std::map<std::string, std::span<const std::byte>> found;
};

} // namespace par::core
