#include "Sequences.h"

#include <algorithm>

namespace par::core {

const char *toString(SequenceEnd end) { return end == SequenceEnd::Stop ? "stop" : "length"; }

uint64_t Sequences::active() const {
  return static_cast<uint64_t>(std::ranges::count_if(rows, [](const auto &row) { return row.has_value(); }));
}

uint64_t Sequences::admit(const Request &request, uint64_t prompt) {
  auto row = std::ranges::find_if(rows, [](const auto &one) { return !one.has_value(); });
  const std::vector<int64_t> &tokens = request.prompts[prompt];
  *row = Sequence{&request, prompt, {tokens.begin(), tokens.end()}};
  return static_cast<uint64_t>(row - rows.begin());
}

DecoderCall Sequences::nextCall() const {
  DecoderCall call;
  call.prefill = shape.prefill > 0 && std::ranges::any_of(rows, [](const auto &row) { return row && row->isPrompt(); });
  uint64_t length = call.prefill ? shape.prefill : 1;
  for (const std::optional<Sequence> &row : rows) {
    call.positions.push_back(row ? row->position : 0);
    call.tokens.emplace_back();
    if (!row || (call.prefill && !row->isPrompt()))
      continue;
    auto count = static_cast<std::ptrdiff_t>(std::min<uint64_t>(length, row->ahead.size()));
    call.tokens.back().assign(row->ahead.begin(), row->ahead.begin() + count);
  }
  return call;
}

std::vector<uint64_t> Sequences::take(const DecoderCall &call, uint64_t &fed) {
  std::vector<uint64_t> ready;
  for (uint64_t i = 0; i < rows.size(); ++i) {
    auto count = static_cast<std::ptrdiff_t>(call.tokens[i].size());
    if (count == 0)
      continue;
    Sequence &row = *rows[i];
    fed += row.isPrompt() ? static_cast<uint64_t>(count) : 0;
    row.ahead.erase(row.ahead.begin(), row.ahead.begin() + count);
    row.position += count;
    if (row.ahead.empty())
      ready.push_back(i);
  }
  return ready;
}

int64_t Sequences::choose(uint64_t row, std::span<const float> logits) const {
  const Sequence &sequence = *rows[row];
  return chooseToken(logits, sequence.request->sampling, sequence.prompt, static_cast<uint64_t>(sequence.position));
}

SequenceEnd Sequences::append(uint64_t at, int64_t token) {
  Sequence &row = *rows[at];
  ++row.made;
  row.ahead.push_back(token);
  const std::vector<int64_t> &stops = row.request->stops;
  SequenceEnd end = std::ranges::find(stops, token) != stops.end() ? SequenceEnd::Stop
                    : row.made == row.request->newTokens           ? SequenceEnd::Length
                                                                   : SequenceEnd::None;
  if (end != SequenceEnd::None)
    drop(at);
  return end;
}

} // namespace par::core
