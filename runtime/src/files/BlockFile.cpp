// "par blocks 1\n", the length of the head as a u64, the head (JSON) and its checksum; then the blocks, from a page on
// each.
#include "par/files/BlockFile.h"

#include "par/files/Checksum.h"
#include "par/files/FileWriter.h"
#include "par/format/Sha256.h"
#include "par/messages/Failure.h"

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace par::core {

using nlohmann::json;

constexpr std::string_view magic = "par blocks 1\n";
constexpr size_t headBegins = magic.size() + sizeof(uint64_t), sumBytes = 32;

static uint64_t paged(uint64_t bytes) {
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

static std::span<const std::byte> plainBytes(std::string_view text) { return std::as_bytes(std::span(text)); }

/// The bytes before the blocks, which begin at `first`: a page that is far enough for these.
static std::string headOf(const std::string &facts, const std::vector<Block> &blocks, uint64_t first) {
  json entries = json::array();
  for (const Block &block : blocks) {
    entries.push_back(
        {{"name", block.name}, {"at", first}, {"bytes", block.bytes.size()}, {"sum", checksumOf(block.bytes)}});
    first += paged(block.bytes.size());
  }
  std::string head = json{{"facts", par::format::sha256(facts)}, {"blocks", entries}}.dump();
  uint64_t length = head.size();
  std::string all(magic);
  all.append(reinterpret_cast<const char *>(&length), sizeof length);
  return all + head + checksumOf(plainBytes(head));
}

void writeBlocks(const std::string &path, const std::string &facts, const std::vector<Block> &blocks) {
  constexpr uint64_t anEntry = 256, aByte = 6; // more than what has no name takes, and a byte of a name
  uint64_t first = headBegins + sumBytes + anEntry;
  for (const Block &block : blocks)
    first += anEntry + aByte * block.name.size();
  std::string head = headOf(facts, blocks, first = paged(first));
  // Several processes, of several machines where the folder is shared, may write the same file at once.
  std::string part = format("{}.{}-{}.part", path, getpid(), std::random_device{}());
  try {
    FileWriter writer(part, /*create=*/true);
    ::chmod(part.c_str(), S_IRUSR | S_IWUSR);
    writer.write(0, plainBytes(head));
    for (const Block &block : blocks) {
      writer.write(first, block.bytes);
      first += paged(block.bytes.size());
    }
    writer.resize(first);
    std::filesystem::rename(part, path);
  } catch (const std::filesystem::filesystem_error &error) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    throw Failure::at(path, Message::cannotWrite, error.code().message());
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    throw;
  }
}

bool isOnlyOurs(const std::string &path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && !S_ISLNK(info.st_mode) &&
         (info.st_uid == ::geteuid() || info.st_uid == 0) && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::optional<BlockFile> BlockFile::open(const std::string &path, const std::string &facts) {
  if (!isOnlyOurs(path))
    return std::nullopt;
  auto file = format::PlainFile::open(path);
  if (!file)
    return std::nullopt;
  BlockFile blocks(std::move(*file));
  auto mapped = format::MappedPlainFile::map(blocks.file, path);
  if (!mapped)
    return std::nullopt;
  blocks.mapped = std::move(*mapped);
  return blocks.read(facts) ? std::optional(std::move(blocks)) : std::nullopt;
}

bool BlockFile::read(const std::string &facts) {
  std::string_view all = mapped.bytes();
  uint64_t length = 0;
  if (!all.starts_with(magic) || all.size() < headBegins + sumBytes)
    return false;
  std::memcpy(&length, all.data() + magic.size(), sizeof length);
  if (length > all.size() - headBegins - sumBytes)
    return false;
  std::string_view text = all.substr(headBegins, length);
  if (checksumOf(plainBytes(text)) != all.substr(headBegins + length, sumBytes))
    return false;
  json head = json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    if (head.at("facts").get<std::string>() != par::format::sha256(facts))
      return false;
    for (const json &entry : head.at("blocks")) {
      uint64_t at = entry.at("at"), bytes = entry.at("bytes");
      if (at > all.size() || bytes > all.size() - at || at % static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) != 0)
        return false;
      std::span<const std::byte> block = plainBytes(all.substr(at, bytes));
      if (checksumOf(block) != entry.at("sum").get<std::string>())
        return false;
      found.emplace(entry.at("name").get<std::string>(), block);
    }
  } catch (const json::exception &) {
    return false;
  }
  return true;
}

uint64_t BlockFile::offsetOf(std::span<const std::byte> block) const {
  return static_cast<uint64_t>(block.data() - plainBytes(mapped.bytes()).data());
}

} // namespace par::core
