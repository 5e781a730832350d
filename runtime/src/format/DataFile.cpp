// The hash of a file that may be large.
#include "par/format/DataFile.h"

#include "par/format/Sha256.h"

#include <algorithm>

using namespace par::format;

Expected<std::string> par::format::hashDataFile(const PlainFile &file, const DataSample &sample) {
  uint64_t size = file.size(), step = sample.pieceBytes, count = (size + step - 1) / step;
  if (size > sample.whole) {
    count = sample.pieces;
    step = (size - sample.pieceBytes) / (count - 1);
  }
  Sha256 hash;
  std::string piece;
  for (uint64_t i = 0; i < count; ++i) {
    bool last = i + 1 == count;
    uint64_t at = last && size > sample.whole ? size - sample.pieceBytes : i * step;
    piece.resize(std::min(sample.pieceBytes, size - at));
    if (Status status = file.read(at, piece.data(), piece.size()); !status)
      return status.error();
    hash.update(piece);
  }
  return hash.finish();
}
