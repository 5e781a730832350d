// V5: reductions over ranks of different programs. If ranks do the same work, a read before instead of after an
// in-place reduction shows as a difference between replicas (ReplicaConsistency.cpp). Ranks of different programs do
// not do the same work, but their reductions are in a run of their own, whose parts have no other use.
#include "AccessSweep.h"

#include <algorithm>

using namespace par;
using namespace par::format;
using namespace par::verify;

/// Whether a communicator has ranks of several programs in one group.
static bool joinsPrograms(const Manifest &manifest, const Communicator &comm) {
  return std::any_of(comm.groups.begin(), comm.groups.end(), [&](const std::vector<uint32_t> &group) {
    return std::any_of(group.begin(), group.end(),
                       [&](uint32_t rank) { return manifest.ranks[rank].role != manifest.ranks[group[0]].role; });
  });
}

void AccessSweep::findJoining() {
  for (const Comm &comm : program.comms) {
    const Communicator *found = bundle.manifest.findCommunicator(comm.name);
    joining.push_back(found && joinsPrograms(bundle.manifest, *found));
  }
}

/// A run reads its operand of a cross-program reduction only after it.
Found AccessSweep::readUnreduced(const Run &run, uint32_t n, const std::vector<Placed> &list) const {
  const Instruction &it = program.blocks[run.block].instructions[n];
  bool sums = it.op == Op::Coll &&
              (it.coll == CollKind::AllReduce || it.coll == CollKind::ReduceScatter || it.coll == CollKind::Reduce);
  if (!sums || !joining[it.comm])
    return std::nullopt;
  for (const Placed &placed : list) {
    auto [begin, end] = placed.cells[slotOf(placed.access.slot, uint32_t(placed.cells.size()), run)];
    for (uint32_t at = begin; at < end; ++at) {
      const Cell &cell = cells[at];
      auto read = std::find_if(cell.reads.begin(), cell.reads.end(), [](uint32_t time) { return time > 0; });
      if (cell.definition && definitions[cell.definition].run == &run && read != cell.reads.end())
        return Counterexample{Property::Value,
                              "unreduced: " + value(placed.access.root, indexOf(placed.access, run)) +
                                  " is read before it is reduced over ranks of other programs",
                              {line(history[read - cell.reads.begin()][*read - 1]), line({&run, n})}};
    }
  }
  return std::nullopt;
}
