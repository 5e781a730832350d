// Shared memory of supervisors and their ranks.
#include "Life.h"
#include "Hosts.h"

#include <functional>
#include <new>
#include <unistd.h>

using namespace par::comm;

Lives::Lives(uint32_t ranks, uint32_t world)
    : ranks(ranks), world(world), own(holderOfProcess()),
      memory(mapPublic(sizeof(Head) + ranks * sizeof(RankLife) +
                       world * (sizeof(uint64_t) + sizeof(std::atomic<uint32_t>)))) {
  new (memory.bytes.data()) Head;
  for (uint32_t place = 0; place < ranks; ++place)
    new (&(*this)[place]) RankLife;
  for (std::atomic<uint64_t> &holder : holders())
    new (&holder) std::atomic<uint64_t>(0);
  for (uint32_t seat = 0; seat < world; ++seat)
    new (&gone(seat)) std::atomic<uint32_t>(0);
}

uint64_t par::comm::holderOfProcess() {
  return std::hash<std::string>()(hostName() + "\n" + hostIdentity() + "\n" + std::to_string(getpid())) | 1;
}

void Lives::noteLoss(int64_t when) {
  int64_t none = 0;
  head().lostAt.compare_exchange_strong(none, when);
}
