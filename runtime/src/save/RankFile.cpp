// Copies the parts of the state that a rank saves, and writes them into one file with a checksum of its data.
#include "RankFile.h"
#include "FreeMemory.h"

#include "par/files/Checksum.h"
#include "par/files/Rectangles.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace par::core {

using format::Tensor;

namespace {

/// Stands for the checksum until all data has been written.
const std::string noChecksum(32, '?');

bool isAligned(const std::byte *at) { return reinterpret_cast<uintptr_t>(at) % FileWriter::block == 0; }

/// The data of a rank's file from front to end: summed, and written in long pieces, past the system's cache where the
/// file system can.
class RankFileData {
public:
  explicit RankFileData(SafetensorsWriter &writer) : writer(writer), buffer(comm::mapPrivate(chunk)) {}

  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      bool asItIs = filled == 0 && bytes.size() >= chunk && (isAligned(bytes.data()) || !writer.isDirect());
      size_t count = asItIs ? bytes.size() / chunk * chunk : std::min(chunk - filled, bytes.size());
      if (asItIs) {
        write(bytes.first(count));
      } else {
        std::memcpy(buffer.bytes.data() + filled, bytes.data(), count);
        if ((filled += count) == chunk)
          flush();
      }
      bytes = bytes.subspan(count);
    }
  }
  std::string finish() {
    flush();
    return checksum.digest();
  }

private:
  static constexpr size_t chunk = 1 << 20;
  /// A piece whose checksum was computed is still in the processor's cache when it is copied into the system's.
  static constexpr size_t cached = 256 << 10;
  /// Bytes of the system's cache after which the disk begins to write: meanwhile the next checksums are computed.
  static constexpr uint64_t share = 8 << 20;

  void flush() { write(buffer.bytes.first(std::exchange(filled, 0))); }
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      std::span<const std::byte> piece = writer.isDirect() ? bytes : bytes.first(std::min(cached, bytes.size()));
      checksum.add(piece);
      writer.writeData(at, piece);
      at += piece.size();
      if (at / share != (at - piece.size()) / share)
        writer.startSync(at);
      bytes = bytes.subspan(piece.size());
    }
  }

  SafetensorsWriter &writer;
  Checksum checksum;
  comm::Mapping buffer;
  size_t filled = 0;
  uint64_t at = 0;
};

} // namespace

Facts factsOf(const std::string &plan, const std::string &run, uint64_t step, size_t rank, size_t ranks) {
  return {{"par_checkpoint", std::to_string(saveFormat)},
          {"plan", plan},
          {"run", run},
          {"step", std::to_string(step)},
          {"rank", std::to_string(rank)},
          {"ranks", std::to_string(ranks)}};
}

RankState::RankState(const Session &session) : session(session) {
  for (const Tensor &tensor : session.manifest().tensors)
    if (const format::Rectangle *part = isSaved(tensor) ? ownedPart(tensor, session.rank()) : nullptr) {
      headers.push_back({tensor.name, tensor.type, part->size});
      tensors.push_back(&tensor);
      total += static_cast<uint64_t>(elementCount(part->size)) * format::sizeOf(tensor.type);
    }
}

void RankState::visit(const Take &take) const {
  if (copied)
    return take(memory.bytes);
  for (const Tensor *tensor : tensors) {
    const format::Rectangle *part = ownedPart(*tensor, session.rank());
    auto local = session.tensor(tensor->name);
    uint64_t elementBytes = format::sizeOf(tensor->type);
    std::vector<int64_t> origin(part->size.size(), 0);
    forEachRun(part->size, origin, tensor->layout.local, origin, part->size, [&](int64_t, int64_t from, int64_t n) {
      take(local.subspan(static_cast<uint64_t>(from) * elementBytes, static_cast<uint64_t>(n) * elementBytes));
    });
  }
}

bool RankState::copy() {
  forgetCopy();
  if (memory.bytes.size() < total) {
    // The ranks of a host copy at once; half of what is free stays so.
    if (freeMemory() / 2 / session.manifest().ranks.size() < total)
      return false;
    try {
      memory = comm::mapPrivate(total);
    } catch (const std::exception &) {
      return false; // a limit of address space
    }
  }
  std::byte *to = memory.bytes.data();
  visit([&](std::span<const std::byte> bytes) {
    std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  });
  copied = true;
  return true;
}

SavedFile RankState::write(const std::string &path, Facts facts, const std::atomic<bool> &stop) const {
  struct Stopped {};
  facts["checksum"] = noChecksum;
  std::error_code ignored;
  try {
    SafetensorsWriter writer(path, headers, true, facts, FileWriter::block);
    RankFileData data(writer);
    constexpr size_t piece = 8 << 20; // between two looks at `stop`
    visit([&](std::span<const std::byte> bytes) {
      for (; !bytes.empty(); bytes = bytes.subspan(std::min(piece, bytes.size()))) {
        if (stop)
          throw Stopped{};
        data.add(bytes.first(std::min(piece, bytes.size())));
      }
    });
    writer.amendHeader(noChecksum, data.finish());
    writer.sync();
    return {writer.totalBytes(), checksumOf(writer.headerBytes())};
  } catch (const Stopped &) {
    std::filesystem::remove(path, ignored);
    return {};
  } catch (const Failure &) {
    std::filesystem::remove(path, ignored); // half of it is in the way where the disk is full
    throw;
  }
}

} // namespace par::core
