// The shard rules of tensor axes for a model, found from its graph.
#pragma once

#include "par/Search/Candidate.h"

namespace par {

/// For each degree the rules that pay most and those that divide most, each without sequence parallelism and, where
/// some value can be cut so, with it. `single`: the plan for one rank.
std::map<int64_t, std::vector<Sharding>> findShardings(const std::shared_ptr<const Model> &model,
                                                       const PlanText &single, const Hardware &hardware,
                                                       const Space &space);

} // namespace par
