// Files of a model's data, told from others.
#pragma once

#include "par/format/PlainFile.h"

namespace par::format {

/// How much of a data file is hashed: all of one of up to `whole` bytes; of a longer one `pieces` of `pieceBytes`, so
/// that a hundred GiB take as long as one. `whole` is at least `pieces * pieceBytes`.
struct DataSample {
  uint64_t whole = uint64_t(1) << 30, pieces = 1024, pieceBytes = uint64_t(1) << 20;
};

/// SHA-256 of a file of weights beside a model, 64 lower-case hex digits. For a file of more than 1 GiB it is that of
/// 1,024 pieces of 1 MiB, concatenated: piece i begins at i * step, where step is (size - 1 MiB) / 1023, rounded down,
/// and the last one ends with the file. A change between the pieces is not seen: it finds mistakes, such as a model
/// that was exported again, not intent.
Expected<std::string> hashDataFile(const PlainFile &file, const DataSample &sample = {});

} // namespace par::format
