// Feeding: samples from arrays of files or from text, in an order that a seed and a position fix.
#pragma once

#include "par/data/Elements.h"
#include "par/files/ArrayFile.h"
#include "par/format/Manifest.h"

#include <map>
#include <memory>
#include <optional>

namespace par::core {

/// The value of --data and --eval-data: "F", or "F:input=array,...".
struct DataSpec {
  std::string path;
  std::string renamings; ///< ":input=array,..." as given
};
/// Names of folders, files and arrays may have colons themselves: the file's name is the one that exists, else the one
/// that ends as a file of arrays.
DataSpec readDataSpec(const std::string &spec);
/// The value of --eval-data beside --data and --text, or beside --tokens.
DataSpec readEvalSpec(const std::string &spec, bool ofTokens);

/// The value of --input, "INPUT=F" or "INPUT=F:ARRAY".
struct InputSpec {
  std::string input, path;
  std::string array; ///< "" for the only one of the file
};
/// Throws Failure, of the command line, for a value of another form.
InputSpec readInputSpec(const std::string &spec);

/// The value of --tokens, "F" or "F:u16".
struct TokenSpec {
  std::string path, type; ///< "" where none is given
};
TokenSpec readTokenSpec(const std::string &spec);

/// Samples, each a row of every input that is fed.
class Dataset {
public:
  virtual ~Dataset();
  virtual uint64_t rows() const = 0;
  /// "README.md: 9,214 bytes, 71 windows of 128".
  virtual std::string describe() const = 0;
  virtual bool has(const std::string &input) const = 0;
  /// Row `row` of an input as the entry wants it: dense, of shape input.shape[1:], in the input's type. The result
  /// lies in the file or in `scratch`.
  virtual const std::byte *row(const format::Input &input, uint64_t row, std::vector<std::byte> &scratch) const = 0;
  /// An input that is not cut into microbatches.
  virtual const std::byte *whole(const format::Input &input) const = 0;
  /// The source and its inputs, for error 15: "--text README.md feeds "input_ids" and "labels"".
  virtual std::string feeds() const = 0;
  /// Names of arrays in its files that no input takes; "" for none.
  virtual std::string unused() const { return ""; }
  /// Arrays whose values are rounded: `"x" is f64 there and f32 in the bundle: rounded`; "" for none.
  virtual std::string rounded() const { return ""; }
  /// The files, for messages.
  virtual std::string place() const { return describe(); }
  /// Whether its rows are there now. Others may still be putting them there, and are waited for a moment.
  virtual bool isThere() const { return true; }
  /// After each use of rows: throws Failure if a file has become shorter, and rows may have been zeros.
  virtual void checkWhole() const {}
};

/// The files that feed the inputs.
struct ArrayFeed {
  std::vector<std::string> data;   ///< of --data: "F", "F:input=array,...", one shard after the other
  std::vector<std::string> inputs; ///< of --input: files of a single input
  PixelFeeds pixels = {};
};
/// Arrays named as the inputs, or renamed. Throws Failure (error 18).
std::unique_ptr<Dataset> openArrays(const ArrayFeed &feed, const format::Manifest &manifest);

/// Windows of tokens.
struct WindowFeed {
  std::string labels = {};             ///< "next", "same" or empty (the manifest's)
  std::optional<uint64_t> stride = {}; ///< tokens between the begins of two windows; default: a window
};
/// Bytes as tokens.
std::unique_ptr<Dataset> openText(const std::string &path, const format::Manifest &manifest, const WindowFeed &feed);
/// A file of integers as tokens: "F:TYPE", or a .npy.
std::unique_ptr<Dataset> openTokens(const std::string &spec, const format::Manifest &manifest, const WindowFeed &feed);
/// One batch of made-up values for every input, a function of the seed: normal numbers, integers within their limits.
std::unique_ptr<Dataset> makeUpData(const format::Manifest &manifest, uint64_t seed);
/// Whether an input or output is one of the entry `prefill`, which only --generate runs.
bool isOfPrefill(const format::Manifest &manifest, std::string_view name);
/// Throws Failure (error 15) if an input of the bundle gets no data. `dataset` may be null.
void checkFed(const format::Manifest &manifest, const Dataset *dataset, const std::string &bundle);

/// Which row stands at which position: one permutation an epoch, no row dropped.
class RowOrder {
public:
  RowOrder(uint64_t rows, bool shuffled, uint64_t seed) : rows(rows), shuffled(shuffled), seed(seed) {}
  /// Row at position p = epoch * rows + place.
  uint64_t at(uint64_t position) const;

private:
  uint64_t rows;
  bool shuffled;
  uint64_t seed;
  mutable std::optional<uint64_t> epoch;
  mutable std::vector<uint32_t> permutation;
};

} // namespace par::core
