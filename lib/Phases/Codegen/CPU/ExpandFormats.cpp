#include "ExpandFormats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace par::cpu {
namespace {

/// Builds integer and f32 arithmetic without a branch, so that loops over it vectorise.
struct Bits {
  OpBuilder &builder;
  Location loc;

  Value integer(int64_t value) const {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value number(double value) const { return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(value)); }
  template <typename Op>
  Value make(Value x, Value y) const {
    return Op::create(builder, loc, x, y);
  }
  Value both(Value x, int64_t mask) const { return make<arith::AndIOp>(x, integer(mask)); }
  Value right(Value x, int64_t by) const { return make<arith::ShRUIOp>(x, integer(by)); }
  Value left(Value x, int64_t by) const { return make<arith::ShLIOp>(x, integer(by)); }
  Value add(Value x, Value y) const { return make<arith::AddIOp>(x, y); }
  Value isBelow(Value x, int64_t limit) const {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, x, integer(limit));
  }
  Value choose(Value condition, Value x, Value y) const {
    return arith::SelectOp::create(builder, loc, condition, x, y);
  }
  Value cast(Value x, Type type) const { return arith::BitcastOp::create(builder, loc, type, x); }
  Value low16(Value x, Type type) const {
    return cast(arith::TruncIOp::create(builder, loc, builder.getI16Type(), x), type);
  }
  Value wide(Value x) const {
    return arith::ExtUIOp::create(builder, loc, builder.getI32Type(), cast(x, builder.getI16Type()));
  }
  Value f32(Value x) const { return cast(x, builder.getF32Type()); }

  Value fromBF16(Value x) const { return f32(left(wide(x), 16)); }
  Value toBF16(Value x, Type type) const;
  Value fromF16(Value x) const;
  Value toF16(Value x, Type type) const;
};

} // namespace

/// To nearest even: half a unit of the last place, less one bit if the place is even, carries into it. A NaN stays one.
Value Bits::toBF16(Value x, Type type) const {
  Value bits = cast(x, builder.getI32Type()), magnitude = both(bits, 0x7fffffff);
  Value odd = both(right(bits, 16), 1);
  Value rounded = right(add(bits, add(odd, integer(0x7fff))), 16);
  Value nan = make<arith::OrIOp>(right(bits, 16), integer(0x40));
  return low16(choose(isBelow(magnitude, 0x7f800001), rounded, nan), type);
}

/// Five bits of exponent become eight; a subnormal is its mantissa times 2^-24, which f32 holds as a normal number.
Value Bits::fromF16(Value x) const {
  Value bits = wide(x), magnitude = both(bits, 0x7fff), sign = left(both(bits, 0x8000), 16);
  Value normal = add(left(magnitude, 13), integer((127 - 15) << 23));
  Value large = make<arith::OrIOp>(left(magnitude, 13), integer(0x7f800000)); // infinities and NaN
  Value mantissa = arith::SIToFPOp::create(builder, loc, builder.getF32Type(), magnitude);
  Value small = cast(arith::MulFOp::create(builder, loc, mantissa, number(0x1p-24)), builder.getI32Type());
  Value value = choose(isBelow(magnitude, 0x7c00), choose(isBelow(magnitude, 0x0400), small, normal), large);
  return f32(make<arith::OrIOp>(value, sign));
}

/// To nearest even. Below 2^-14 adding 0.5 leaves the rounded multiple of 2^-24 in the low bits; from 65520 on the
/// carry itself makes an infinity.
Value Bits::toF16(Value x, Type type) const {
  Type i32 = builder.getI32Type();
  Value bits = cast(x, i32), magnitude = both(bits, 0x7fffffff), sign = right(both(bits, int64_t(0x80000000)), 16);
  Value odd = both(right(magnitude, 13), 1);
  Value rebased = add(magnitude, integer(-(int64_t(127 - 15) << 23) + 0xfff));
  Value normal = right(add(rebased, odd), 13);
  Value shifted = arith::AddFOp::create(builder, loc, f32(magnitude), number(0.5));
  Value small = make<arith::SubIOp>(cast(shifted, i32), integer(0x3f000000));
  Value large = choose(isBelow(magnitude, 0x7f800001), integer(0x7c00), integer(0x7e00));
  Value finite = choose(isBelow(magnitude, 0x38800000), small, normal);
  Value value = choose(isBelow(magnitude, 0x47800000), finite, large);
  return low16(make<arith::OrIOp>(value, sign), type);
}

void expandFormats(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (isa<arith::ExtFOp, arith::TruncFOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    OpBuilder builder(op);
    Bits math{builder, op->getLoc()};
    Value value = op->getOperand(0);
    Type from = value.getType(), to = op->getResult(0).getType(), f32 = builder.getF32Type();
    if (from.getIntOrFloatBitWidth() != 16 && to.getIntOrFloatBitWidth() != 16)
      continue;
    if (from.isBF16() || from.isF16()) {
      value = from.isBF16() ? math.fromBF16(value) : math.fromF16(value);
      if (to != f32)
        value = arith::ExtFOp::create(builder, op->getLoc(), to, value);
    } else {
      if (from != f32)
        value = arith::TruncFOp::create(builder, op->getLoc(), f32, value);
      value = to.isBF16() ? math.toBF16(value, to) : math.toF16(value, to);
    }
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }
}

} // namespace par::cpu
