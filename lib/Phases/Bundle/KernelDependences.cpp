#include "KernelDependences.h"

using namespace mlir;

namespace par {

static void join(ResultDependence &to, const ResultDependence &from) {
  to.arguments |= from.arguments;
  to.coordinates.insert(from.coordinates.begin(), from.coordinates.end());
}

/// Each value of the body depends on its op's operands, and on those of the op's regions.
SmallVector<ResultDependence> dependencesOf(KernelOp kernel) {
  Block &body = kernel.getBody().front();
  ResultDependence none{llvm::BitVector(body.getNumArguments()), {}};
  llvm::DenseMap<Value, ResultDependence> known;
  for (BlockArgument argument : body.getArguments()) {
    ResultDependence &own = known.try_emplace(argument, none).first->second;
    own.arguments.set(argument.getArgNumber());
  }
  SmallVector<ResultDependence> results;
  for (Operation &op : body) {
    ResultDependence made = none;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (auto it = known.find(operand); it != known.end())
          join(made, it->second);
      if (auto index = dyn_cast<AxisIndexOp>(inner))
        made.coordinates.insert(index.getAxes());
    });
    if (!isa<ReturnOp>(op)) {
      for (Value result : op.getResults())
        known.try_emplace(result, made);
      continue;
    }
    for (Value result : op.getOperands())
      results.push_back(known.lookup(result));
  }
  return results;
}

} // namespace par
