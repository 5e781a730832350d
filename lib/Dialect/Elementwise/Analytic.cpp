#include "par/Dialect/Analytic.h"

using namespace mlir;

namespace par {

bool isAnalytic(Operation *op) {
  return isa<NegateOp, ExpOp, LogOp, SqrtOp, RsqrtOp, ReciprocalOp, TanhOp, ErfOp, SigmoidOp, SinOp, CosOp, AtanOp,
             AddOp, SubtractOp, MultiplyOp, DivideOp, PowerOp, GeluOp, GeluGradOp>(op);
}

} // namespace par
