// The thread of a host's leader.
#include "HostLink.h"
#include "HostRelay.h"
#include "comm/shared/Diagnosis.h"
#include "comm/shared/Threads.h"
#include "par/messages/CommMessages.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace par::comm;

namespace {

/// Between two looks at the board; where lost ranks are started again each moment counts.
constexpr int waitTime = 50, mendingTime = 5;
/// How long the end of the job is tried to be told to rank 0's host.
constexpr int64_t lastWordsTime = 1'000'000'000;

} // namespace

HostLink::HostLink(LedHost given, Connection to, LocalChannel channel, std::string bundle, double timeout)
    : led(std::move(given)), board(led.board), connection(std::move(to)), channel(std::move(channel)),
      bundle(std::move(bundle)), patience(std::max(timeout, minLinkTime)), own(led.hosts.ranksOf(led.host)) {
  connection.send({Message::link, Writer().number(led.host).take()});
  ending = eventfd(0, EFD_CLOEXEC);
  if (ending < 0)
    throw std::runtime_error(say(Sentence::cannotStartThread, 0, std::strerror(errno)));
  thread = startThread([this] { loop(); });
}

HostLink::~HostLink() {
  eventfd_write(ending, 1);
  thread.join();
  close(ending);
}

bool HostLink::wait() const {
  pollfd polled[] = {{connection.socket(), short(connection.pending() ? POLLIN | POLLOUT : POLLIN), 0},
                     {channel.socket(), POLLIN, 0},
                     {ending, POLLIN, 0}};
  poll(polled, 3, mends(board) ? mendingTime : waitTime);
  return !(polled[2].revents & POLLIN);
}

void HostLink::loop() {
  while (wait()) {
    patience.look();
    if (board.stops())
      patience.shorten(minLinkTime);
    channel.serve(led.descriptors);
    connection.pump();
    try {
      while (std::optional<Message> message = connection.next())
        handle(*message);
    } catch (const std::runtime_error &) { // malformed
      connection.close();
    }
    judge();
    tell();
  }
  eventfd_t ended = 0;
  eventfd_read(ending, &ended);
  told = 0;
  judge();
  tell();
  if (connection.open())
    connection.send({Message::bye, ""});
  for (int64_t began = now(); connection.open() && connection.pending() && now() - began < lastWordsTime;) {
    wait();
    connection.pump();
  }
}

void HostLink::handle(const Message &message) {
  heard = now();
  if (message.kind == Message::ranks) {
    BoardDigest::apply(board, message.body);
  } else if (message.kind == Message::ended) {
    endSent = true;
    takeEnd(board, message);
  } else if (message.kind == Message::stop) {
    stopSent = true;
    takeStop(board, message);
    connection.send({Message::frozen, Writer().number(board.lastStep()).take()});
  } else if (message.kind == Message::allowed) {
    board.settleStop(Reader(message.body).number());
  } else if (message.kind == Message::bye) {
    over = true;
  }
}

void HostLink::tell() {
  if (!connection.open())
    return;
  if (board.aborted() && !endSent) {
    connection.send(endOf(board));
    endSent = true;
  }
  if (board.isStopping() && !stopSent) {
    connection.send(stopOf(board));
    stopSent = true;
  }
  if (now() - told > digestTime) {
    connection.send({Message::ranks, own.changes(board)});
    told = now();
  }
}

void HostLink::lose(const std::string &message) {
  if (mends(board) && !board.aborted())
    tellLoss(board, bundle, message, /*first=*/true);
  comm::lose(board, bundle, message);
}

/// The attempt may be over because a rank saw the end of rank 0 first, which rank 0's supervisor, lost with it, says
/// nowhere.
void HostLink::judgeAfterLoss() {
  if (!connection.open() && isLost(board) && mends(board) && !board[0].finished.load())
    tellLoss(board, bundle, lostRank(board, 0, "ended", double(now() - heard) / 1e9), /*first=*/true);
}

void HostLink::judge() {
  if (over)
    return;
  if (board.aborted())
    return judgeAfterLoss();
  if (!connection.open()) {
    if (!board[0].finished.load())
      lose(lostRank(board, 0, "ended", double(now() - heard) / 1e9));
  } else if (std::optional<double> seconds = patience.exhausted(heard)) {
    lose(lostHost(board, led.hosts.ranksOf(0), *seconds));
  } else {
    warnOfSilence(board, bundle, led.hosts.ranksOf(0), patience, heard, warned);
  }
}
