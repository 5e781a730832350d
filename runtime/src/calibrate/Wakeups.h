// The time until a rank that waits for another sees that it has come.
#pragma once

#include "Links.h"

namespace par::calibrate {

/// Collective. Ranks of the smallest communication on one host meet in it after one of them has computed for a time
/// that is drawn at random, each in turn; rows of the time waited.
void measureWakeups(Bench &bench, const std::vector<Link> &links, const std::vector<std::string> &hosts, double seconds,
                    Rows &rows);

} // namespace par::calibrate
