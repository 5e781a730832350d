// Continues prompts in the rows of a batch. Tokens of prompts go through `prefill`, if the bundle has it, and each
// chosen token through `predict`: what a sequence computes does not depend on its neighbours. A row that is free takes
// the next prompt at once.
#include "Generate.h"

#include "Decoder.h"
#include "Requests.h"
#include "par/messages/Failure.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <optional>

namespace par::core {

namespace {

using nlohmann::ordered_json;

/// A prompt in a row of the batch.
struct Sequence {
  uint64_t prompt = 0;       ///< its number in the request
  std::deque<int64_t> ahead; ///< tokens that the cache does not have yet
  int64_t position = 0;      ///< tokens that it has
  uint64_t made = 0;
  bool isPrompt() const { return made == 0; }
};

/// Writes a line for the reader of this job. Throws Failure if it cannot be written.
void say(const ordered_json &line) {
  std::string text = line.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw Failure::at("stdout", Message::cannotWrite, strerror(errno));
}

/// One request on its way.
class Answer {
public:
  Answer(const Request &request, const DecoderShape &shape, Decoder &decoder, Session &session, uint64_t &calls)
      : request(request), shape(shape), decoder(decoder), session(session), calls(calls), rows(shape.rows) {}

  /// False: a signal has ended the job.
  bool run();

private:
  void admit();
  DecoderCall nextCall() const;
  std::vector<uint64_t> feed(const DecoderCall &call);
  std::vector<int64_t> choose(const std::vector<uint64_t> &ready);
  void append(uint64_t row, int64_t token);
  void finish();
  bool isActive() const {
    return std::any_of(rows.begin(), rows.end(), [](const auto &row) { return row.has_value(); });
  }

  const Request &request;
  const DecoderShape &shape;
  Decoder &decoder;
  Session &session;
  uint64_t &calls; ///< of the whole job
  std::vector<std::optional<Sequence>> rows;
  uint64_t admitted = 0, fed = 0, made = 0;
  double seconds[2] = {}; ///< of steps, and of prefills
};

} // namespace

void Answer::admit() {
  for (std::optional<Sequence> &row : rows)
    if (!row && admitted < request.prompts.size()) {
      const std::vector<int64_t> &prompt = request.prompts[admitted];
      row = Sequence{admitted++, {prompt.begin(), prompt.end()}};
    }
}

DecoderCall Answer::nextCall() const {
  DecoderCall call;
  call.prefill = shape.prefill > 0 &&
                 std::any_of(rows.begin(), rows.end(), [](const auto &row) { return row && row->isPrompt(); });
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

/// Runs a call; returns the rows whose last known token it has taken.
std::vector<uint64_t> Answer::feed(const DecoderCall &call) {
  auto began = std::chrono::steady_clock::now();
  decoder.run(call);
  seconds[call.prefill] += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
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

/// The next token of each of these rows, on all ranks.
std::vector<int64_t> Answer::choose(const std::vector<uint64_t> &ready) {
  std::vector<int64_t> tokens(ready.size());
  if (session.rank() == decoder.chooser())
    for (size_t i = 0; i < ready.size(); ++i) {
      const Sequence &row = *rows[ready[i]];
      tokens[i] =
          chooseToken(decoder.logits(ready[i]), request.sampling, row.prompt, static_cast<uint64_t>(row.position));
    }
  comm::Control &control = session.jobControl();
  if (control.world() == 1 || ready.empty())
    return tokens;
  size_t bytes = tokens.size() * sizeof(int64_t);
  std::string_view mine(reinterpret_cast<const char *>(tokens.data()), bytes);
  std::string chosen = control.broadcast("tokens", mine, decoder.chooser());
  std::memcpy(tokens.data(), chosen.data(), std::min(bytes, chosen.size()));
  return tokens;
}

void Answer::append(uint64_t at, int64_t token) {
  Sequence &row = *rows[at];
  ++made;
  ++row.made;
  row.ahead.push_back(token);
  bool stops = std::find(request.stops.begin(), request.stops.end(), token) != request.stops.end();
  bool ends = stops || row.made == request.newTokens;
  if (session.rank() == 0) {
    ordered_json line = {{"prompt", row.prompt}, {"token", token}};
    if (ends)
      line["end"] = stops ? "stop" : "length";
    say(line);
  }
  if (ends)
    rows[at].reset();
}

void Answer::finish() {
  if (session.rank() == 0)
    say({{"done", {{"prompt_tokens", fed}, {"tokens", made}, {"prefill_s", seconds[1]}, {"step_s", seconds[0]}}}});
}

bool Answer::run() {
  for (admit(); isActive(); admit()) {
    if (!session.jobControl().startStep(++calls))
      return false;
    std::vector<uint64_t> ready = feed(nextCall());
    std::vector<int64_t> tokens = choose(ready);
    for (size_t i = 0; i < ready.size(); ++i)
      append(ready[i], tokens[i]);
  }
  finish();
  return true;
}

namespace {

/// The lines of --generate, which rank 0 reads and all get.
class Lines {
public:
  Lines(const std::string &path, comm::Control &control) : path(path), control(control) {
    if (control.rank() == 0 && path != "-") {
      file.open(path);
      if (!file)
        throw Failure::at(path, Message::cannotOpen, strerror(errno));
    }
  }

  /// The next line that is not empty; nothing at the end.
  std::optional<std::string> next() {
    std::string line;
    bool there = true;
    if (control.rank() == 0)
      do
        there = static_cast<bool>(std::getline(path == "-" ? std::cin : file, line)) && ++number;
      while (there && line.empty());
    if (control.world() > 1) {
      line = control.broadcast("request", there ? "+" + line : "");
      there = !line.empty();
      line.erase(0, 1);
    }
    return there ? std::optional(line) : std::nullopt;
  }

  /// "prompts.jsonl:3".
  std::string place() const { return (path == "-" ? "stdin" : path) + ":" + std::to_string(number); }

private:
  std::string path;
  comm::Control &control;
  std::ifstream file;
  uint64_t number = 0; ///< on rank 0
};

} // namespace

int generate(const Job &job, Session &session) {
  DecoderShape shape = shapeOfDecoder(job.bundle, job.name);
  Decoder decoder(session, shape);
  Lines lines(job.options.generate, session.jobControl());
  uint64_t calls = 0;
  int code = 0;
  while (std::optional<std::string> line = lines.next()) {
    try {
      Request request = readRequest(*line, lines.place(), shape.slots, shape.vocabulary);
      if (!Answer(request, shape, decoder, session, calls).run())
        return code;
    } catch (const Failure &failure) {
      if (session.rank() == 0) {
        std::cerr << failure.what() << std::endl;
        say({{"error", failure.what()}});
      }
      code = exitError;
    }
  }
  return code;
}

} // namespace par::core
