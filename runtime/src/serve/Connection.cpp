#include "Connection.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <sys/socket.h>
#include <unistd.h>

namespace par::serve {

using core::Failure;

Connection::Connection(int in, int out, const MessageReader &requests)
    : source(in), sink(out), reader(requests), messages(requests.maxBytes()) {}

Connection::~Connection() {
  for (const PendingRequest &request : waiting)
    request->isAbandoned = true;
  if (source == sink)
    close(source);
}

uint64_t Connection::rowsWaiting() const {
  uint64_t rows = 0;
  for (const PendingRequest &request : waiting)
    rows += request->request.rows;
  return rows;
}

bool Connection::wantsInput(uint64_t rows) const {
  return !hasEnded && !isGone && !wantsOutput() && rowsWaiting() < 2 * rows && waiting.size() < 2 * rows;
}

bool Connection::isFinished() const { return isGone || (hasEnded && waiting.empty() && !wantsOutput()); }

bool Connection::isStalled(Clock::time_point now) const {
  constexpr std::chrono::seconds patience{60};
  bool waitsForClient = wantsOutput() || (messages.hasBytes() && !hasEnded && waiting.empty());
  return waitsForClient && now - moved > patience;
}

void Connection::receive() {
  constexpr size_t most = 256 << 10;
  std::string bytes(most, '\0');
  ssize_t n = ::read(source, bytes.data(), bytes.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  moved = Clock::now();
  if (n > 0)
    return messages.add(std::string_view(bytes).substr(0, static_cast<size_t>(n)));
  hasEnded = true;
  isGone |= n < 0;
  messages.end();
}

PendingRequest Connection::read(const Frame &frame, Statistics &statistics) {
  auto pending = std::make_shared<Pending>();
  try {
    reader.read(frame, pending->request);
  } catch (const std::exception &error) { // Failure; or no memory for it
    pending->answer.error = error.what();
    pending->request.rows = 0;
    pending->isDone = true;
    statistics.addError();
  }
  return pending;
}

std::vector<PendingRequest> Connection::requests(uint64_t rows, Statistics &statistics) {
  std::vector<PendingRequest> whole;
  try {
    while (!isGone && !wantsOutput() && rowsWaiting() < 2 * rows && waiting.size() < 2 * rows) {
      std::optional<Frame> frame = messages.next();
      if (!frame)
        break;
      waiting.push_back(read(*frame, statistics));
      whole.push_back(waiting.back());
    }
  } catch (const Failure &failure) { // nothing after it can be told apart
    giveUp(failure.what());
    whole.push_back(waiting.back());
    statistics.addError();
  }
  return whole;
}

void Connection::answer(Statistics &statistics) {
  if (!wantsOutput()) {
    output.clear();
    sent = 0;
    moved = waiting.empty() ? moved : Clock::now();
  }
  for (; !waiting.empty(); waiting.pop_front()) {
    Pending &done = *waiting.front();
    bool isDone = done.isDone;
    output += done.tokens.take();
    if (!isDone)
      return;
    output += encode(done.request, done.answer);
    if (done.answer.error.empty())
      statistics.addAnswer(std::chrono::duration<double>(Clock::now() - done.arrived).count());
  }
}

void Connection::send() {
  while (wantsOutput()) {
    std::string_view rest = std::string_view(output).substr(sent);
    // A pipe that is ready takes so many bytes without waiting.
    ssize_t n = source == sink ? ::send(sink, rest.data(), rest.size(), MSG_NOSIGNAL)
                               : ::write(sink, rest.data(), std::min<size_t>(rest.size(), PIPE_BUF));
    if (n < 0 && errno == EINTR)
      continue;
    isGone |= n < 0 && errno != EAGAIN;
    if (n <= 0)
      return;
    moved = Clock::now();
    sent += static_cast<size_t>(n);
    if (source != sink)
      return;
  }
}

void Connection::giveUp(const std::string &error) {
  auto last = std::make_shared<Pending>();
  last->answer.error = error;
  last->isDone = true;
  waiting.push_back(last);
  stopReading();
  messages = FrameReader(0);
}

} // namespace par::serve
