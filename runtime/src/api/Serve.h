// The ranks' side of a session whose ranks are processes.
#pragma once

#include <string>
#include <vector>

namespace par::api {

/// All of the program par-rank: runs ranks that do what comes over socketDescriptor, and returns the exit code.
/// `arguments`: the bundle and flags of par-run.
int serve(const std::vector<std::string> &arguments);

} // namespace par::api
