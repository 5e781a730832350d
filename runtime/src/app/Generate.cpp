// Continues the prompts of requests, one request after the other. A row that is free takes the next prompt at once.
#include "Generate.h"

#include "Sequences.h"
#include "par/format/Colors.h"
#include "par/messages/Failure.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>

namespace par::core {

namespace {

using nlohmann::ordered_json;

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
      : request(request), decoder(decoder), session(session), calls(calls), rows(shape) {}

  /// False: a signal has ended the job.
  bool run();

private:
  std::vector<uint64_t> feed(const DecoderCall &call);
  std::vector<int64_t> choose(const std::vector<uint64_t> &ready);
  void append(uint64_t row, int64_t token);
  void finish();

  const Request &request;
  Decoder &decoder;
  Session &session;
  uint64_t &calls; ///< of the whole job
  Sequences rows;
  uint64_t admitted = 0, fed = 0, made = 0;
  double seconds[2] = {}; ///< of steps, and of prefills
};

} // namespace

/// Runs a call; returns the rows whose last known token it has taken.
std::vector<uint64_t> Answer::feed(const DecoderCall &call) {
  auto began = std::chrono::steady_clock::now();
  decoder.run(call);
  seconds[call.prefill] += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return rows.take(call, fed);
}

/// The next token of each of these rows, on all ranks.
std::vector<int64_t> Answer::choose(const std::vector<uint64_t> &ready) {
  std::vector<int64_t> tokens(ready.size());
  if (session.rank() == decoder.chooser())
    for (size_t i = 0; i < ready.size(); ++i)
      tokens[i] = rows.choose(ready[i], decoder.logits(ready[i]));
  comm::Control &control = session.jobControl();
  if (control.world() == 1 || ready.empty())
    return tokens;
  size_t bytes = tokens.size() * sizeof(int64_t);
  std::string_view mine(reinterpret_cast<const char *>(tokens.data()), bytes);
  std::string chosen = control.broadcast("tokens", mine, decoder.chooser());
  std::memcpy(tokens.data(), chosen.data(), std::min(bytes, chosen.size()));
  return tokens;
}

void Answer::append(uint64_t row, int64_t token) {
  ++made;
  uint64_t prompt = rows[row]->prompt;
  SequenceEnd end = rows.append(row, token);
  if (session.rank() != 0)
    return;
  ordered_json line = {{"prompt", prompt}, {"token", token}};
  if (end != SequenceEnd::None)
    line["end"] = toString(end);
  say(line);
}

void Answer::finish() {
  if (session.rank() == 0)
    say({{"done", {{"prompt_tokens", fed}, {"tokens", made}, {"prefill_s", seconds[1]}, {"step_s", seconds[0]}}}});
}

bool Answer::run() {
  while (true) {
    for (; rows.hasRoom() && admitted < request.prompts.size(); ++admitted)
      rows.admit(request, admitted);
    if (!rows.isActive())
      break;
    if (!session.jobControl().startStep(++calls))
      return false;
    std::vector<uint64_t> ready = feed(rows.nextCall());
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
        std::cerr << format::colored(failure.what()) << std::endl;
        say({{"error", failure.what()}});
      }
      code = exitError;
    }
  }
  return code;
}

} // namespace par::core
