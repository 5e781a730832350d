//===- Wire.h - bytes of the control plane ---------------------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef PAR_SRC_COMM_WIRE_H
#define PAR_SRC_COMM_WIRE_H

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace par::comm {

/// Appends numbers (little endian) and length-prefixed texts.
class Writer {
public:
  Writer &number(uint64_t value);
  Writer &text(std::string_view value);
  std::string take() { return std::move(bytes); }

private:
  std::string bytes;
};

/// Reads what a Writer wrote; throws std::runtime_error on bytes that are too short.
class Reader {
public:
  explicit Reader(std::string_view bytes) : rest(bytes) {}
  uint64_t number();
  std::string text();

private:
  std::string_view rest;
};

/// Bytes of a frame, header included, at most.
inline constexpr size_t kMaxFrame = 1 << 20;

/// What is said on a connection. Longer messages travel as several frames.
struct Message {
  enum Kind : uint8_t {
    greeting, ///< host to whoever connects: that it knows the token, so that another job's port is not taken
              ///< for ours
    join,     ///< rank to host
    welcome,  ///< host to rank
    refuse,   ///< host to rank: exit code, message
    value,    ///< rank to host: its part of an exchange
    values,   ///< host to rank: what it gets of the exchange
  } kind = greeting;
  std::string body;
};

/// A connected non-blocking stream socket with its buffers. Closes it.
class Connection {
public:
  explicit Connection(int socket);
  Connection(Connection &&other) noexcept;
  Connection &operator=(Connection &&) = delete;
  ~Connection();

  int socket() const { return fd; }
  bool open() const { return fd >= 0; }
  void close();

  /// Queues a message and writes as much as goes without waiting.
  void send(const Message &message);
  bool pending() const { return !out.empty(); }
  /// Writes and reads what goes without waiting; closes at the end of the stream, on errors and on malformed
  /// frames.
  void pump();
  /// The next whole message, if one has come.
  std::optional<Message> next();

private:
  void write();
  void read();
  bool takeFrame();

  int fd;
  std::string out, in, partial;
  std::optional<Message> ready;
};

} // namespace par::comm

#endif // PAR_SRC_COMM_WIRE_H
