// Results under a launcher, where each rank has an exchange of its own.
#pragma once

#include "api/Exchange.h"
#include "par/comm/job/Control.h"

namespace par::api {

/// Writes parts of results into this rank's exchange, and gives them to the other ranks where these have others.
class SharedParts {
public:
  SharedParts(const Exchange &exchange, comm::Control &control, bool apart)
      : exchange(exchange), control(control), apart(apart) {}

  void put(std::byte *to, std::span<const std::byte> from);
  /// Collective: all that ranks have put since the last time is in every exchange afterwards.
  void share();

private:
  const Exchange &exchange;
  comm::Control &control;
  bool apart;
  std::string parts; ///< offset in the exchange, length, bytes
};

} // namespace par::api
