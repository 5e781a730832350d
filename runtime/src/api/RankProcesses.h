// Ranks in processes of their own.
#pragma once

#include "api/Ranks.h"

namespace par::api {

/// Starts the program `worker` with these arguments, which runs all ranks, or under a launcher this process's own.
std::unique_ptr<Ranks> rankProcesses(format::Bundle &&bundle, const std::vector<std::string> &arguments,
                                     const std::string &worker);

} // namespace par::api
