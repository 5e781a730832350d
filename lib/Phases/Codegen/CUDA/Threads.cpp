#include "Threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace par::cuda {

Value Threads::call(StringRef intrinsic, Type result, ValueRange arguments) const {
  if (result)
    return LLVM::CallIntrinsicOp::create(builder, loc, result, builder.getStringAttr(intrinsic), arguments)
        .getResult(0);
  LLVM::CallIntrinsicOp::create(builder, loc, builder.getStringAttr(intrinsic), arguments);
  return {};
}

Value Threads::number(int64_t value) const {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value Threads::thread() const {
  Value id = call("llvm.nvvm.read.ptx.sreg.tid.x", builder.getI32Type(), {});
  return arith::ExtUIOp::create(builder, loc, builder.getI64Type(), id);
}

Value Threads::block() const {
  Value id = call("llvm.nvvm.read.ptx.sreg.ctaid.x", builder.getI32Type(), {});
  return arith::ExtUIOp::create(builder, loc, builder.getI64Type(), id);
}

void Threads::syncWarp() const { call("llvm.nvvm.bar.warp.sync", {}, number(-1)); }

void Threads::syncBlock() const { call("llvm.nvvm.barrier.cta.sync.aligned.all", {}, number(0)); }

Value Threads::exchangeWord(Value word, unsigned mask) const {
  return call("llvm.nvvm.shfl.sync.bfly.i32", builder.getI32Type(), {number(-1), word, number(mask), number(31)});
}

Value Threads::exchange(Value value, unsigned mask) const {
  Type type = value.getType(), i32 = builder.getI32Type(), i64 = builder.getI64Type();
  unsigned width = type.getIntOrFloatBitWidth();
  Type integer = builder.getIntegerType(width);
  Value bits = isa<FloatType>(type) ? arith::BitcastOp::create(builder, loc, integer, value).getResult() : value;
  if (width == 64) {
    Value half = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(32));
    Value low = exchangeWord(arith::TruncIOp::create(builder, loc, i32, bits), mask);
    Value above = arith::ShRUIOp::create(builder, loc, bits, half);
    Value high = exchangeWord(arith::TruncIOp::create(builder, loc, i32, above), mask);
    Value shifted = arith::ShLIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, i64, high), half);
    bits = arith::OrIOp::create(builder, loc, shifted, arith::ExtUIOp::create(builder, loc, i64, low));
  } else {
    Value word = width < 32 ? arith::ExtUIOp::create(builder, loc, i32, bits).getResult() : bits;
    bits = exchangeWord(word, mask);
    if (width < 32)
      bits = arith::TruncIOp::create(builder, loc, integer, bits);
  }
  return isa<FloatType>(type) ? arith::BitcastOp::create(builder, loc, type, bits).getResult() : bits;
}

} // namespace par::cuda
