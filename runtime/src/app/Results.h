// Results of inference in one safetensors file.
#pragma once

#include "par/comm/job/Control.h"
#include "par/files/PartFile.h"
#include "par/files/Safetensors.h"
#include "par/format/Manifest.h"

#include <functional>
#include <memory>

namespace par::core {

/// Shape of the whole array: the model's own, with all samples as its batch. Outputs without a batch dim get one of
/// batches, unless there is a single batch. Rows of samples that only fill up the last batch are left out.
std::vector<int64_t> resultShape(const format::Output &output, const format::Manifest &manifest, uint64_t samples);

/// A microbatch of a result: the shape of the whole array, and the rank whose part is meant.
struct ResultPlace {
  std::span<const int64_t> shape;
  uint32_t rank = 0;
  uint64_t batch = 0;
  int64_t microbatch = 0;
};
using WritePart = std::function<void(uint64_t, std::span<const std::byte>)>;
/// Calls write(byte of the whole array, bytes) for all that the rank is the first to hold of what it fetched.
void forEachResultPart(const format::Manifest &manifest, const format::Output &output, const ResultPlace &place,
                       std::span<const std::byte> from, const WritePart &write);

/// An array for every output, of the model's own shape: the samples stand in their order in the dim that is its batch.
/// A result without one, and a number, has one row a batch where there are several batches. Every rank writes the
/// rectangles that it is the first to hold.
class ResultWriter {
public:
  /// Collective. `samples` are predicted in batches of the manifest's size; the last one may be filled up.
  ResultWriter(const format::Manifest &manifest, const std::string &path, uint64_t samples, comm::Control &control);

  /// Takes this rank's part of one microbatch of a batch.
  void take(const format::Output &output, uint64_t batch, int64_t microbatch, std::span<const std::byte> from);
  /// Collective. Gives the file its name.
  void finish();

private:
  const format::Manifest &manifest;
  std::string path;
  comm::Control &control;
  PartFile part;
  std::vector<size_t> arrays;               ///< in the file, by output
  std::vector<std::vector<int64_t>> shapes; ///< of each output's array
  std::unique_ptr<SafetensorsWriter> writer;
};

} // namespace par::core
