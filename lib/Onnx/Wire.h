#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace par::onnx {

/// The position of a TensorProto's payload in the file, which protobuf's classes do not give.
struct Payload {
  uint64_t offset = 0, length = 0;
  int field = 0;           ///< 9 raw_data, 4 float_data, 10 double_data; 0: none of them
  bool contiguous = false; ///< one piece
};

/// One entry for every initializer of the main graph, in file order; empty if the bytes are not well formed.
/// The encoding: https://protobuf.dev/programming-guides/encoding.
std::vector<Payload> locateInitializers(std::string_view file);

/// Whether the file begins as a model and ends within one of its fields, as an incomplete copy does.
bool isCutShort(std::string_view file);

} // namespace par::onnx
