// The hardware that candidates are judged for.
#pragma once

#include "par/Costs/CostTable.h"
#include "par/Search/Candidate.h"

#include <map>
#include <tuple>

namespace par {

/// Costs, and the groups that replicas make: they depend on a candidate's degrees only, and have up to all ranks.
class Machine {
public:
  explicit Machine(const Hardware &hardware) : costs(hardware) {}

  const Hardware &hardware() const { return costs.hardware(); }
  /// The ranks that hold the same part of the model.
  const RankGroup &replicas(const Candidate &candidate) const { return replicaGroups(candidate).all; }
  /// ns of a collective of replicas, of `bytes` as CostTable counts them: the fastest of one over all of them and of
  /// those in two levels, within hosts and between them, which Collectives chooses from too.
  int64_t collectiveNs(format::CollKind kind, int64_t bytes, const Candidate &candidate) const;
  /// ns of one without bytes.
  int64_t collectiveLatency(format::CollKind kind, const Candidate &candidate) const;
  /// Whether measured rows change collectives of replicas, of some size: a size may then take less than a smaller one,
  /// or two messages less than one of both. A row reaches each size within a doubling of its own.
  bool isMeasured(format::CollKind kind, const Candidate &candidate) const;

  const CostTable costs;

private:
  /// A way to lay replicas out in two levels: so many on a host, and one of each host.
  struct Levels {
    int64_t each = 1;
    RankGroup between;
  };
  struct Groups {
    RankGroup all;
    std::vector<Levels> levels; ///< none on one host, or where each host has one
  };

  const Groups &replicaGroups(const Candidate &candidate) const;
  bool isMeasured(format::CollKind kind, const RankGroup &group) const;

  mutable std::map<std::tuple<format::CollKind, int64_t, int64_t>, bool> measured; ///< by kind, data and stride
  mutable std::map<std::pair<int64_t, int64_t>, Groups> groups; ///< by data and stride; one thread asks
};

} // namespace par
