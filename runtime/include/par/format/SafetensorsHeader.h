// The header of a safetensors file. The format: 8 bytes of header length, a JSON header, data. Like the reference
// library (huggingface/safetensors, tensor.rs) it refuses entries that do not fit the file or their shape, bytes of the
// data that belong to two tensors or to none, and bytes after the last tensor; it also refuses duplicate names.
#pragma once

#include "par/format/Error.h"
#include "par/format/PlainFile.h"
#include "par/format/Program.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace par::format {

/// One array; its bytes are [begin, end) of the file.
struct SafetensorsEntry {
  std::string name;
  DType type = DType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> arrays; ///< in the order of the header
  std::map<std::string, std::string> metadata;
  uint64_t dataBegin = 0; ///< length and header stand before
};

/// Reads and checks the header of a file that is wholly there; the error is a sentence without the path.
Expected<SafetensorsHeader> readSafetensors(std::string_view file);

/// A mapped file and its arrays.
struct SafetensorsFile {
  MappedPlainFile file;
  SafetensorsHeader header;

  std::string_view bytesOf(const SafetensorsEntry &entry) const {
    return file.bytes().substr(entry.begin, entry.end - entry.begin);
  }
};

/// Maps a file and reads its header; the error is a sentence without the path.
Expected<SafetensorsFile> mapSafetensors(const std::string &path);

/// "F32", "BOOL": the format's word for a type.
std::string_view safetensorsName(DType type);

} // namespace par::format
