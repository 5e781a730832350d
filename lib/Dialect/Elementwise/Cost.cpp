#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// Elementwise ops join the loops of their neighbours: a division counts as 4, a polynomial as 12, a power as two
/// polynomials of twice the width.
template <typename Op, int64_t perElement>
struct PerElement : CostOpInterface::ExternalModel<PerElement<Op, perElement>, Op> {
  int64_t getFlops(Operation *op) const {
    return perElement * cast<RankedTensorType>(op->getResult(0).getType()).getNumElements();
  }
  bool isFusable(Operation *) const { return true; }
};

template <int64_t perElement, typename... Ops>
void attach(MLIRContext *context) {
  (attachOnce<Ops, PerElement<Ops, perElement>>(*context), ...);
}

} // namespace

void registerElementwiseCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attach<1, NegateOp, AbsOp, SignOp, FloorOp, CeilOp, RoundOp, NotOp, IsNanOp, IsFiniteOp, AddOp, SubtractOp,
           MultiplyOp, MaximumOp, MinimumOp, AndOp, OrOp, XorOp, ShiftLeftOp, ShiftRightOp, CompareOp, SelectOp,
           ConvertOp, BitCastOp>(context);
    attach<4, SqrtOp, RsqrtOp, ReciprocalOp, DivideOp, RemainderOp>(context);
    attach<12, ExpOp, LogOp, TanhOp, AtanOp, ErfOp, SigmoidOp, SinOp, CosOp, GeluOp>(context);
    attach<24, GeluGradOp>(context);
    attach<48, PowerOp>(context);
    attach<100, RandomBitsOp>(context); // ten rounds
  });
}

} // namespace par
