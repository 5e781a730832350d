// Any bytes given as the index and the ranks' files of a save are refused with a sentence, or loaded within the memory
// of their tensors; nothing else may happen. Sizes and checksums are made to fit the bytes, as an attacker would do.
// The input is the index and the files, separated by lines of `=`; the seed is a save of two ranks.
#include "TrainingToy.h"

#include "par/files/Checksum.h"
#include "par/messages/Failure.h"
#include "par/save/Checkpoint.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <unistd.h>

using namespace par;
namespace fs = std::filesystem;

static constexpr std::string_view separator = "\n=\n";

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

/// A folder in memory for the files of each input; not named par-*, as the files that jobs must remove are.
const std::string &folder() {
  static const std::string path = "/dev/shm/fuzz-save-" + std::to_string(getpid());
  fs::create_directories(path);
  return path;
}

std::string sumOf(std::string_view text) { return core::checksumOf(std::as_bytes(std::span(text))); }

/// A rank's file: header, then the bytes of `w`'s half, and of the counter on rank 0.
std::string rankFile(int rank) {
  nlohmann::ordered_json header = {{"__metadata__",
                                    {{"par_checkpoint", "2"},
                                     {"plan", "p"},
                                     {"run", "r"},
                                     {"step", "2"},
                                     {"rank", std::to_string(rank)},
                                     {"ranks", "2"},
                                     {"checksum", ""}}}};
  uint64_t bytes = 128;
  header["w"] = {{"dtype", "F32"}, {"shape", {4, 8}}, {"data_offsets", {0, bytes}}};
  if (rank == 0)
    header["step"] = {{"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {bytes, bytes + 4}}}, bytes += 4;
  std::string data(bytes, '\1');
  header["__metadata__"]["checksum"] = sumOf(data);
  std::string text = header.dump();
  uint64_t length = text.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof length) + text + data;
}

const std::string &seed() {
  static const std::string whole = [] {
    auto part = [](const char *file, int at) {
      return nlohmann::ordered_json{{"file", file}, {"start", {at, 0}}, {"size", {4, 8}}};
    };
    nlohmann::ordered_json index = {
        {"par_checkpoint", {2, 0}},
        {"run", "r"},
        {"serial", 1},
        {"plan", "p"},
        {"step", 2},
        {"rows", 8},
        {"seed", 0},
        {"order", "shuffled"},
        {"files",
         {{"rank0.safetensors", {{"bytes", 0}, {"header", ""}}},
          {"rank1.safetensors", {{"bytes", 0}, {"header", ""}}}}},
        {"tensors",
         {{"w",
           {{"type", "f32"},
            {"shape", {8, 8}},
            {"stored", {8, 8}},
            {"parts", {part("rank0.safetensors", 0), part("rank1.safetensors", 4)}}}},
          {"step",
           {{"type", "f32"},
            {"shape", {1}},
            {"stored", {1}},
            {"parts", {{{"file", "rank0.safetensors"}, {"start", {0}}, {"size", {1}}}}}}}}}};
    return index.dump(1) + std::string(separator) + rankFile(0) + std::string(separator) + rankFile(1);
  }();
  return whole;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size() && parts.size() < 3;) {
    size_t end = parts.size() == 2 ? text.size() : std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  parts.resize(3);
  return parts;
}

/// Length and header of a safetensors file, as far as it has them.
std::string_view headerOf(const std::string &file) {
  uint64_t length = 0;
  if (file.size() >= sizeof length)
    std::memcpy(&length, file.data(), sizeof length);
  return std::string_view(file).substr(0, length < file.size() ? sizeof length + length : file.size());
}

/// The index with sizes and checksums that fit the files, and its own.
std::string mended(const std::string &text, const std::vector<std::string> &parts) {
  auto index = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!index.is_object())
    return text;
  for (int rank : {0, 1}) {
    std::string name = "rank" + std::to_string(rank) + ".safetensors";
    if (index.contains("files") && index["files"].is_object() && index["files"].contains(name) &&
        index["files"][name].is_object()) {
      const std::string &file = parts[static_cast<size_t>(rank) + 1];
      index["files"][name] = {{"bytes", file.size()}, {"header", sumOf(headerOf(file))}};
    }
  }
  index.erase("checksum");
  std::string all = index.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  all.resize(all.size() - (all.size() > 2 ? 2 : 0));
  return all + ",\n \"checksum\": \"" + sumOf(all) + "\"\n}\n";
}

void load(const format::Manifest &manifest, const core::Checkpoint &checkpoint, bool state) {
  (state ? core::checkState : core::checkWeights)(manifest, checkpoint.store);
  for (const format::Tensor &tensor : manifest.tensors)
    for (uint32_t rank = 0; rank < manifest.ranks.size(); ++rank)
      if (const core::StoredArray *array = checkpoint.store.find(tensor)) {
        std::vector<std::byte> to(static_cast<size_t>(core::elementCount(tensor.layout.local)) *
                                  format::sizeOf(tensor.type));
        core::loadTensor(to.data(), tensor, rank, *array, checkpoint.store.place);
      }
}

} // namespace

/// Starts from the seed if the input is too short, and in one of 16 calls.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned number) {
  std::mt19937 random(number);
  if ((size < separator.size() + 2 || random() % 16 == 0) && seed().size() <= maxSize) {
    std::memcpy(data, seed().data(), seed().size());
    size = seed().size();
  }
  return LLVMFuzzerMutate(data, size, maxSize);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const format::Manifest one = toy::training(1).manifest, two = toy::training(2).manifest;
  std::vector<std::string> parts = split({reinterpret_cast<const char *>(data), size});
  std::ofstream(folder() + "/index.json", std::ios::binary) << mended(parts[0], parts);
  for (int rank : {0, 1})
    std::ofstream(folder() + "/rank" + std::to_string(rank) + ".safetensors", std::ios::binary)
        << parts[static_cast<size_t>(rank) + 1];
  for (const format::Manifest *manifest : {&one, &two})
    for (bool state : {true, false})
      try {
        load(*manifest, core::openCheckpoint(folder()), state);
      } catch (const core::Failure &failure) {
        if (!std::strstr(failure.what(), folder().c_str()))
          std::abort(); // a sentence that does not say where
      }
  return 0;
}
