#pragma once

#include "PaddedRows.h"
#include "par/Phases/Kernels/Builtin.h"

namespace par {

/// The operand of a slice that only drops padding of rows, or the value itself.
inline mlir::Value withPadding(mlir::Value value) {
  mlir::Operation *op = value.getDefiningOp();
  return dropsPadding(op) ? op->getOperand(0) : value;
}

/// Builds the call for a kernel whose body is one op: operands are named by that op's operands and results.
class CallBuilder {
public:
  CallBuilder(KernelOp kernel, mlir::StringRef name) : kernel(kernel) {
    call.kernel = kernels::findBuiltin(std::string_view(name.data(), name.size()));
  }

  CallBuilder &read(mlir::Value operand) {
    call.operands.push_back({argumentOf(operand), std::nullopt, kernels::Access::Read});
    return *this;
  }
  /// The operand that comes last, if it is there.
  CallBuilder &readIf(mlir::Value operand) {
    if (!operand)
      return *this;
    others += 2;
    return read(operand);
  }
  CallBuilder &write(mlir::Value result) {
    call.operands.push_back({std::nullopt, resultOf(result), kernels::Access::Write});
    return *this;
  }
  CallBuilder &update(mlir::Value operand, mlir::Value result) {
    call.operands.push_back({argumentOf(operand), resultOf(result), kernels::Access::Update});
    return *this;
  }
  CallBuilder &integers(mlir::ArrayRef<int64_t> values) {
    for (int64_t value : values)
      call.immediates.push_back(uint64_t(value));
    return *this;
  }
  CallBuilder &reals(mlir::ArrayRef<double> values) {
    for (double value : values)
      call.immediates.push_back(kernels::realImmediate(value));
    return *this;
  }
  /// Adds to a result. If there is an accumulator, an add after the op reads it.
  CallBuilder &accumulate(mlir::Value accumulator, mlir::Value result) {
    others += accumulator ? 1 : 0;
    call.zeroFirst = !accumulator;
    call.operands.push_back(
        {accumulator ? argumentOf(accumulator) : std::nullopt, resultOf(result), kernels::Access::Accumulate});
    return *this;
  }
  /// Rows stored in bf16 or f16: reads the operand of the convert, with the kernel's variant for that type.
  CallBuilder &readRows(mlir::Value rows) {
    auto widening = rows.getDefiningOp<ConvertOp>();
    if (!widening || !call.kernel)
      return read(rows);
    ++others;
    mlir::Type from = widening.getOperand().getType().getElementType();
    std::string_view form = from.isBF16() ? "_bf16" : "_f16";
    call.kernel = kernels::findBuiltin(std::string(call.kernel->name).append(form));
    others += dropsPadding(widening.getOperand().getDefiningOp());
    return read(withPadding(widening.getOperand()));
  }
  /// Operands converted from one type, and a result converted to it: the kernel's variant for that type.
  CallBuilder &convert(mlir::ValueRange operands, mlir::Value result, ConvertOp narrowing) {
    if (narrowing && call.kernel) {
      std::string_view form = narrowing.getType().getElementType().isBF16() ? "_bf16" : "_f16";
      call.kernel = kernels::findBuiltin(std::string(call.kernel->name).append(form));
      others += operands.size();
    }
    for (mlir::Value operand : operands) {
      auto widening = narrowing ? operand.getDefiningOp<ConvertOp>() : ConvertOp();
      read(widening ? widening.getOperand() : operand);
    }
    return writeRows(result, narrowing);
  }
  /// Writes a result that may be converted to low precision, and then padded.
  CallBuilder &writeRows(mlir::Value result, ConvertOp narrowing, PadOp padding = {}) {
    others += (narrowing ? 1 : 0) + (padding ? 1 : 0);
    return write(padding ? padding.getResult() : narrowing ? narrowing.getResult() : result);
  }
  /// An op of the body that the builtin does too.
  CallBuilder &besides() {
    ++others;
    return *this;
  }
  /// An argument that the builtin does not need.
  CallBuilder &leaveOut() {
    ++leftOut;
    return *this;
  }
  std::optional<BuiltinCall> finish();

private:
  std::optional<unsigned> argumentOf(mlir::Value value) {
    auto argument = dyn_cast<mlir::BlockArgument>(value);
    return argument ? std::optional<unsigned>(argument.getArgNumber()) : std::nullopt;
  }
  std::optional<unsigned> resultOf(mlir::Value value) {
    for (auto [index, result] : llvm::enumerate(kernel.getTerminator()->getOperands()))
      if (result == value)
        return index;
    return std::nullopt;
  }

  KernelOp kernel;
  BuiltinCall call;
  unsigned leftOut = 0;
  /// Ops of the body beside the one that is described and the return.
  unsigned others = 0;
};

} // namespace par
