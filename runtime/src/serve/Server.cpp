// One thread for all clients: waits for what can be read, written or handed back, and does it.
#include "Server.h"

#include "par/format/SignalsHeld.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace par::serve {

using core::Failure;
using namespace std::chrono_literals;

/// Clients beyond these are turned away.
static constexpr size_t maxConnections = 256;

static sigset_t ending() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : format::endingSignals)
    sigaddset(&set, signal);
  return set;
}

Server::Server(const std::string &address, uint64_t rows, const MessageReader &requests, Queue &queue,
               Statistics &statistics)
    : rows(rows), requests(requests), queue(queue), statistics(statistics),
      waker(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sigset_t set = ending();
  signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (waker < 0 || signals < 0)
    throw Failure::at("par-run", core::Message::cannotOpen, std::strerror(errno));
  if (address == "-")
    connections.push_back(std::make_unique<Connection>(STDIN_FILENO, STDOUT_FILENO, requests));
  else
    listener = std::make_unique<Listener>(address);
}

Server::~Server() {
  finish();
  close(waker);
  close(signals);
}

void Server::start() {
  thread = std::thread([this] { loop(); });
}

void Server::wake() const {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t n = write(waker, &one, sizeof one);
}

void Server::stop() {
  isStopping = true;
  wake();
}

void Server::finish() {
  isEnding = true;
  wake();
  if (thread.joinable())
    thread.join();
}

/// Takes no more requests.
void Server::leave() {
  if (draining)
    return;
  draining = true;
  listener.reset();
  for (auto &connection : connections)
    connection->stopReading();
  queue.close();
}

void Server::admit() {
  for (int client = listener->accept(); client >= 0; client = listener->accept()) {
    connections.push_back(std::make_unique<Connection>(client, client, requests));
    if (connections.size() > maxConnections)
      connections.back()->giveUp(core::format("request: error: {} clients are connected, the most that there may be; "
                                              "close connections, or try again later",
                                              maxConnections));
  }
}

/// Waits until something can be done, and does it.
void Server::poll() {
  std::vector<pollfd> polled = {{waker, POLLIN, 0}, {signals, POLLIN, 0}};
  polled.push_back({listener ? listener->descriptor() : -1, POLLIN, 0});
  for (const auto &connection : connections) {
    // Two entries, so that a file or pipe that nothing is wanted of is not looked at.
    polled.push_back({connection->wantsInput(rows) ? connection->in() : -1, POLLIN, 0});
    bool writes = connection->wantsOutput();
    short events = writes ? POLLOUT : 0; // a socket that its client has closed is told of in any case
    polled.push_back({writes || connection->isSocket() ? connection->out() : -1, events, 0});
  }
  ::poll(polled.data(), polled.size(), /*ms=*/1000);
  uint64_t ignored = 0;
  while (read(waker, &ignored, sizeof ignored) > 0)
    ;
  for (size_t i = 0; i < connections.size(); ++i) {
    if (polled[3 + 2 * i].revents)
      connections[i]->receive();
    if (polled[4 + 2 * i].revents & POLLOUT)
      connections[i]->send();
    else if (connections[i]->isSocket() && polled[4 + 2 * i].revents)
      connections[i]->leave();
  }
  signalfd_siginfo signal{};
  if (read(signals, &signal, sizeof signal) > 0 || isStopping)
    leave();
  if (listener && polled[2].revents)
    admit();
}

/// Hands requests on, and answers back: an answer that has gone makes room for the next request.
void Server::workFor(Connection &connection) {
  while (true) {
    connection.answer(statistics);
    connection.send();
    std::vector<PendingRequest> whole = connection.requests(rows, statistics);
    if (whole.empty())
      return;
    for (PendingRequest &request : whole)
      if (!request->isDone)
        queue.add(std::move(request));
  }
}

void Server::work() {
  for (auto &connection : connections) {
    workFor(*connection);
    if (connection->isStalled(Clock::now())) {
      connection->giveUp("request: error: the rest did not come within 60 seconds");
      if (connection->wantsOutput())
        connection = nullptr;
    }
  }
  std::erase_if(connections, [](const auto &connection) { return !connection || connection->isFinished(); });
  if (!listener && connections.empty())
    leave();
}

void Server::loop() {
  constexpr auto lastPatience = 10s;
  while (true) {
    poll();
    work();
    if (!isEnding)
      continue;
    leave();
    endAt = endAt == Clock::time_point{} ? Clock::now() + lastPatience : endAt;
    if (connections.empty() || Clock::now() > endAt)
      return;
  }
}

} // namespace par::serve
