// Requests to a decoder: prompts, as --generate takes them, with an id, and whether tokens go out one by one.
#pragma once

#include "Request.h"
#include "app/Decoder.h"

namespace par::serve {

class PromptReader : public MessageReader {
public:
  explicit PromptReader(const core::DecoderShape &shape) : shape(shape) {}

  /// The bytes of prompts that fill the cache of a whole batch, as a line of JSON may spell their tokens.
  uint64_t maxBytes() const override;
  void read(const Frame &frame, Request &request) const override;

private:
  const core::DecoderShape shape;
};

} // namespace par::serve
