// Runs compiled kernels between guard pages and compares them with the interpreter: for the oldest and the best
// instruction set of this machine, and for an emulated GPU.
#pragma once

#include "../../../lib/Phases/KernelCheck/GuardedBuffer.h"
#include "LoadedKernels.h"

#include "par/Interpreter/Interpreter.h"

#include <cmath>
#include <memory>
#include <random>

/// Runs compiled kernels between guard pages and compares them with the interpreter.
namespace run_kernels {

using mlir::cast;
using mlir::dyn_cast;
using mlir::isa;
using par::interp::Tensor;

/// Floats in [-2, 2), of 16 bits that both bf16 and f16 represent exactly; integers in [0, 3): within every dim that
/// the kernels below index.
inline Tensor makeInput(mlir::RankedTensorType type, std::mt19937 &random) {
  Tensor tensor(type);
  if (tensor.isFloat())
    for (double &value : tensor.mutableFloats()) {
      value = static_cast<float>(std::uniform_real_distribution<float>(-2, 2)(random));
      if (type.getElementType().getIntOrFloatBitWidth() == 16)
        value = std::floor(value * 64) / 64;
    }
  else
    for (int64_t &value : tensor.mutableInts())
      value = random() % (type.getElementType().isInteger(1) ? 2 : 3);
  return tensor;
}

/// The bits of a number in a float format of 16 bits.
inline uint16_t narrowBits(mlir::FloatType type, double value) {
  llvm::APFloat number(value);
  bool inexact;
  number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

/// Calls visit with a pointer to the elements' type in memory: numbers convert to and from it, except floats of 16
/// bits.
template <typename Visit>
void asElements(mlir::Type type, const GuardedBuffer &buffer, Visit visit) {
  if (type.isF64())
    return visit(buffer.as<double>());
  if (type.isF32())
    return visit(buffer.as<float>());
  if (type.isInteger(64))
    return visit(buffer.as<int64_t>());
  if (type.isInteger(32))
    return visit(buffer.as<int32_t>());
  if (type.isInteger(16) || isa<mlir::FloatType>(type))
    return visit(buffer.as<int16_t>());
  visit(buffer.as<int8_t>());
}

inline void store(const Tensor &tensor, const GuardedBuffer &buffer) {
  mlir::Type type = tensor.getType().getElementType();
  asElements(type, buffer, [&](auto *elements) {
    for (int64_t i = 0; i < tensor.getSize(); ++i) {
      if (isa<mlir::FloatType>(type) && type.getIntOrFloatBitWidth() == 16)
        elements[i] = narrowBits(cast<mlir::FloatType>(type), tensor.floats()[i]);
      else if (tensor.isFloat())
        elements[i] = tensor.floats()[i];
      else
        elements[i] = type.isInteger(1) ? tensor.ints()[i] != 0 : tensor.ints()[i];
    }
  });
}

/// Element i as a double, whatever the type.
inline double loaded(mlir::RankedTensorType tensor, const GuardedBuffer &buffer, int64_t i) {
  mlir::Type type = tensor.getElementType();
  double value = 0;
  asElements(type, buffer, [&](auto *elements) { value = elements[i]; });
  if (auto narrow = dyn_cast<mlir::FloatType>(type); narrow && narrow.getWidth() == 16)
    value = llvm::APFloat(narrow.getFloatSemantics(), llvm::APInt(16, static_cast<uint16_t>(value))).convertToDouble();
  return value;
}
inline double expected(const Tensor &tensor, int64_t i) {
  if (!tensor.isFloat())
    return tensor.getType().getElementType().isInteger(1) ? tensor.ints()[i] != 0 : tensor.ints()[i];
  return tensor.floats()[i];
}

/// All within `bound` of the tensor's largest element; NaN where NaN, infinite where infinite.
inline void compare(const Tensor &want, const GuardedBuffer &got, const std::string &name, double bound) {
  double largest = 1;
  for (int64_t i = 0; i < want.getSize(); ++i)
    if (std::isfinite(expected(want, i)))
      largest = std::max(largest, std::abs(expected(want, i)));
  for (int64_t i = 0; i < want.getSize(); ++i) {
    double w = expected(want, i), g = loaded(want.getType(), got, i);
    bool same = std::isnan(w) ? std::isnan(g) : std::isinf(w) ? w == g : std::abs(w - g) <= bound * largest;
    ASSERT_TRUE(same) << name << " element " << i << ": expected " << w << ", got " << g;
  }
}

inline std::vector<Tensor> interpret(par::KernelOp kernel, const std::vector<Tensor> &inputs) {
  mlir::Block &body = kernel.getBody().front();
  par::interp::RankValues values;
  for (auto [argument, input] : llvm::zip(body.getArguments(), inputs))
    values[argument] = input;
  EXPECT_TRUE(succeeded(par::interp::runBlock(body, values, {})));
  std::vector<Tensor> results;
  for (mlir::Value result : body.getTerminator()->getOperands())
    results.push_back(values[result]);
  return results;
}

/// One kernel on one set of inputs, tile by tile in descending order: the split must not matter.
inline void runOne(par::KernelOp kernel, const par::KernelInfo &info, const LoadedKernels::Function &function,
                   const std::vector<Tensor> &inputs, bool atEnd, double bound) {
  std::string name = kernel.getSymName().str();
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  std::vector<void *> pointers;
  for (const par::OperandInfo &operand : info.operands) {
    // A GPU's operands begin at multiples of 16.
    uint64_t bytes = info.launch ? (operand.bytes + 15) / 16 * 16 : operand.bytes;
    buffers.push_back(std::make_unique<GuardedBuffer>(bytes, atEnd));
    pointers.push_back(buffers.back()->as<void>());
  }
  for (auto [input, buffer] : llvm::zip(inputs, buffers))
    store(input, *buffer);
  ASSERT_TRUE(function) << name;
  std::vector<uint64_t> immediates;
  for (const par::ImmediateInfo &immediate : info.immediates)
    immediates.push_back(uint64_t(immediate.number));
  for (uint32_t tile = info.tiles; tile-- > 0;)
    function(pointers.data(), immediates.data(), tile, tile + 1);
  unsigned next = inputs.size();
  for (auto [number, want] : llvm::enumerate(interpret(kernel, inputs))) {
    int64_t tied = kernel.getTied() ? (*kernel.getTied())[number] : -1;
    compare(want, *buffers[tied >= 0 ? tied : next++], name + " result " + std::to_string(number), bound);
  }
  for (auto [number, input] : llvm::enumerate(inputs))
    if (info.operands[number].access == par::OperandAccess::Read)
      compare(input, *buffers[number], name + " argument " + std::to_string(number), bound);
}

/// The oldest and the best that this machine runs: a kernel's results must not depend on the machine's age.
inline std::vector<std::string> isasOfThisMachine() { return {"x86-64", par::getHostIsa()}; }

/// And a GPU, emulated.
inline std::vector<std::string> allTargets() { return {"x86-64", par::getHostIsa(), "sm_80"}; }

inline void runAllFor(const std::string &text, const std::string &isa) {
  SCOPED_TRACE("compiled for " + isa);
  LoadedKernels loaded(text, isa);
  ASSERT_TRUE(loaded.handle) << loaded.errors;
  for (const par::KernelInfo &info : loaded.compiled.kernels) {
    auto kernel = loaded.module->lookupSymbol<par::KernelOp>(info.kernel);
    std::mt19937 random(7);
    std::vector<Tensor> inputs;
    for (mlir::Type type : kernel.getFunctionType().getInputs())
      inputs.push_back(makeInput(cast<mlir::RankedTensorType>(type), random));
    for (bool atEnd : {false, true})
      runOne(kernel, info, loaded.function(info), inputs, atEnd, 4e-6);
  }
}

inline void runAll(const std::string &text) {
  for (const std::string &isa : allTargets())
    runAllFor(text, isa);
}

} // namespace run_kernels
