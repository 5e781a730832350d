// A bundle of par.export_decoder as what it is: sequences in a cache, and calls that take tokens of each.
#pragma once

#include "par/app/Job.h"

#include <span>
#include <string_view>
#include <vector>

namespace par::core {

/// Inputs, outputs and sizes of a decoder's bundle.
struct DecoderShape {
  uint64_t rows = 0;      ///< sequences of a call
  uint64_t slots = 0;     ///< of the cache, for each sequence
  uint64_t prefill = 0;   ///< tokens of each sequence that a call of `prefill` takes; 0: there is no such entry
  int64_t vocabulary = 0; ///< logits of each sequence
};

/// Throws Failure at `place` where the bundle is none of a decoder's.
DecoderShape shapeOfDecoder(const format::Bundle &bundle, const std::string &place);

/// Tokens of a call: `count` of each row from `first` on, of which padding follows to the call's length.
struct DecoderCall {
  bool prefill = false;
  std::vector<std::vector<int64_t>> tokens; ///< by row; an empty row computes what nothing reads
  std::vector<int64_t> positions;           ///< by row, of its first token
};

/// The arrays that a call feeds: `tokens` [rows, length], `positions` and `counts` [rows, 1].
struct DecoderInputs {
  std::vector<int64_t> tokens, positions, counts;

  /// `length`: tokens of each row that the entry takes.
  void set(const DecoderCall &call, uint64_t length);
  /// The array for an input of either entry, from that row on.
  const int64_t *row(std::string_view input, uint64_t row) const;
};

/// Runs calls and gives their logits to the ranks that choose tokens.
class Decoder {
public:
  Decoder(Session &session, const DecoderShape &shape);
  ~Decoder();

  /// Collective. Logits are at logits() on rank chooser() afterwards.
  void run(const DecoderCall &call);
  /// The rank that has the logits of all rows: that of the lowest number that holds them whole, else rank 0.
  uint32_t chooser() const { return choosing; }
  std::span<const float> logits(uint64_t row) const;

private:
  class Rows;
  void take(const format::Output &output, int64_t microbatch, std::span<const std::byte> from);
  void place(uint32_t rank, int64_t microbatch, std::span<const std::byte> from);
  void gather();

  Session &session;
  DecoderShape shape;
  const format::Output *outputs[2]; ///< of a step and of a prefill
  uint32_t choosing = 0;
  bool isWhole = false; ///< on `choosing`, without being gathered
  bool prefilling = false;
  std::vector<float> all;
  std::string own; ///< this rank's parts of the last call, to be gathered
  std::unique_ptr<Rows> given;
  RowOrder order;
};

} // namespace par::core
