// The hosts of a job.
#include "Hosts.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

using namespace par::comm;

namespace {

std::string linkOf(const char *path) {
  std::array<char, 64> target{};
  ssize_t n = readlink(path, target.data(), target.size());
  return n > 0 ? std::string(target.data(), size_t(n)) : "";
}

} // namespace

std::string par::comm::hostName() {
  if (const char *given = std::getenv("PAR_HOST"); given && *given)
    return given;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string par::comm::hostIdentity() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return boot + linkOf("/proc/self/ns/net") + linkOf("/proc/self/ns/pid");
}

HostMap HostMap::one(uint32_t world) { return {{hostName()}, std::vector<uint32_t>(world)}; }

HostMap HostMap::of(const std::vector<std::pair<std::string, std::string>> &hosts) {
  HostMap map;
  std::vector<std::pair<std::string, std::string>> seen;
  for (const auto &host : hosts) {
    auto it = std::find(seen.begin(), seen.end(), host);
    map.hostOf.push_back(uint32_t(it - seen.begin()));
    if (it != seen.end())
      continue;
    seen.push_back(host);
    map.names.push_back(host.first);
  }
  return map;
}

std::vector<uint32_t> HostMap::ranksOf(uint32_t host) const {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < hostOf.size(); ++rank)
    if (hostOf[rank] == host)
      ranks.push_back(rank);
  return ranks;
}

void HostMap::write(Writer &writer) const {
  writer.number(names.size()).number(hostOf.size());
  for (const std::string &name : names)
    writer.text(name);
  for (uint32_t host : hostOf)
    writer.number(host);
}

HostMap HostMap::read(Reader &reader) {
  HostMap map;
  uint64_t hosts = reader.number(), world = reader.number();
  for (uint64_t host = 0; host < hosts; ++host)
    map.names.push_back(reader.text());
  for (uint64_t rank = 0; rank < world; ++rank) {
    uint64_t host = reader.number();
    if (host >= hosts)
      throw std::runtime_error(say(Sentence::truncated));
    map.hostOf.push_back(uint32_t(host));
  }
  for (uint32_t host = 0; host < hosts; ++host)
    if (std::find(map.hostOf.begin(), map.hostOf.end(), host) == map.hostOf.end())
      throw std::runtime_error(say(Sentence::truncated));
  return map;
}

void par::comm::markHosts(SharedState &board, const HostMap &hosts, uint32_t host) {
  if (!hosts.several())
    return;
  board.hosts.store(uint32_t(hosts.names.size()));
  for (uint32_t rank = 0; rank < board.world(); ++rank) {
    board[rank].remote.store(hosts.hostOf[rank] != host);
    board[rank].host.set(hosts.names[hosts.hostOf[rank]]);
  }
}
