#include "par/Dialect/Lower.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// Products that no library computes: loops in the order (batching, lhs free, rhs free, contracting).
struct DotLowering : LowerableOpInterface::ExternalModel<DotLowering, DotOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto dot = cast<DotOp>(op);
    auto type = cast<RankedTensorType>(dot.getResult().getType());
    SmallVector<AffineExpr> lhs(cast<RankedTensorType>(operands[0].getType()).getRank()),
        rhs(cast<RankedTensorType>(operands[1].getType()).getRank());
    unsigned loops = 0;
    for (auto [x, y] : llvm::zip(dot.getLhsBatching(), dot.getRhsBatching()))
      lhs[x] = rhs[y] = builder.getAffineDimExpr(loops++);
    for (int64_t dim : dot.getLhsFree())
      lhs[dim] = builder.getAffineDimExpr(loops++);
    for (int64_t dim : dot.getRhsFree())
      rhs[dim] = builder.getAffineDimExpr(loops++);
    for (auto [x, y] : llvm::zip(dot.getLhsContracting(), dot.getRhsContracting()))
      lhs[x] = rhs[y] = builder.getAffineDimExpr(loops++);
    AffineMap maps[] = {AffineMap::get(loops, 0, lhs, builder.getContext()),
                        AffineMap::get(loops, 0, rhs, builder.getContext())};
    Type element = type.getElementType();
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
      Value product = buildProduct(nested, loc, buildPromote(nested, loc, args[0], element),
                                   buildPromote(nested, loc, args[1], element));
      return buildSum(nested, loc, args[2], product);
    };
    return SmallVector<Value>{buildReduction(
        builder, op->getLoc(), type, builder.getZeroAttr(element), operands, maps,
        // Not getMajorSubMap, which of no dims makes no map.
        AffineMap::get(loops, 0, builder.getMultiDimIdentityMap(loops).getResults().take_front(type.getRank()),
                       builder.getContext()),
        body)};
  }
};

} // namespace

void registerContractLowerings(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) { attachOnce<DotOp, DotLowering>(*context); });
}

} // namespace par
