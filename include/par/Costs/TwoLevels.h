// The time of a collective over several hosts that is made of one within hosts and one between them.
#pragma once

#include "par/Costs/CostTable.h"

namespace par {

/// ns of a collective in two levels, without launches: `each` members on one host, and `between`, one member of each
/// host. `bytes` are those of the instruction's n. A gather sends each shard between hosts once, and then all hosts'
/// shards within a host; a scatter does both the other way round; a reduction scatters within, reduces between and
/// gathers within.
int64_t twoLevelNs(format::CollKind kind, int64_t bytes, int64_t each, const RankGroup &between,
                   const CostTable &costs);

} // namespace par
