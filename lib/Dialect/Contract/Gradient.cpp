#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Differentiable.h"
#include "par/Dialect/Term.h"

using namespace mlir;

namespace par {
namespace {

/// The roles of an operand's dims, as numbers of its dims.
struct DotSide {
  Value value;
  SmallVector<int64_t> batching, contracting, free;
};

/// Cotangent of `side` of a dot: the matmul of the result's cotangent and the other side over the other side's free
/// dims, which are the cotangent's `otherFree`. Chooses the operand order that needs no transpose.
Value buildSideCotangent(Term ct, const DotSide &side, const DotSide &other, ArrayRef<int64_t> otherFree) {
  auto type = cast<RankedTensorType>(side.value.getType());
  int64_t batch = side.batching.size(), free = side.free.size(), contracting = side.contracting.size();
  // The other side's contracting dims come out in its own order.
  SmallVector<int64_t> byOther = dimRange(0, contracting), contracted;
  llvm::sort(byOther, [&](int64_t a, int64_t b) { return other.contracting[a] < other.contracting[b]; });
  for (int64_t i : byOther)
    contracted.push_back(side.contracting[i]);

  // order[i]: the dim of the side that is dim i of the result.
  auto getOrder = [&](bool freeFirst) {
    SmallVector<int64_t> order(side.batching);
    llvm::append_range(order, freeFirst ? ArrayRef(side.free) : ArrayRef(contracted));
    llvm::append_range(order, freeFirst ? ArrayRef(contracted) : ArrayRef(side.free));
    return order;
  };
  bool freeFirst = llvm::is_sorted(getOrder(true)) || !llvm::is_sorted(getOrder(false));
  SmallVector<int64_t> order = getOrder(freeFirst), inverse(batch + free + contracting);
  for (auto [i, dim] : llvm::enumerate(order))
    inverse[dim] = i;

  SmallVector<int64_t> ctBatching = dimRange(0, batch);
  Term factor = ct.convert(getElementTypeOrSelf(other.value.getType()));
  OpBuilder &builder = ct.getBuilder();
  Value product = freeFirst ? buildDot(builder, ct.getLoc(), factor, other.value, otherFree, other.free, ctBatching,
                                       other.batching, type.getElementType())
                            : buildDot(builder, ct.getLoc(), other.value, factor, other.free, otherFree, other.batching,
                                       ctBatching, type.getElementType());
  return ct.with(product).transpose(inverse);
}

struct DotGradient : DifferentiableOpInterface::ExternalModel<DotGradient, DotOp> {
  FailureOr<SmallVector<Value>> differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto dot = cast<DotOp>(op);
    Term ct(builder, op->getLoc(), cotangents.front());
    DotSide lhs{dot.getLhs(), llvm::to_vector(dot.getLhsBatching()), llvm::to_vector(dot.getLhsContracting()),
                dot.getLhsFree()};
    DotSide rhs{dot.getRhs(), llvm::to_vector(dot.getRhsBatching()), llvm::to_vector(dot.getRhsContracting()),
                dot.getRhsFree()};
    int64_t batch = lhs.batching.size(), middle = batch + lhs.free.size(), rank = ct.getType().getRank();
    return SmallVector<Value>{buildSideCotangent(ct, lhs, rhs, dimRange(middle, rank)),
                              buildSideCotangent(ct, rhs, lhs, dimRange(batch, middle))};
  }
};

} // namespace

void registerContractGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) { attachOnce<DotOp, DotGradient>(*context); });
}

} // namespace par
