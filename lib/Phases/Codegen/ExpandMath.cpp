#include "ExpandMath.h"

#include "FloatMath.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace par::codegen {

/// The value of one math op on operands of `type`; null for other ops.
static Value expand(Operation *op, FloatMath math, ValueRange operands) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) { return math.exp(operands[0]); })
      .Case([&](math::LogOp) { return math.log(operands[0]); })
      .Case([&](math::TanhOp) { return math.tanh(operands[0]); })
      .Case([&](math::ErfOp) { return math.erf(operands[0]); })
      .Case([&](math::SinOp) { return math.sine(operands[0], /*cosine=*/false); })
      .Case([&](math::CosOp) { return math.sine(operands[0], /*cosine=*/true); })
      .Case([&](math::AtanOp) { return math.atan(operands[0]); })
      .Case([&](math::TruncOp) { return math.truncate(operands[0]); })
      .Case([&](math::RoundEvenOp) { return math.roundEven(operands[0]); })
      .Case([&](math::PowFOp) { return math.power(operands[0], operands[1]); })
      .Default([](Operation *) { return Value(); });
}

static bool isExpanded(Operation *op) {
  return isa<math::ExpOp, math::LogOp, math::TanhOp, math::ErfOp, math::SinOp, math::CosOp, math::AtanOp, math::TruncOp,
             math::RoundEvenOp, math::PowFOp>(op);
}

static Value convert(OpBuilder &builder, Location loc, Value value, Type to) {
  unsigned from = value.getType().getIntOrFloatBitWidth(), width = to.getIntOrFloatBitWidth();
  if (from == width)
    return value;
  if (from < width)
    return arith::ExtFOp::create(builder, loc, to, value);
  return arith::TruncFOp::create(builder, loc, to, value);
}

void expandMath(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (isExpanded(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    auto type = cast<FloatType>(op->getResult(0).getType());
    OpBuilder builder(op);
    // Narrow floats are computed in f32.
    FloatType inner = type.isF64() ? FloatType(builder.getF64Type()) : FloatType(builder.getF32Type());
    SmallVector<Value> operands = llvm::map_to_vector(
        op->getOperands(), [&](Value value) { return convert(builder, op->getLoc(), value, inner); });
    Value value = expand(op, FloatMath(builder, op->getLoc(), inner), operands);
    op->getResult(0).replaceAllUsesWith(convert(builder, op->getLoc(), value, type));
    op->erase();
  }
}

} // namespace par::codegen
