// Buffers between hosts over the job's own connections: for ranks that no MPI launcher has started. Each pair of ranks
// on different hosts has one connection, which both have shown the job's secret on. It is not encrypted.
#pragma once

#include "HostCarrier.h"
#include "comm/job/Serialization.h"

#include <deque>
#include <map>
#include <vector>

namespace par::comm {

class TcpCarrier final : public HostCarrier {
public:
  /// A connected socket for each rank that is on another host, -1 for others.
  explicit TcpCarrier(std::vector<int> sockets);
  ~TcpCarrier() override;

  Ticket send(uint32_t rank, uint32_t tag, std::span<const std::byte> bytes) override;
  Ticket receive(uint32_t rank, uint32_t tag, std::span<std::byte> bytes) override;
  bool poll() override;
  std::string describe() const override { return "tcp"; }

private:
  /// Begins every message; a credit, without bytes, says that a large receive is posted.
  struct Header {
    uint32_t tag = 0, bytes = 0;
    uint32_t credit = 0, mark = 0;
  };
  struct Posted {
    std::span<std::byte> room;
    std::shared_ptr<bool> done;
  };
  struct Sending {
    Header header;
    std::span<const std::byte> bytes;
    std::shared_ptr<bool> done; ///< null of credits
  };
  struct Peer {
    int socket = -1;
    int64_t brokenAt = 0; ///< when the connection ended
    std::string why;
    size_t open = 0; ///< receives that have been posted and have not ended
    std::deque<Sending> out;
    size_t written = 0; ///< of the first one, with its header
    std::map<uint32_t, uint32_t> credits;
    std::map<uint32_t, std::deque<Sending>> uncredited;
    std::map<uint32_t, std::deque<Posted>> posted;
    std::map<uint32_t, std::deque<std::vector<std::byte>>> early; ///< small messages that came before their receive
    Header header;
    size_t read = 0; ///< of the message that is coming, with its header
    std::vector<std::byte> small;
    std::span<std::byte> room; ///< for the message that is coming
    std::shared_ptr<bool> done;
  };
  void release(Peer &peer, uint32_t tag);
  bool write(uint32_t rank);
  bool read(uint32_t rank);
  bool begin(uint32_t rank);
  bool end(Peer &peer);
  size_t take(uint32_t rank, std::byte *to, size_t bytes);
  /// The connection has ended: an error only if it is missed, and if nothing else says why its rank has left.
  void broken(uint32_t rank, const char *why);
  void checkBroken() const;

  std::vector<Peer> peers; ///< by rank
};

} // namespace par::comm
