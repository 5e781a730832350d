// Lowers elementwise ops to arith and math on one element. Cases that trap or are undefined for instructions (division
// by zero, shifts by the width) have the dialect's defined results.
#include "par/Dialect/Lower.h"
#include "par/Dialect/Attach.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;

namespace par {
namespace {

/// Builds the ops of one element at one place.
struct Element {
  OpBuilder &builder;
  Location loc;
  ValueRange args;

  Value operator[](unsigned i) const { return args[i]; }
  Type type() const { return args.front().getType(); }
  bool isFloat() const { return isa<FloatType>(type()); }
  Value number(double value) const { return buildNumber(builder, loc, type(), value); }
  template <typename Op, typename... Args>
  Value make(Args &&...args) const {
    return Op::create(builder, loc, std::forward<Args>(args)...);
  }
  /// Float or integer form of a binary op. Floats are never contracted to fused multiply-adds: an op must round equally
  /// in every kernel that it is fused into, because recomputed values are compared with saved ones (the gradient of a
  /// maximum asks which element it was).
  template <typename Float, typename Integer>
  Value arithmetic() const {
    return choose<Float, Integer>(args[0], args[1]);
  }
  template <typename Float, typename Integer>
  Value choose(Value x, Value y) const {
    return isFloat() ? make<Float>(x, y) : make<Integer>(x, y);
  }
  Value compareFloats(arith::CmpFPredicate predicate, Value x, Value y) const {
    return make<arith::CmpFOp>(predicate, x, y);
  }
};

Value lowerElement(AddOp, Element e) { return e.arithmetic<arith::AddFOp, arith::AddIOp>(); }
Value lowerElement(SubtractOp, Element e) { return e.arithmetic<arith::SubFOp, arith::SubIOp>(); }
Value lowerElement(MultiplyOp, Element e) { return e.arithmetic<arith::MulFOp, arith::MulIOp>(); }

/// An integer divisor that cannot trap: 1 in place of 0 or -1.
struct Divisor {
  Value zero, minusOne, safe;

