// A decoder that is served: the prompts of all clients share the rows of a call, and each row takes the next prompt
// when its sequence has ended.
#pragma once

#include "Work.h"
#include "app/Sequences.h"

#include <list>

namespace par::serve {

/// Whether calls of the bundle carry a decoder's cache on.
bool isDecoder(const format::Manifest &manifest);

class Continuing {
public:
  /// `caller` has a decoder of that shape open.
  Continuing(api::Caller &caller, const core::DecoderShape &shape, Work &work);

  /// Continues prompts until the queue is closed and empty. Returns the exit code.
  int run();

private:
  /// A request some of whose prompts have no end yet.
  struct Begun {
    PendingRequest pending;
    uint64_t admitted = 0, ended = 0;
    const core::Request &request() const { return pending->request.decoding; }
  };

  bool admit();
  bool takeRequests();
  void dropAbandoned();
  void step();
  void call(const core::DecoderCall &call);
  void append(uint64_t row);
  void fail(const core::Failure &failure);

  api::Caller &caller;
  const core::DecoderShape &shape;
  Work &work;
  core::Sequences rows;
  core::DecoderInputs inputs;
  std::span<const float> logits; ///< of the last call, all rows
  std::list<Begun> begun;
  std::vector<Begun *> owners; ///< by row
};

} // namespace par::serve
