// Bytes of clients of par-run --serve, in pieces of any length, for a bundle that takes arrays and for a decoder: each
// message is a request or a mistake with a sentence, in however many pieces it comes, and each answer is a line of JSON
// or a whole safetensors file. The first byte of the input picks the bundle and how bytes are cut.
#include "par/format/SafetensorsHeader.h"
#include "par/messages/Failure.h"
#include "serve/Connection.h"
#include "serve/Prompts.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

using namespace par;
using namespace par::serve;
using format::DType;

namespace {

const format::Manifest &manifest() {
  static const format::Manifest made = [] {
    format::Manifest all;
    all.inputs = {{"x", DType::F32, {4, 2}},
                  {"flag", DType::I1, {4}},
                  {"half", DType::F16, {4, 1, 2}},
                  {"small", DType::I8, {4}},
                  {"all", DType::F64, {3}, /*microbatched=*/false}};
    all.outputs = {{"y", DType::F32, {4, 2}, /*metric=*/false}};
    return all;
  }();
  return made;
}

const MessageReader &readerFor(bool decodes) {
  static const Takes takes = {&manifest(), {0, 1, 2, 3, 4}, {&manifest().outputs[0]}, /*rows=*/4, /*gathers=*/true};
  static const RequestReader arrays(takes);
  static const PromptReader prompts(core::DecoderShape{.rows = 4, .slots = 16, .prefill = 4, .vocabulary = 100});
  return decodes ? static_cast<const MessageReader &>(prompts) : arrays;
}

void hold(bool isTrue) {
  if (!isTrue)
    std::abort();
}

/// Answers as a server would: with the arrays as they came, or tokens.
void answer(Pending &pending) {
  Request &request = pending.request;
  hold(request.rows >= 1 && request.rows <= 4);
  for (size_t prompt = 0; prompt < request.decoding.prompts.size(); ++prompt) {
    hold(!request.decoding.prompts[prompt].empty() && request.decoding.newTokens >= 1);
    pending.answer.continuations.push_back({{1, 2}, "stop"});
    if (request.streams)
      pending.tokens.add(encodeToken(request, prompt, 1, "") + encodeToken(request, prompt, 2, "stop"));
  }
  for (size_t i = 0; i < request.arrays.size(); ++i) {
    const format::Input &input = manifest().inputs[i];
    std::vector<int64_t> shape = input.shape;
    if (input.microbatched)
      shape[0] = static_cast<int64_t>(request.rows);
    hold(request.arrays[i].size() == static_cast<size_t>(core::elementCount(shape)) * format::sizeOf(input.type));
    pending.answer.results.push_back({input.name, input.type, shape, request.arrays[i]});
  }
  pending.isDone = true;
}

/// Each answer is a line of JSON, or a safetensors file after a line with its length.
void check(std::string_view answers) {
  constexpr std::string_view word = "safetensors ";
  while (!answers.empty()) {
    size_t end = answers.find('\n');
    hold(end != std::string_view::npos);
    std::string line(answers.substr(0, end));
    answers.remove_prefix(end + 1);
    if (!line.starts_with(word)) {
      hold(nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false).is_object());
      continue;
    }
    size_t bytes = std::stoul(line.substr(word.size()));
    hold(bytes <= answers.size() && bool(format::readSafetensors(std::string(answers.substr(0, bytes)))));
    answers.remove_prefix(bytes);
  }
}

/// A client's side of a connection, which takes whatever comes.
class Client {
public:
  Client() { hold(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0); }
  ~Client() { close(ends[1]); }
  int server() const { return ends[0]; }
  void send(std::string_view bytes) const { ::send(ends[1], bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void stop() const { shutdown(ends[1], SHUT_WR); }
  void take() {
    char bytes[4096];
    for (ssize_t n = 0; (n = recv(ends[1], bytes, sizeof bytes, 0)) > 0;)
      taken.append(bytes, static_cast<size_t>(n));
  }
  std::string taken;

private:
  int ends[2];
};

/// One turn of the server's loop for one client.
void takeTurn(Connection &connection, Client &client, Statistics &statistics) {
  if (connection.wantsInput(4))
    connection.receive();
  while (true) {
    connection.answer(statistics);
    do {
      connection.send();
      client.take();
    } while (connection.wantsOutput() && !connection.isFinished());
    std::vector<PendingRequest> whole = connection.requests(4, statistics);
    if (whole.empty())
      return;
    for (PendingRequest &request : whole)
      if (!request->isDone)
        answer(*request);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1)
    return 0;
  std::string_view rest(reinterpret_cast<const char *>(data), size);
  auto way = static_cast<unsigned char>(rest.front());
  rest.remove_prefix(1);
  size_t step = way / 2 % 8 ? size_t(1) << (way / 2 % 8 * 2) : rest.size();
  Client client;
  Statistics statistics;
  {
    Connection connection(client.server(), client.server(), readerFor(way & 1));
    for (; !rest.empty(); rest.remove_prefix(std::min(step, rest.size()))) {
      client.send(rest.substr(0, step));
      takeTurn(connection, client, statistics);
    }
    client.stop();
    for (int turn = 0; turn < 3; ++turn)
      takeTurn(connection, client, statistics);
    hold(connection.isFinished());
    client.take();
  }
  check(client.taken);
  return 0;
}
