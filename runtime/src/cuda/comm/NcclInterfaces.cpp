#include "NcclInterfaces.h"

#include <algorithm>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <sstream>
#include <sys/socket.h>

namespace par::cuda {

namespace {

std::string textOf(const sockaddr *address) {
  char text[NI_MAXHOST] = "";
  socklen_t bytes = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  getnameinfo(address, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

/// All addresses of interfaces that are up, in the system's order.
std::vector<Interface> addressesHere(const std::string &family) {
  ifaddrs *first = nullptr;
  if (getifaddrs(&first) != 0)
    return {};
  std::unique_ptr<ifaddrs, void (*)(ifaddrs *)> held(first, freeifaddrs);
  std::vector<Interface> all;
  for (ifaddrs *it = first; it; it = it->ifa_next) {
    if (!it->ifa_addr || !(it->ifa_flags & IFF_UP))
      continue;
    int kind = it->ifa_addr->sa_family;
    if ((kind == AF_INET && family != "AF_INET6") || (kind == AF_INET6 && family != "AF_INET"))
      all.push_back({it->ifa_name, textOf(it->ifa_addr)});
  }
  return all;
}

} // namespace

std::vector<Interface> interfacesHere(const std::string &family) {
  std::vector<Interface> interfaces;
  for (const Interface &one : addressesHere(family)) {
    bool known = std::any_of(interfaces.begin(), interfaces.end(),
                             [&](const Interface &other) { return other.name == one.name; });
    if (!known && one.address != "::1")
      interfaces.push_back(one);
  }
  return interfaces;
}

std::optional<Interface> firstNamed(const std::string &list, const std::vector<Interface> &interfaces) {
  size_t at = 0;
  bool others = list.starts_with('^');
  at += others;
  bool whole = list.substr(at).starts_with('=');
  at += whole;
  for (const Interface &interface : interfaces) {
    std::istringstream names(list.substr(at));
    bool named = false;
    for (std::string name; std::getline(names, name, ',');)
      named |= !name.empty() && (whole ? interface.name == name : interface.name.starts_with(name));
    if (named != others)
      return interface;
  }
  return std::nullopt;
}

// NCCL passes over a list of one character.
std::optional<Interface> chosenByNccl(const std::string &list, const std::vector<Interface> &interfaces) {
  if (list.size() > 1)
    return firstNamed(list, interfaces);
  for (const char *likely : {"ib", "^docker,lo,virbr", "docker", "lo", "virbr"})
    if (std::optional<Interface> found = firstNamed(likely, interfaces))
      return found;
  return std::nullopt;
}

std::string interfaceOf(const std::string &address) {
  addrinfo hints{}, *first = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (address.empty() || getaddrinfo(address.c_str(), nullptr, &hints, &first) != 0)
    return "";
  std::unique_ptr<addrinfo, void (*)(addrinfo *)> held(first, freeaddrinfo);
  for (addrinfo *it = first; it; it = it->ai_next)
    for (const Interface &interface : addressesHere(""))
      if (interface.address == textOf(it->ai_addr) && !interface.isLoopback())
        return interface.name;
  return "";
}

} // namespace par::cuda
