#include "Combiner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace par::codegen {

Value Combiner::combine(OpBuilder &builder, Value x, Value y) const {
  Operation *joined = builder.clone(*op);
  joined->setOperands({x, y});
  return joined->getResult(0);
}

/// The element e with op(e, x) = x for every x; null where there is none, or none is known.
static TypedAttr identityOf(Operation *op) {
  Builder builder(op->getContext());
  Type type = op->getResult(0).getType();
  auto real = [&](double value) -> TypedAttr { return builder.getFloatAttr(type, value); };
  auto whole = [&](auto make) -> TypedAttr { return builder.getIntegerAttr(type, make(type.getIntOrFloatBitWidth())); };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return llvm::TypeSwitch<Operation *, TypedAttr>(op)
      .Case([&](arith::AddFOp) { return real(0); })
      .Case([&](arith::MulFOp) { return real(1); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) { return real(-infinity); })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) { return real(infinity); })
      .Case<arith::AddIOp, arith::OrIOp, arith::XOrIOp, arith::MaxUIOp>(
          [&](auto) { return whole([](unsigned bits) { return APInt::getZero(bits); }); })
      .Case([&](arith::MulIOp) { return whole([](unsigned bits) { return APInt(bits, 1); }); })
      .Case<arith::AndIOp, arith::MinUIOp>(
          [&](auto) { return whole([](unsigned bits) { return APInt::getAllOnes(bits); }); })
      .Case([&](arith::MaxSIOp) { return whole(APInt::getSignedMinValue); })
      .Case([&](arith::MinSIOp) { return whole(APInt::getSignedMaxValue); })
      .Default([](Operation *) { return TypedAttr(); });
}

std::optional<Combiner> findCombiner(linalg::GenericOp op) {
  BlockArgument accumulator = op.getMatchingBlockArgument(op.getDpsInitOperand(0));
  Operation *last = op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  if (!last || last->getBlock() != op.getBody() || last->getNumOperands() != 2 || !accumulator.hasOneUse() ||
      *accumulator.user_begin() != last)
    return std::nullopt;
  TypedAttr identity = identityOf(last);
  if (!identity)
    return std::nullopt;
  return Combiner{last, identity};
}

} // namespace par::codegen
