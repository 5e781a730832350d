// Starts the ranks of a session.
#pragma once

#include "api/Ranks.h"

namespace par::api {

/// `arguments`: the bundle and flags of par-run. One rank runs in this process, unless it is to be `isolated`; others
/// are started by the program `worker` ("": beside this library). Throws Failure.
std::unique_ptr<Ranks> startRanks(const std::vector<std::string> &arguments, bool isolated, const std::string &worker);

/// The options of a session. Throws Failure for flags that say what its caller says call by call.
core::RunOptions readOptions(const std::vector<std::string> &arguments);

} // namespace par::api