  explicit Divisor(const Element &e) {
    auto is = [&](int64_t value) {
      return e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, e.args[1], e.number(value));
    };
    zero = is(0), minusOne = is(-1);
    safe = e.make<arith::SelectOp>(e.make<arith::OrIOp>(zero, minusOne), e.number(1), e.args[1]);
  }
};

/// Integers: 0 where y is 0 (padding may be), and wraps at the smallest by -1.
Value lowerElement(DivideOp, Element e) {
  if (e.isFloat())
    return e.make<arith::DivFOp>(e[0], e[1]);
  Divisor by(e);
  Value quotient = e.make<arith::DivSIOp>(e[0], by.safe), negative = e.make<arith::SubIOp>(e.number(0), e[0]);
  return e.make<arith::SelectOp>(by.zero, e.number(0), e.make<arith::SelectOp>(by.minusOne, negative, quotient));
}
Value lowerElement(MaximumOp, Element e) { return e.choose<arith::MaximumFOp, arith::MaxSIOp>(e[0], e[1]); }
Value lowerElement(MinimumOp, Element e) { return e.choose<arith::MinimumFOp, arith::MinSIOp>(e[0], e[1]); }
Value lowerElement(AndOp, Element e) { return e.make<arith::AndIOp>(e[0], e[1]); }
Value lowerElement(OrOp, Element e) { return e.make<arith::OrIOp>(e[0], e[1]); }
Value lowerElement(XorOp, Element e) { return e.make<arith::XOrIOp>(e[0], e[1]); }
Value lowerElement(PowerOp, Element e) { return e.make<math::PowFOp>(e[0], e[1]); }
Value lowerElement(RemainderOp, Element e) {
  if (!e.isFloat()) // by 0 and by -1 it is 0
    return e.make<arith::RemSIOp>(e[0], Divisor(e).safe);
  // x - y trunc(x / y); an infinite divisor leaves x, which 0 times infinity would not.
  Value whole = e.make<math::TruncOp>(e.make<arith::DivFOp>(e[0], e[1]));
  Value rest = e.make<arith::SubFOp>(e[0], e.make<arith::MulFOp>(e[1], whole));
  Value infinite = e.compareFloats(arith::CmpFPredicate::OEQ, e.make<math::AbsFOp>(e[1]),
                                   e.number(std::numeric_limits<double>::infinity()));
  return e.make<arith::SelectOp>(infinite, e[0], rest);
}
/// A shift by the width or more gives 0, which the instruction does not.
template <typename Op>
Value shift(Element e) {
  Value width = e.number(e.type().getIntOrFloatBitWidth());
  Value inside = e.type().isInteger(1) ? e.make<arith::XOrIOp>(e[1], e.number(1))
                                       : e.make<arith::CmpIOp>(arith::CmpIPredicate::ult, e[1], width);
  Value by = e.make<arith::SelectOp>(inside, e[1], e.number(0));
  return e.make<arith::SelectOp>(inside, e.make<Op>(e[0], by), e.number(0));
}
Value lowerElement(ShiftLeftOp, Element e) { return shift<arith::ShLIOp>(e); }
Value lowerElement(ShiftRightOp, Element e) { return shift<arith::ShRUIOp>(e); }
/// Philox4x32-10 on 32-bit words. Each is held in an i64, so that multiplications do not overflow.
Value lowerElement(RandomBitsOp, Element e) {
  auto word = [&](uint64_t value) {
    return e.make<arith::ConstantOp>(e.builder.getI64IntegerAttr(static_cast<int64_t>(value)));
  };
  auto low = [&](Value x) { return e.make<arith::AndIOp>(x, word(0xFFFFFFFFu)); };
  auto high = [&](Value x) { return e.make<arith::ShRUIOp>(x, word(32)); };
  Value k0 = low(e[0]), k1 = high(e[0]), c0 = low(e[1]), c1 = high(e[1]), c2 = word(0), c3 = word(0);
  for (int round = 0; round < 10; ++round) {
    Value first = e.make<arith::MulIOp>(c0, word(0xD2511F53u)), second = e.make<arith::MulIOp>(c2, word(0xCD9E8D57u));
    c0 = e.make<arith::XOrIOp>(e.make<arith::XOrIOp>(high(second), c1), k0);
    c2 = e.make<arith::XOrIOp>(e.make<arith::XOrIOp>(high(first), c3), k1);
    c1 = low(second);
    c3 = low(first);
    k0 = low(e.make<arith::AddIOp>(k0, word(0x9E3779B9u)));
    k1 = low(e.make<arith::AddIOp>(k1, word(0xBB67AE85u)));
  }
  return e.make<arith::OrIOp>(c0, e.make<arith::ShLIOp>(c1, word(32)));
}

Value lowerElement(NegateOp, Element e) {
  return e.isFloat() ? e.make<arith::NegFOp>(e[0]) : e.make<arith::SubIOp>(e.number(0), e[0]);
}
Value lowerElement(AbsOp, Element e) {
  return e.isFloat() ? e.make<math::AbsFOp>(e[0])
                     : e.make<arith::MaxSIOp>(e[0], e.make<arith::SubIOp>(e.number(0), e[0]));
}
Value lowerElement(SignOp, Element e) {
  Value zero = e.number(0);
  Value above = e.isFloat() ? e.compareFloats(arith::CmpFPredicate::OGT, e[0], zero)
                            : e.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, e[0], zero);
  Value below = e.isFloat() ? e.compareFloats(arith::CmpFPredicate::OLT, e[0], zero)
                            : e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, e[0], zero);
  // 0 and NaN are neither above nor below, and stay.
  Value negative = e.make<arith::SelectOp>(below, e.number(-1), e[0]);
  return e.make<arith::SelectOp>(above, e.number(1), negative);
}
Value lowerElement(ExpOp, Element e) { return e.make<math::ExpOp>(e[0]); }
Value lowerElement(LogOp, Element e) { return e.make<math::LogOp>(e[0]); }
Value lowerElement(SqrtOp, Element e) { return e.make<math::SqrtOp>(e[0]); }
Value lowerElement(RsqrtOp, Element e) { return e.make<arith::DivFOp>(e.number(1), e.make<math::SqrtOp>(e[0])); }
Value lowerElement(ReciprocalOp, Element e) { return e.make<arith::DivFOp>(e.number(1), e[0]); }
Value lowerElement(TanhOp, Element e) { return e.make<math::TanhOp>(e[0]); }
Value lowerElement(ErfOp, Element e) { return e.make<math::ErfOp>(e[0]); }
Value lowerElement(SinOp, Element e) { return e.make<math::SinOp>(e[0]); }
Value lowerElement(CosOp, Element e) { return e.make<math::CosOp>(e[0]); }
Value lowerElement(AtanOp, Element e) { return e.make<math::AtanOp>(e[0]); }
Value lowerElement(RoundOp, Element e) { return e.make<math::RoundEvenOp>(e[0]); }
Value lowerElement(FloorOp, Element e) { return e.make<math::FloorOp>(e[0]); }
Value lowerElement(CeilOp, Element e) { return e.make<math::CeilOp>(e[0]); }
Value lowerElement(SigmoidOp, Element e) {
  Value power = e.make<math::ExpOp>(e.make<arith::NegFOp>(e[0]));
  return e.make<arith::DivFOp>(e.number(1), e.make<arith::AddFOp>(e.number(1), power));
}
Value lowerElement(NotOp, Element e) { return e.make<arith::XOrIOp>(e[0], e.number(-1)); }
Value lowerElement(IsNanOp, Element e) { return e.compareFloats(arith::CmpFPredicate::UNO, e[0], e[0]); }
Value lowerElement(IsFiniteOp, Element e) {
  // x - x is 0 for finite x, else NaN; no flag allows folding it.
  Value difference = e.make<arith::SubFOp>(e[0], e[0]);
  return e.compareFloats(arith::CmpFPredicate::ORD, difference, difference);
}
Value lowerElement(SelectOp, Element e) { return e.make<arith::SelectOp>(e[0], e[1], e[2]); }

