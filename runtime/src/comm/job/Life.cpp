// Shared memory of supervisors and their ranks.
#include "Life.h"

#include <new>

using namespace par::comm;

Lives::Lives(uint32_t ranks) : ranks(ranks), memory(mapPublic(sizeof(Head) + ranks * sizeof(RankLife))) {
  new (memory.bytes.data()) Head;
  for (uint32_t place = 0; place < ranks; ++place)
    new (&(*this)[place]) RankLife;
}

void Lives::noteLoss(int64_t when) {
  int64_t none = 0;
  head().lostAt.compare_exchange_strong(none, when);
}
