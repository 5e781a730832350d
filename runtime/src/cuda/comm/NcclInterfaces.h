// The network interface by which NCCL's sockets listen, as NCCL chooses it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace par::cuda {

struct Interface {
  std::string name, address; ///< "eth0", "10.77.0.1"

  bool isLoopback() const { return address.starts_with("127.") || address == "::1"; }
};

/// This host's, each with its first address; `family` as NCCL_SOCKET_FAMILY: "AF_INET", "AF_INET6" or "" for both.
std::vector<Interface> interfacesHere(const std::string &family);
/// The first interface that a list names as NCCL_SOCKET_IFNAME does: "eth,ib" by their beginnings, "=eth0" by the whole
/// name, "^docker" all others.
std::optional<Interface> firstNamed(const std::string &list, const std::vector<Interface> &interfaces);
/// The interface on which NCCL listens; "": NCCL_SOCKET_IFNAME is not set, and NCCL looks for the likely one.
std::optional<Interface> chosenByNccl(const std::string &list, const std::vector<Interface> &interfaces);
/// The name of the interface that has the address of a host, "" where there is none or it is reached from here only.
std::string interfaceOf(const std::string &address);

} // namespace par::cuda
