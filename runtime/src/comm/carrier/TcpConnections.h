// Connects ranks with each other.
#pragma once

#include "HostCarrier.h"
#include "comm/job/Hosts.h"
#include "par/comm/job/Control.h"

namespace par::comm {

/// Facts of the job that connections need.
struct CarrierOf {
  Control &control;
  const HostMap &hosts;
  std::string key;                          ///< of the job
  std::string address;                      ///< of this host, as other hosts reach it
  double timeout = 60;                      ///< seconds until all connections must stand
  const SharedState *sharedState = nullptr; ///< of the job, which may end meanwhile
  /// By rank, those to be connected with this one; empty: all of other hosts.
  std::vector<bool> linked{};
};

/// Collective: every rank calls it.
std::shared_ptr<HostCarrier> connectByTcp(const CarrierOf &of);

} // namespace par::comm
