// Ranks of a complete job that hang up on its rendezvous.
#include "Leavers.h"
#include "comm/shared/Diagnosis.h"
#include "par/messages/CommMessages.h"

using namespace par::comm;

namespace {

/// Time in which the watchers of the ranks may give a better reason for a lost connection.
constexpr int64_t leaveTime = 3'000'000'000;
/// The same if lost ranks are started again: another host's reason for the end of the job may come.
constexpr int64_t wordTime = 1'000'000'000;

} // namespace

void Leavers::lose(uint32_t rank) {
  if (!sharedState.aborted())
    loseHere(sharedState, bundle, rank, "ended", 0);
}

// A rank of this host that fails says so in the shared state before it hangs up; the word of another host may come
// later.
void Leavers::hangsUp(uint32_t rank) {
  if (mends(sharedState) && !sharedState[rank].remote.load())
    return lose(rank);
  if (since)
    return;
  since = now();
  leaver = rank;
}

void Leavers::comesAgain(uint32_t rank) { lose(rank); }

void Leavers::watch() {
  int64_t most = mends(sharedState) ? wordTime : leaveTime;
  if (since && !sharedState.aborted() && !sharedState[leaver].finished.load() && now() - since > most)
    comm::lose(sharedState, bundle, say(Sentence::rankHungUp, leaver));
}
