// index.json of a save: which run wrote it, where that stood, its files with their checksums, and where each part of
// each global tensor lies. A value that is written, read and checked by itself; Checkpoint.cpp compares it with the
// files.
#pragma once

#include "par/save/Checkpoint.h"

namespace par::core {

/// Format of saves that this par-run writes. Format 1 had neither run nor checksums.
inline constexpr uint64_t saveFormat = 2;

struct SavedFile {
  uint64_t bytes = 0;
  std::string header; ///< checksum of the file's header, which holds that of its data; "" in format 1
};

/// A rectangle of a tensor and the file that holds it.
struct SavedPart {
  std::string file;
  std::vector<int64_t> start, size;
};

struct SavedTensor {
  DType type = DType::F32;
  std::vector<int64_t> shape;                 ///< of the rectangles
  std::optional<std::vector<int64_t>> stored; ///< as files of weights have it; absent in format 1
  std::vector<SavedPart> parts;
  std::vector<std::string> also = {}; ///< further names: a bundle in which they are tensors of their own finds them
};

struct SaveIndex {
  uint64_t format = saveFormat;
  std::string run;     ///< of the job that wrote it, at random; "" in format 1
  uint64_t serial = 0; ///< counts the saves of a folder; 0 in format 1
  std::string plan;
  RunPosition position;
  std::vector<SavedFile> files; ///< by rank
  std::vector<std::pair<std::string, SavedTensor>> tensors;

  /// Whether one of its files bears this name.
  bool knows(const std::string &file) const;
};

/// "rank3.safetensors".
std::string rankFile(size_t rank);
/// The text of index.json. Its last entry is a checksum of all before it.
std::string writeIndex(const SaveIndex &index);
/// Reads FOLDER/index.json. Throws Failure unless every entry is there and in range, the parts of each tensor cover it
/// once, and the checksum is that of the text.
SaveIndex readIndex(const std::string &folder);
/// The same without files and tensors, which the checksum covers, in a hundredth of the time. For lists of saves.
SaveIndex readIndexBegin(const std::string &folder);

} // namespace par::core
