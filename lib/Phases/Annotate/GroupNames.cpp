#include "par/Base/Provenance.h"
#include "par/Phases/Annotate/CutPrices.h"

using namespace mlir;

namespace par {

CutGroups nameGroups(ArrayRef<SmallVector<Operation *>> groups) {
  CutGroups names;
  names.count = groups.size();
  for (auto [index, group] : llvm::enumerate(groups))
    for (Operation *op : group) {
      if (std::optional<Provenance> from = getProvenance(op->getLoc()))
        names.ofNode.try_emplace(from->path, index);
      for (Value operand : op->getOperands())
        if (auto read = operand.getDefiningOp<ReadOp>())
          names.ofVariable.try_emplace(read.getVariable(), index);
    }
  return names;
}

} // namespace par
