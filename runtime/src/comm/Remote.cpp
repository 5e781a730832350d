//===- Remote.cpp - a rank's control plane over a socket -------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "comm/Remote.h"
#include "comm/Exchange.h"
#include "par/comm/Sentences.h"

#include <unistd.h>

using namespace par::comm;

namespace {

void waitFor(Connection &connection, int milliseconds) {
  pollfd polled{connection.socket(), short(connection.pending() ? POLLIN | POLLOUT : POLLIN), 0};
  poll(&polled, 1, milliseconds);
  connection.pump();
}

/// The next message within `milliseconds`, if one comes.
std::optional<Message> receive(Connection &connection, int milliseconds) {
  int64_t deadline = now() + int64_t(milliseconds) * 1'000'000;
  for (;;) {
    if (std::optional<Message> message = connection.next())
      return message;
    if (!connection.open() || now() >= deadline)
      return std::nullopt;
    waitFor(connection, 50);
  }
}

/// Tries one port: whoever listens there must know our job's token.
std::optional<Joined> tryPort(const std::string &host, uint16_t port, const Join &join) {
  Connection connection(connectTo(host, port));
  if (!connection.open())
    return std::nullopt;
  std::optional<Message> greeting = receive(connection, 1000);
  if (!greeting || greeting->kind != Message::greeting || greeting->body != greetingOf(join.token))
    return std::nullopt;
  connection.send({Message::join, join.write()});
  std::optional<Message> answer = receive(connection, 5000);
  if (answer && answer->kind == Message::refuse) {
    Reader reader(answer->body);
    int code = int(reader.number());
    throw Refused(code, reader.text());
  }
  if (!answer || answer->kind != Message::welcome)
    return std::nullopt;
  return Joined{std::move(connection), answer->body};
}

} // namespace

Joined par::comm::joinHost(const Place &place, const Join &join, double timeout) {
  int64_t deadline = now() + int64_t(timeout * 1e9);
  do {
    for (uint16_t port : portsOf(place))
      if (std::optional<Joined> joined = tryPort(place.host, port, join))
        return std::move(*joined);
    usleep(50'000);
  } while (now() < deadline);
  throw LaunchError(exitRankLost, say(Sentence::noHost, join.rank, place.host, place.port));
}

std::vector<std::string> RemoteControl::exchange(Sharing sharing, std::string_view label,
                                                 std::string_view value, uint32_t root) {
  Writer writer;
  writer.number(uint64_t(sharing)).number(root).text(label).text(value);
  connection.send({Message::value, writer.take()});
  std::optional<Message> answer;
  while (!answer) {
    if (board.aborted())
      throw Aborted(board.message());
    // Who watches the host says what became of it; this rank only waits to be told.
    if (connection.open())
      waitFor(connection, 100);
    else
      usleep(20'000);
    answer = connection.next();
    board[rank()].idle.fetch_add(1, std::memory_order_relaxed);
  }
  std::vector<std::string> values;
  Reader reader(answer->body);
  for (uint64_t i = 0, n = reader.number(); i < n; ++i)
    values.push_back(reader.text());
  return values;
}

std::unique_ptr<Endpoint> RemoteControl::connect(std::span<const Members> table, size_t arenaBytes) {
  auto fabric = std::make_shared<Fabric>();
  fabric->board = &board;
  fabric->table.assign(table.begin(), table.end());
  size_t meeting = exchangeBytes(table);
  files.arenas[rank()].resize(arenaBytes);
  if (rank() == 0)
    files.exchange.resize(meeting);
  Writer mine;
  mine.number(arenaBytes).number(meeting);
  std::vector<std::string> sizes = allGather("arenas", mine.take());
  for (uint32_t other = 0; other < world(); ++other) {
    Reader reader(sizes[other]);
    size_t bytes = reader.number();
    if (reader.number() != meeting)
      throw Mismatch(say(Sentence::otherTable, other, rank()));
    Mapping arena = files.arenas[other].map(bytes);
    fabric->arenas.push_back(arena.bytes);
    fabric->mappings.push_back(arena.owner);
  }
  Mapping memory = files.exchange.map(meeting);
  fabric->mappings.push_back(memory.owner);
  fabric->areas = exchangeAreas(fabric->table, memory.bytes.data());
  return makeEndpoint(fabric, rank());
}
