// Prompts in the rows of a batch, and how each goes on: the loop of --generate and of a server.
#pragma once

#include "Decoder.h"
#include "Requests.h"

#include <deque>
#include <optional>

namespace par::core {

/// A prompt in a row of the batch.
struct Sequence {
  const Request *request = nullptr;
  uint64_t prompt = 0;       ///< its number in the request
  std::deque<int64_t> ahead; ///< tokens that the cache does not have yet
  int64_t position = 0;      ///< tokens that it has
  uint64_t made = 0;
  bool isPrompt() const { return made == 0; }
};

/// Why a sequence has ended.
enum class SequenceEnd : uint8_t { None, Stop, Length };
/// "stop" or "length".
const char *toString(SequenceEnd end);

/// Tokens of prompts go through `prefill`, if the bundle has it, and each chosen token through `predict`: what a
/// sequence computes does not depend on its neighbours.
class Sequences {
public:
  explicit Sequences(const DecoderShape &shape) : shape(shape), rows(shape.rows) {}

  bool hasRoom() const { return active() < rows.size(); }
  bool isActive() const { return active() > 0; }
  uint64_t active() const;
  /// Puts that prompt of the request, which stays where it is, into a free row, and returns it; there is one.
  uint64_t admit(const Request &request, uint64_t prompt);
  /// Frees a row, whose sequence goes on no more.
  void drop(uint64_t row) { rows[row].reset(); }
  /// Nothing in a free row.
  const std::optional<Sequence> &operator[](uint64_t row) const { return rows[row]; }

  DecoderCall nextCall() const;
  /// A call is done: the tokens of prompts that it took are counted, and the rows returned whose last known token it
  /// was.
  std::vector<uint64_t> take(const DecoderCall &call, uint64_t &fed);
  /// The next token of a row that take() has returned.
  int64_t choose(uint64_t row, std::span<const float> logits) const;
  /// Goes on with that token. A row whose sequence ends so is free.
  SequenceEnd append(uint64_t row, int64_t token);

private:
  const DecoderShape &shape;
  std::vector<std::optional<Sequence>> rows;
};

} // namespace par::core
