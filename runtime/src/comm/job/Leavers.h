// Ranks of a complete job that hang up on its rendezvous.
#pragma once

#include "comm/shared/SharedState.h"

namespace par::comm {

class Leavers {
public:
  Leavers(SharedState &sharedState, std::string bundle) : sharedState(sharedState), bundle(std::move(bundle)) {}

  /// A rank has hung up before the end of the job.
  void hangsUp(uint32_t rank);
  /// A rank that has joined this attempt of the job joins again.
  void comesAgain(uint32_t rank);
  /// Ends the job, or its attempt, if no better reason has come in time.
  void watch();

private:
  void lose(uint32_t rank);

  SharedState &sharedState;
  std::string bundle;
  int64_t since = 0; ///< when a rank was seen to have hung up
  uint32_t leaver = 0;
};

} // namespace par::comm
