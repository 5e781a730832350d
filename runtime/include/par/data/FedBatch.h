// A batch whose arrays lie in the caller's memory.
#pragma once

#include "par/data/Data.h"

namespace par::core {

/// An array for one input. `data` is dense and row-major, and must stay as it is until the batch has been run.
struct FedArray {
  DType type = DType::F32;
  std::vector<int64_t> shape;
  const std::byte *data = nullptr;
};

/// The rows of one call of an entry, whose inputs have indices as in the manifest. An input keeps its array until it
/// gets another one or clear() is called.
class FedBatch : public Dataset {
public:
  /// `rows`: those of a call: Manifest::batch for each of its calls.
  FedBatch(const format::Manifest &manifest, uint64_t rows);

  /// Throws Failure, and feeds nothing, where no input has this name, or the array's type, shape or number of rows is
  /// not the input's.
  void feed(const std::string &name, FedArray array);
  /// Throws Failure where one of these inputs has no array, or an array of theirs holds an integer outside of its
  /// input's range. `place`: the entry that is fed.
  void check(const std::string &place, std::span<const size_t> inputs) const;
  void clear();
  /// Whether any input has an array.
  bool hasAny() const;
  /// By index of the input; `data` is null where nothing was fed.
  const std::vector<FedArray> &arrays() const { return fed; }

  uint64_t rows() const override { return count; }
  std::string describe() const override { return "a batch of the caller"; }
  bool has(const std::string &input) const override;
  const std::byte *row(const format::Input &input, uint64_t row, std::vector<std::byte> &scratch) const override;
  const std::byte *whole(const format::Input &input) const override;
  std::string feeds() const override { return "the caller feeds"; }
  std::string place() const override { return "the batch"; }

private:
  const FedArray &arrayOf(const format::Input &input) const;
  std::string missing(std::span<const size_t> inputs) const;

  const format::Manifest &manifest;
  uint64_t count;
  std::vector<FedArray> fed;
  mutable std::vector<std::byte> wide; ///< of an input without rows that has narrower elements
};

} // namespace par::core
