// Rank 0's side of the links between the boards of a job's hosts.
#include "HostRelay.h"
#include "comm/shared/Diagnosis.h"
#include "par/format/Printable.h"

#include <algorithm>

using namespace par;
using namespace par::comm;

namespace {

std::vector<uint32_t> ranksElsewhere(const HostMap &hosts, uint32_t host) {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < hosts.hostOf.size(); ++rank)
    if (hosts.hostOf[rank] != host)
      ranks.push_back(rank);
  return ranks;
}

} // namespace

void par::comm::warnOfSilence(SharedState &board, const std::string &bundle, const std::vector<uint32_t> &ranks,
                              const Patience &patience, int64_t heard, bool &warned) {
  std::optional<double> seconds = patience.worn(heard);
  if (seconds && !warned)
    printLine(bundle + ": warning: " + silentHost(board, ranks, *seconds, patience.seconds()));
  warned = seconds.has_value();
}

Message par::comm::endOf(SharedState &board) {
  Writer writer;
  writer.number(uint64_t(board.code())).text(board.message()).number(isLost(board));
  return {Message::ended, writer.take()};
}

void par::comm::takeEnd(SharedState &board, const Message &message) {
  Reader reader(message.body);
  uint64_t code = reader.number();
  std::string text = format::printable(reader.text(), "\n");
  bool lost = reader.number() != 0 && mends(board);
  if (!lost && !board.aborted() && board.claim())
    printLine(text);
  board.abort(code >= 1 && code <= 255 ? int(code) : exitRankLost, text, lost);
}

Message par::comm::stopOf(SharedState &board) {
  Signal signal = board.signal();
  Writer writer;
  writer.number(uint64_t(signal.number)).number(uint64_t(signal.rank + 1)).number(uint64_t(signal.pid));
  return {Message::stop, writer.take()};
}

void par::comm::takeStop(SharedState &board, const Message &message) {
  Reader reader(message.body);
  Signal signal;
  signal.number = int(reader.number() & 255);
  signal.rank = int(reader.number() & 0xffffff) - 1;
  signal.pid = int32_t(reader.number());
  if (signal.number)
    board.note(signal);
  board.stop();
}

HostRelay::Link::Link(HostMap &hosts, uint32_t host)
    : host(host), ranks(hosts.ranksOf(host)), others(ranksElsewhere(hosts, host)) {}

HostRelay::HostRelay(SharedState &board, HostMap given, std::string bundle, double timeout)
    : board(board), hosts(std::move(given)), bundle(std::move(bundle)), patience(std::max(timeout, minLinkTime)) {
  for (uint32_t host = 1; host < hosts.names.size(); ++host)
    links.emplace_back(hosts, host);
}

void HostRelay::adopt(uint64_t host, Connection connection) {
  if (host < 1 || host > links.size() || links[host - 1].connection)
    return;
  links[host - 1].connection.emplace(std::move(connection));
  links[host - 1].heard = now();
}

void HostRelay::watch(std::vector<pollfd> &polled) const {
  for (const Link &link : links)
    if (link.connection && link.connection->open())
      polled.push_back({link.connection->socket(), short(link.connection->pending() ? POLLIN | POLLOUT : POLLIN), 0});
}

bool HostRelay::quiet() const {
  return std::none_of(links.begin(), links.end(),
                      [](const Link &link) { return link.connection && link.connection->pending(); });
}

void HostRelay::handle(Link &link, const Message &message) {
  link.heard = now();
  if (message.kind == Message::ranks) {
    BoardDigest::apply(board, message.body);
  } else if (message.kind == Message::ended) {
    takeLoss(message);
  } else if (message.kind == Message::stop) {
    takeStop(board, message);
  } else if (message.kind == Message::frozen) {
    link.frozen = Reader(message.body).number();
  } else if (message.kind == Message::bye) {
    link.over = true;
  }
}

void HostRelay::tell(Link &link) {
  if (board.aborted() && !link.endSent) {
    link.connection->send(endOf(board));
    link.endSent = true;
  }
  if (board.isStopping() && !link.stopSent) {
    link.connection->send(stopOf(board));
    link.stopSent = true;
  }
  if (now() - link.told > digestTime) {
    link.connection->send({Message::ranks, link.others.changes(board)});
    link.told = now();
  }
}

void HostRelay::agreeOnStop() {
  if (stopSettled || !board.isStopping() ||
      std::any_of(links.begin(), links.end(), [](const Link &link) { return !link.frozen && !link.over; }))
    return;
  uint64_t last = board.lastStep();
  for (const Link &link : links)
    last = std::max(last, link.frozen.value_or(0));
  for (Link &link : links)
    if (link.connection)
      link.connection->send({Message::allowed, Writer().number(last).take()});
  board.settleStop(last);
  stopSettled = true;
}

void HostRelay::lose(const std::string &message) {
  if (mends(board) && !board.aborted())
    tellLoss(board, bundle, message);
  comm::lose(board, bundle, message);
}

/// A rank of another host that is lost is named here, too: its supervisor, which would say so there, may be lost with
/// it.
void HostRelay::takeLoss(const Message &message) {
  bool ended = board.aborted();
  takeEnd(board, message);
  if (ended || !isLost(board))
    return;
  std::string line = board.message(), begin = ": error: ";
  size_t at = line.find(begin);
  tellLoss(board, bundle, at == line.npos ? line : line.substr(at + begin.size()));
}

void HostRelay::judge(Link &link) {
  if (link.over || board.aborted())
    return;
  uint32_t leader = link.ranks.front();
  if (link.connection && !link.connection->open()) {
    if (!board[leader].finished.load())
      lose(lostRank(board, leader, "ended", double(now() - link.heard) / 1e9));
  } else if (std::optional<double> seconds = patience.exhausted(link.heard)) {
    lose(lostHost(board, link.ranks, *seconds));
  } else {
    warnOfSilence(board, bundle, link.ranks, patience, link.heard, link.warned);
  }
}

void HostRelay::step() {
  patience.look();
  if (board.stops())
    patience.shorten(minLinkTime);
  for (Link &link : links) {
    if (link.connection && link.connection->open()) {
      link.connection->pump();
      try {
        while (std::optional<Message> message = link.connection->next())
          handle(link, *message);
      } catch (const std::runtime_error &) { // malformed
        link.connection->close();
      }
    }
    judge(link);
  }
  agreeOnStop();
  for (Link &link : links)
    if (link.connection && link.connection->open())
      tell(link);
}

void HostRelay::finish() {
  step();
  for (Link &link : links)
    if (link.connection && link.connection->open())
      link.connection->send({Message::bye, ""});
}
