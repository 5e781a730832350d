// Carries bytes between ranks of different hosts: the one thing that the engine needs of MPI or of sockets. Messages
// between two ranks with one tag arrive in the order in which they were sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace par::comm {

class HostCarrier {
public:
  virtual ~HostCarrier();

  /// True when the bytes may be overwritten (sent), or have come (received).
  using Ticket = std::shared_ptr<const bool>;

  /// Bytes that must stay until the ticket says so. Never waits. A message of more than maxSmall bytes is sent only to
  /// a receiver that has posted a receive of as many bytes; a smaller one may come first.
  virtual Ticket send(uint32_t rank, uint32_t tag, std::span<const std::byte> bytes) = 0;
  /// Room for a message; one of at most maxSmall bytes may be shorter than the room.
  virtual Ticket receive(uint32_t rank, uint32_t tag, std::span<std::byte> bytes) = 0;
  /// Moves everything as far as it goes without waiting; true if a ticket has become true. Throws std::runtime_error.
  virtual bool poll() = 0;
  /// After the last message, with all ranks: takes the connections down in good order.
  virtual void close() {}
  /// "MPI (Open MPI 4.1.4)".
  virtual std::string describe() const = 0;

  static constexpr size_t maxSmall = size_t(64) << 10;
};

} // namespace par::comm
