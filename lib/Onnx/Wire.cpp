#include "Wire.h"

namespace par::onnx {
namespace {

constexpr int modelVersion = 1, modelGraph = 7, modelLast = 26, graphInitializer = 5, rawData = 9, floatData = 4,
              doubleData = 10;

/// Walks the fields of one message.
struct Walker {
  std::string_view bytes;
  uint64_t base; ///< of `bytes` in the file
  size_t at = 0;
  bool failed = false, ended = false; ///< ended: the bytes, within a field
  int field = 0, wire = 0;
  std::string_view payload;
  uint64_t payloadOffset = 0;

  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at >= bytes.size())
        break;
      unsigned char byte = bytes[at++];
      value |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    failed = true;
    ended = at >= bytes.size();
    return 0;
  }

  void take(uint64_t count) {
    if (count > bytes.size() - at) {
      failed = ended = true;
      return;
    }
    payload = bytes.substr(at, count);
    payloadOffset = base + at;
    at += count;
  }

  bool next() {
    if (failed || at >= bytes.size())
      return false;
    uint64_t tag = varint();
    field = int(tag >> 3);
    wire = int(tag & 7);
    payload = {};
    if (wire == 0)
      varint();
    else if (wire == 1)
      take(8);
    else if (wire == 2)
      take(varint());
    else if (wire == 5)
      take(4);
    else
      failed = true; // groups are not used by ONNX
    return !failed;
  }
};

bool locateTensor(std::string_view bytes, uint64_t base, Payload &result) {
  Walker walker{bytes, base};
  unsigned pieces = 0;
  while (walker.next()) {
    if (walker.field != rawData && walker.field != floatData && walker.field != doubleData)
      continue;
    // raw_data given twice: the last one counts; packed numbers given twice are joined, hence not in one piece.
    pieces = walker.field == rawData && result.field == rawData ? 1 : pieces + 1;
    result = {walker.payloadOffset, walker.payload.size(), walker.field, pieces == 1 && walker.wire == 2};
  }
  return !walker.failed;
}

} // namespace

std::vector<Payload> locateInitializers(std::string_view file) {
  std::vector<Payload> result;
  Walker model{file, 0};
  bool wellFormed = true;
  while (model.next()) {
    if (model.field != modelGraph || model.wire != 2)
      continue;
    Walker graph{model.payload, model.payloadOffset};
    while (graph.next()) {
      if (graph.field != graphInitializer || graph.wire != 2)
        continue;
      wellFormed &= locateTensor(graph.payload, graph.payloadOffset, result.emplace_back());
    }
    wellFormed &= !graph.failed;
  }
  if (!wellFormed || model.failed)
    result.clear();
  return result;
}

bool isCutShort(std::string_view file) {
  Walker model{file, 0};
  if (!model.next() || model.field != modelVersion || model.wire != 0)
    return false;
  while (model.next())
    if (model.field > modelLast)
      return false;
  return model.ended && model.field <= modelLast;
}

} // namespace par::onnx
