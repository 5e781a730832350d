// Bytes of the control plane.
#pragma once

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

/// Reads the bytes of a Writer; throws std::runtime_error on bytes that are too short.
class Reader {
public:
  explicit Reader(std::string_view bytes) : rest(bytes) {}
  uint64_t number();
  std::string text();
  /// Bytes that are left.
  size_t left() const { return rest.size(); }

private:
  std::string_view rest;
};

/// Bytes of a frame, header included, at most.
inline constexpr size_t maxFrame = 1 << 20;

/// Maximum bytes of a message before the sender has shown the job's secret.
inline constexpr size_t maxStranger = 512;

/// A message on a connection. Longer ones travel as several frames.
struct Message {
  enum Kind : uint8_t {
    challenge, ///< host to a new connection (AuthGate.cpp)
    proof,     ///< rank to host: that it knows the job's secret
    admitted,  ///< host to rank: that it knows it, too
    join,      ///< rank to host
    welcome,   ///< host to rank, when all have come
    refuse,    ///< host to rank: exit code, message
    value,     ///< rank to host: its part of an exchange
    values,    ///< host to rank: its values of the exchange
    place,     ///< host to a spare: the rank whose place it takes
    // Between rank 0's host and the leader of another host (HostRelay.h).
    link,    ///< leader: the host that it leads; the connection is a link from then on
    ranks,   ///< both: a digest of the board
    ended,   ///< both: exit code and message of the job's end
    stop,    ///< both: the job is to stop; the signal that asked for it
    frozen,  ///< leader: no rank of its host starts a step; the last one started
    allowed, ///< host to leader: the job's last step
    bye,     ///< both, and host to a spare: the job is over
    wait,    ///< host to a rank that the attempt goes on without: the number of ranks that it has (Seats.h)
  } kind = challenge;
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
  /// Writes and reads as much as possible without waiting; closes at the end of the stream, on errors and on malformed
  /// frames.
  void pump();
  /// The next whole message, if one has come.
  std::optional<Message> next();
  /// The next message, if one comes within `milliseconds` and before the end of the stream.
  std::optional<Message> await(int milliseconds);
  /// The other end has shown the job's secret and may send more than maxStranger bytes.
  void trust() { trusted = true; }

private:
  void write();
  void read();
  bool takeFrame();

  int fd;
  bool trusted = false;
  std::string out, in, partial;
  std::optional<Message> ready;
};

} // namespace par::comm
