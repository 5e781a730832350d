// The hosts of a job. Ranks of one host share memory; hosts are joined by the rendezvous and by a carrier of buffers.
#pragma once

#include "Serialization.h"
#include "comm/shared/SharedState.h"

#include <string>
#include <vector>

namespace par::comm {

/// The name of this host: PAR_HOST where it is set, else the system's.
std::string hostName();
/// Differs between processes that cannot share memory: the boot, and the namespaces of network and processes.
std::string hostIdentity();

/// Which rank runs on which host. Host 0 is rank 0's.
struct HostMap {
  std::vector<std::string> names; ///< by host
  std::vector<uint32_t> hostOf;   ///< by rank

  /// All ranks on the host of this process.
  static HostMap one(uint32_t world);
  /// From each rank's host: name and identity.
  static HostMap of(const std::vector<std::pair<std::string, std::string>> &hosts);

  bool several() const { return names.size() > 1; }
  /// The ranks of a host in order; the first one leads it.
  std::vector<uint32_t> ranksOf(uint32_t host) const;
  uint32_t leaderOf(uint32_t host) const { return ranksOf(host).front(); }

  void write(Writer &writer) const;
  /// Throws std::runtime_error on bytes that no host writes.
  static HostMap read(Reader &reader);
};

/// Notes on the board of `host` which ranks are on others.
void markHosts(SharedState &board, const HostMap &hosts, uint32_t host);

} // namespace par::comm
