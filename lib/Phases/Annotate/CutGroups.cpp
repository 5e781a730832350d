// The ops that a cut does not part.
#include "CutCosts.h"

#include "par/Base/Provenance.h"

using namespace mlir;

namespace par {

/// Groups of consecutive ops that are of one place of the model.
static std::vector<OpGroup> groupBy(ArrayRef<Operation *> ops,
                                    llvm::function_ref<StringRef(const Provenance &)> placeOf) {
  std::vector<OpGroup> groups;
  std::string last;
  for (Operation *op : ops) {
    std::optional<Provenance> from = getProvenance(op->getLoc());
    // Constants and ops of a pass have no module: they belong to their neighbours' group.
    std::string place = from ? placeOf(*from).str() : last;
    if (groups.empty() || place != last)
      groups.emplace_back();
    groups.back().push_back(op);
    last = place;
  }
  return groups;
}

std::vector<OpGroup> groupForCuts(ArrayRef<Operation *> ops, size_t fewest) {
  std::vector<OpGroup> modules = groupBy(ops, [](const Provenance &from) { return from.module; });
  return modules.size() >= fewest ? modules : groupBy(ops, [](const Provenance &from) { return from.path; });
}

} // namespace par
