// The facts of each rank that NCCL needs to suit those of the others. NCCL finds some of what does not suit, says so
// where few look, and hangs at the rest: the ranks compare before they call it.
#pragma once

#include "NcclInterfaces.h"

#include <cstdint>
#include <map>

namespace par::cuda {

struct NcclFacts {
  std::string rank; ///< "3 on b"
  std::string host;
  std::string version;      ///< "NCCL 2.28.9"
  std::string gpu;          ///< its UUID in hex
  std::string visible;      ///< CUDA_VISIBLE_DEVICES, "not set"
  std::string byRendezvous; ///< the interface by which this host and rank 0's meet, "" where that is not known
  std::map<std::string, std::string> settings; ///< NCCL_* of the environment and of NCCL's files
  std::vector<Interface> interfaces;

  std::string setting(const std::string &name) const;
  std::optional<Interface> listens() const { return chosenByNccl(setting("NCCL_SOCKET_IFNAME"), interfaces); }
  std::string write() const;
  /// Throws std::runtime_error on bytes that are too short.
  static NcclFacts read(const std::string &bytes);
};

/// NCCL_* of this process's environment, and of NCCL's files what the environment does not say.
std::map<std::string, std::string> ncclSettings();

struct NcclVerdict {
  std::string error;                 ///< "" where NCCL can join the ranks
  std::vector<std::string> warnings; ///< it may be slow, or not start
};

/// `ranks`: the facts of all ranks, in their order.
NcclVerdict compare(const std::vector<NcclFacts> &ranks);

} // namespace par::cuda
