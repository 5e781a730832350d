// Whether NCCL can join ranks with these facts, and what stands in its way.
#include "NcclFacts.h"
#include "par/messages/NcclMessages.h"

#include <algorithm>
#include <set>

namespace par::cuda {

namespace {

using Ranks = std::vector<NcclFacts>;

/// Each rank reads its own and acts on it in what both ends of a connection must do alike: algorithm, protocol,
/// sizes of buffers, transports, the network.
constexpr const char *alike[] = {
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_NTHREADS",
    "NCCL_BUFFSIZE",
    "NCCL_LL_BUFFSIZE",
    "NCCL_LL128_BUFFSIZE",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MAX_CTAS",
    "NCCL_NET",
    "NCCL_NET_PLUGIN",
    "NCCL_IB_DISABLE",
    "NCCL_SOCKET_FAMILY",
    "NCCL_COLLNET_ENABLE",
    "NCCL_NVLS_ENABLE",
    "NCCL_CUMEM_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_SHM_DISABLE",
    "NCCL_PXN_DISABLE",
    "NCCL_P2P_NET_CHUNKSIZE",
    "NCCL_MULTI_RANK_GPU_ENABLE",
    "NCCL_LAUNCH_MODE",
};

/// The first rank that differs from rank 0 in something.
template <typename Of>
const NcclFacts *differs(const Ranks &ranks, Of of) {
  auto it = std::find_if(ranks.begin(), ranks.end(), [&](const NcclFacts &rank) { return of(rank) != of(ranks[0]); });
  return it == ranks.end() ? nullptr : &*it;
}

bool onSeveralHosts(const Ranks &ranks) {
  return differs(ranks, [](const NcclFacts &rank) { return rank.host; }) != nullptr;
}

std::string versions(const Ranks &ranks) {
  const NcclFacts *odd = differs(ranks, [](const NcclFacts &rank) { return rank.version; });
  return odd ? say(NcclSentence::versions, odd->rank, odd->version, ranks[0].rank, ranks[0].version) : "";
}

std::string settings(const Ranks &ranks) {
  for (const NcclFacts &rank : ranks)
    if (!rank.setting("NCCL_COMM_ID").empty())
      return say(NcclSentence::commId, rank.rank);
  auto shown = [](const std::string &value) { return value.empty() ? "not set" : value; };
  for (const char *name : alike)
    if (const NcclFacts *odd = differs(ranks, [&](const NcclFacts &rank) { return rank.setting(name); }))
      return say(NcclSentence::settings, name, shown(odd->setting(name)), odd->rank, shown(ranks[0].setting(name)),
                 ranks[0].rank);
  return "";
}

std::string gpus(const Ranks &ranks) {
  if (ranks[0].setting("NCCL_MULTI_RANK_GPU_ENABLE") == "1")
    return "";
  std::map<std::string, const NcclFacts *> owners;
  for (const NcclFacts &rank : ranks)
    if (auto [it, isNew] = owners.emplace(rank.gpu, &rank); !isNew)
      return say(NcclSentence::sameGpu, it->second->rank, rank.rank, rank.gpu, it->second->visible, rank.visible);
  return "";
}

std::string advice(const NcclFacts &rank) {
  const std::string &name = rank.byRendezvous;
  return name.empty() ? "" : say(NcclSentence::byRendezvous, name, name);
}

std::string listOf(const std::vector<Interface> &interfaces) {
  core::NameList list;
  for (const Interface &interface : interfaces)
    list.add(interface.name + " (" + interface.address + ")");
  return list.str();
}

std::string interfaces(const Ranks &ranks) {
  bool several = onSeveralHosts(ranks);
  for (const NcclFacts &rank : ranks) {
    std::optional<Interface> listens = rank.listens();
    if (!listens)
      return say(NcclSentence::noInterface, rank.setting("NCCL_SOCKET_IFNAME"), rank.rank, listOf(rank.interfaces),
                 advice(rank));
    if (several && listens->isLoopback())
      return say(NcclSentence::loopback, rank.rank, listens->name, listens->address, advice(rank));
  }
  return "";
}

/// One for each host.
void warnOfInterfaces(const Ranks &ranks, std::vector<std::string> &warnings) {
  std::set<std::string> hosts;
  for (const NcclFacts &rank : ranks) {
    std::optional<Interface> listens = rank.listens();
    const std::string &name = rank.byRendezvous;
    if (listens && !name.empty() && listens->name != name && hosts.insert(rank.host).second)
      warnings.push_back(say(NcclSentence::otherInterface, rank.rank, listens->name, listens->address, name, name));
  }
}

void warnOfNumbers(const Ranks &ranks, std::vector<std::string> &warnings) {
  std::map<std::string, size_t> numbers;
  for (const NcclFacts &rank : ranks)
    ++numbers[rank.host];
  core::NameList list;
  bool uneven = false;
  for (const auto &[host, number] : numbers) {
    list.add(host + " " + std::to_string(number));
    uneven |= number != numbers.begin()->second;
  }
  if (uneven)
    warnings.push_back(say(NcclSentence::uneven, list.str()));
}

} // namespace

NcclVerdict compare(const Ranks &ranks) {
  NcclVerdict verdict;
  for (auto check : {versions, settings, gpus, interfaces})
    if (verdict.error.empty())
      verdict.error = check(ranks);
  if (onSeveralHosts(ranks))
    warnOfInterfaces(ranks, verdict.warnings);
  warnOfNumbers(ranks, verdict.warnings);
  return verdict;
}

} // namespace par::cuda
