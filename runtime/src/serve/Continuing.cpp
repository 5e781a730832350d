#include "Continuing.h"

#include <algorithm>

namespace par::serve {

using core::Failure;

bool isDecoder(const format::Manifest &manifest) {
  return std::ranges::any_of(manifest.tensors, [](const format::Tensor &tensor) {
    return tensor.kind == format::TensorKind::Counter && tensor.name.starts_with("past.");
  });
}

Continuing::Continuing(api::Caller &caller, const core::DecoderShape &shape, Work &work)
    : caller(caller), shape(shape), work(work), rows(shape), owners(shape.rows) {}

int Continuing::run() {
  while (admit()) {
    try {
      step();
      work.succeed();
    } catch (const Failure &failure) {
      fail(failure);
    }
    work.finishCall();
  }
  return work.code();
}

/// Fills the rows with prompts, in the order of their requests. Waits for the first; false where none comes any more.
bool Continuing::admit() {
  dropAbandoned();
  while (rows.hasRoom()) {
    auto next =
        std::ranges::find_if(begun, [](const Begun &one) { return one.admitted < one.request().prompts.size(); });
    if (next == begun.end()) {
      if (!takeRequests())
        break;
      continue;
    }
    uint64_t row = rows.admit(next->request(), next->admitted++);
    owners[row] = &*next;
  }
  return rows.isActive();
}

/// Takes requests that are there; with nothing to compute it waits for some. False: none.
bool Continuing::takeRequests() {
  std::vector<PendingRequest> taken;
  if (!rows.isActive())
    taken = work.queue.gather();
  else if (PendingRequest one = work.queue.takeNow())
    taken.push_back(std::move(one));
  for (PendingRequest &pending : taken) {
    pending->answer.continuations.resize(pending->request.decoding.prompts.size());
    begun.push_back({std::move(pending)});
  }
  return !taken.empty();
}

/// The rows of clients that have gone are free.
void Continuing::dropAbandoned() {
  std::erase_if(begun, [&](const Begun &one) {
    if (!one.pending->isAbandoned) // asked once: the client may go at any time
      return false;
    for (uint64_t row = 0; row < shape.rows; ++row)
      if (rows[row] && owners[row] == &one)
        rows.drop(row);
    return true;
  });
}

void Continuing::step() {
  core::DecoderCall next = rows.nextCall();
  uint64_t active = rows.active(), fed = 0;
  call(next);
  work.statistics.addCall(active);
  for (uint64_t row : rows.take(next, fed))
    append(row);
}

void Continuing::call(const core::DecoderCall &call) {
  inputs.set(call, call.prefill ? shape.prefill : 1);
  std::string prefix = call.prefill ? "prefill." : "";
  for (const char *name : {"input_ids", "position", "count"}) {
    const format::Input &input = *caller.bundle().manifest.findInput(prefix + name);
    caller.feeding().feed(input.name,
                          {input.type, input.shape, reinterpret_cast<const std::byte *>(inputs.row(name, 0))});
  }
  caller.run(call.prefill ? "prefill" : "predict");
  auto *first = reinterpret_cast<const float *>(caller.result(prefix + "logits").data);
  logits = {first, shape.rows * static_cast<uint64_t>(shape.vocabulary)};
}

/// Chooses the next token of a row, and hands it on.
void Continuing::append(uint64_t row) {
  Begun &owner = *owners[row];
  Pending &pending = *owner.pending;
  auto width = static_cast<size_t>(shape.vocabulary);
  int64_t token = rows.choose(row, logits.subspan(row * width, width));
  uint64_t prompt = rows[row]->prompt;
  bool isFirst = rows[row]->isPrompt();
  core::SequenceEnd end = rows.append(row, token);
  Continuation &continuation = pending.answer.continuations[prompt];
  continuation.tokens.push_back(token);
  work.statistics.addToken();
  if (isFirst)
    work.statistics.addFirstToken(std::chrono::duration<double>(Clock::now() - pending.arrived).count());
  if (end != core::SequenceEnd::None)
    continuation.end = toString(end);
  if (pending.request.streams)
    pending.tokens.add(encodeToken(pending.request, prompt, token, continuation.end));
  if (end == core::SequenceEnd::None || ++owner.ended < owner.request().prompts.size())
    return;
  pending.isDone = true;
  std::erase_if(begun, [&](const Begun &one) { return &one == &owner; });
}

/// All that is in a row has an error for its answer: what the caches hold is not known.
void Continuing::fail(const Failure &failure) {
  std::vector<PendingRequest> all;
  for (Begun &one : begun)
    all.push_back(std::move(one.pending));
  for (uint64_t row = 0; row < shape.rows; ++row)
    rows.drop(row);
  begun.clear();
  work.fail(all, failure);
}

} // namespace par::serve
