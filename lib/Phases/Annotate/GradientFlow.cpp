#include "par/Phases/Annotate/GradientFlow.h"

#include "par/Dialect/Attention.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Phases/Annotate/Passes.h"

using namespace mlir;

namespace par {

int64_t flopsOf(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost ? cost.getFlops() : 0;
}

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

GradientFlow::GradientFlow(StepOp step) {
  auto any = [](Operation &op, const DenseSet<Value> &values) {
    return llvm::any_of(op.getOperands(), [&](Value operand) { return values.contains(operand); });
  };
  for (Operation &op : step.getBlock()) {
    auto read = dyn_cast<ReadOp>(op);
    VariableOp variable =
        read ? SymbolTable::lookupNearestSymbolFrom<VariableOp>(read, read.getVariableAttr()) : VariableOp();
    bool trained = variable && variable.getKind() == VariableKind::parameter;
    bool kept = variable && variable.getKind() == VariableKind::frozen;
    for (Value result : op.getResults()) {
      if (!isFloat(result))
        continue;
      if (trained || any(op, reached))
        reached.insert(result);
      else if (kept || any(op, frozen))
        frozen.insert(result);
    }
  }
}

bool GradientFlow::isSaved(Value value) const {
  auto takesGradient = [&](Operation *user) {
    return llvm::any_of(user->getResults(), [&](Value v) { return reaches(v); });
  };
  return reaches(value) || llvm::any_of(value.getUsers(), takesGradient);
}

int64_t GradientFlow::backward(Operation *op) const {
  if (llvm::none_of(op->getOperands(), [&](Value operand) { return reaches(operand); }))
    return 0;
  return llvm::any_of(op->getOperands(), [&](Value operand) { return frozen.contains(operand); }) ? 1 : 2;
}

/// The matmuls q k^T and p v.
static double flopsOf(AttentionOp op) {
  Heads heads(op);
  return 2.0 * double(heads.batch * heads.heads * heads.queries * heads.keys) * double(heads.width + heads.valueWidth);
}

double modelFlops(StepOp step, bool trains) {
  GradientFlow flow(step);
  double all = 0;
  step.walk([&](Operation *op) {
    bool isMatmul = isa<DotOp, ConvolutionOp>(op);
    auto attention = dyn_cast<AttentionOp>(op);
    if (!isMatmul && !attention)
      return;
    double forward = attention ? flopsOf(attention) : double(flopsOf(op));
    double gradients = llvm::count_if(op->getOperands(), [&](Value operand) { return flow.reaches(operand); });
    if (attention && gradients > 0)
      gradients = 2; // two matmuls of forward make four
    all += forward * (trains ? 1 + gradients : 1);
  });
  return all;
}

} // namespace par