Value lowerElement(CompareOp op, Element e) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  constexpr F floats[] = {F::OEQ, F::UNE, F::OLT, F::OLE, F::OGT, F::OGE};
  constexpr I integers[] = {I::eq, I::ne, I::slt, I::sle, I::sgt, I::sge};
  constexpr I booleans[] = {I::eq, I::ne, I::ult, I::ule, I::ugt, I::uge};
  auto predicate = static_cast<unsigned>(op.getPredicate());
  if (e.isFloat())
    return e.compareFloats(floats[predicate], e[0], e[1]);
  return e.make<arith::CmpIOp>(e.type().isInteger(1) ? booleans[predicate] : integers[predicate], e[0], e[1]);
}

Value convertFloat(Element e, Type to) {
  unsigned from = e.type().getIntOrFloatBitWidth(), width = to.getIntOrFloatBitWidth();
  if (to.isInteger(1))
    return e.compareFloats(arith::CmpFPredicate::UNE, e[0], e.number(0));
  if (!isa<FloatType>(to))
    return e.make<arith::FPToSIOp>(to, e[0]);
  if (from < width)
    return e.make<arith::ExtFOp>(to, e[0]);
  if (from > width)
    return e.make<arith::TruncFOp>(to, e[0]);
  // Two formats of 16 bits: through f32, which holds both.
  return e.make<arith::TruncFOp>(to, e.make<arith::ExtFOp>(e.builder.getF32Type(), e[0]));
}

Value convertInteger(Element e, Type to) {
  unsigned from = e.type().getIntOrFloatBitWidth(), width = to.getIntOrFloatBitWidth();
  bool boolean = from == 1;
  if (isa<FloatType>(to))
    return boolean ? e.make<arith::UIToFPOp>(to, e[0]) : e.make<arith::SIToFPOp>(to, e[0]);
  if (width == 1)
    return e.make<arith::CmpIOp>(arith::CmpIPredicate::ne, e[0], e.number(0));
  if (from > width)
    return e.make<arith::TruncIOp>(to, e[0]);
  return boolean ? e.make<arith::ExtUIOp>(to, e[0]) : e.make<arith::ExtSIOp>(to, e[0]);
}

Value lowerElement(ConvertOp op, Element e) {
  Type to = op.getResult().getType().getElementType();
  if (to == e.type())
    return e[0];
  return e.isFloat() ? convertFloat(e, to) : convertInteger(e, to);
}

Value lowerElement(BitCastOp op, Element e) { return e.make<arith::BitcastOp>(op.getType().getElementType(), e[0]); }

template <typename Op>
struct ElementwiseLowering : LowerableOpInterface::ExternalModel<ElementwiseLowering<Op>, Op> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
      return lowerElement(cast<Op>(op), Element{nested, loc, args});
    };
    return SmallVector<Value>{
        buildElements(builder, op->getLoc(), cast<RankedTensorType>(op->getResult(0).getType()), operands, body)};
  }
};

template <typename... Ops>
void attach(MLIRContext *context) {
  (attachOnce<Ops, ElementwiseLowering<Ops>>(*context), ...);
}

} // namespace

void registerElementwiseLowerings(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attach<AddOp, SubtractOp, MultiplyOp, DivideOp, RemainderOp, MaximumOp, MinimumOp, PowerOp, AndOp, OrOp, XorOp,
           NegateOp, AbsOp, SignOp, ExpOp, LogOp, SqrtOp, RsqrtOp, ReciprocalOp, TanhOp, ErfOp, SigmoidOp, SinOp, CosOp,
           AtanOp, FloorOp, CeilOp, RoundOp, ShiftLeftOp, ShiftRightOp, RandomBitsOp, NotOp, IsNanOp, IsFiniteOp,
           SelectOp, CompareOp, ConvertOp, BitCastOp>(context);
  });
}

} // namespace par
