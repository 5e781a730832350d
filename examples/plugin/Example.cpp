// A plugin: the op example.cube, the optimizer example.sign_momentum, and the pass example-fold-double-negation.
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Dialect/Interfaces/Differentiable.h"
#include "par/Dialect/Interfaces/Interpretable.h"
#include "par/Dialect/Interfaces/Optimizer.h"
#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Dialect/Term.h"
#include "par/Plugin/Plugin.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using par::ShardingRule;
using par::Term;
using par::interp::Tensor;

#include "ExampleDialect.h.inc"
#define GET_OP_CLASSES
#include "ExampleOps.h.inc"

#include "ExampleDialect.cpp.inc"
#define GET_OP_CLASSES
#include "ExampleOps.cpp.inc"

void example::ExampleDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ExampleOps.cpp.inc"
      >();
}

namespace example {

// cube: scale x^3

ShardingRule CubeOp::getShardingRule() { return ShardingRule::getElementwise(getType().getShape(), 1, 1); }

FailureOr<SmallVector<Tensor>> CubeOp::interpret(ArrayRef<Tensor> operands) {
  double scale = getScale().convertToDouble();
  Tensor result = operands[0];
  for (double &x : result.mutableFloats())
    x = scale * x * x * x;
  return SmallVector<Tensor>{result};
}

SmallVector<Value> CubeOp::decompose(OpBuilder &builder) {
  Term x(builder, getLoc(), getOperand());
  return {getScale().convertToDouble() * x * x * x};
}

FailureOr<SmallVector<Value>> CubeOp::differentiate(OpBuilder &builder, ArrayRef<Value> cotangents) {
  Term x(builder, getLoc(), getOperand()), ct = x.with(cotangents[0]);
  return SmallVector<Value>{ct * (3 * getScale().convertToDouble() * x * x)};
}

int64_t CubeOp::getFlops() { return 3 * getType().getNumElements(); }

// sign_momentum

ArrayRef<StringRef> SignMomentumOp::getStates() {
  static constexpr StringRef states[] = {".m"};
  return states;
}

bool SignMomentumOp::countsSteps() { return false; }

/// Elementwise but for the learning rate, which is a scalar.
ShardingRule SignMomentumOp::getShardingRule() {
  ShardingRule rule = ShardingRule::getElementwise(getWeight().getType().getShape(), 4, 2);
  rule.operands[3].clear();
  return rule;
}

FailureOr<SmallVector<Tensor>> SignMomentumOp::interpret(ArrayRef<Tensor> operands) {
  double beta = getBeta().convertToDouble(), decay = getWeightDecay().convertToDouble();
  double lr = operands[3].floats()[0];
  Tensor weight = operands[0], momentum = operands[2];
  auto w = weight.mutableFloats(), m = momentum.mutableFloats();
  auto g = operands[1].floats();
  for (size_t i = 0; i < w.size(); ++i) {
    m[i] = beta * m[i] + (1 - beta) * g[i];
    double direction = std::isnan(m[i]) ? m[i] : (m[i] > 0) - (m[i] < 0);
    w[i] -= lr * (direction + decay * w[i]);
  }
  return SmallVector<Tensor>{weight, momentum};
}

SmallVector<Value> SignMomentumOp::decompose(OpBuilder &builder) {
  Term w(builder, getLoc(), getWeight());
  Type type = w.getType().getElementType();
  auto like = [&](Value value) { return w.with(value).convert(type); };
  double beta = getBeta().convertToDouble(), decay = getWeightDecay().convertToDouble();
  Term m = beta * like(getMomentum()) + (1 - beta) * like(getGradient());
  Term lr = like(getLr()).broadcast(w.getShape());
  return {w - lr * (sign(m) + w * decay), m.convert(getMomentum().getType().getElementType())};
}

int64_t SignMomentumOp::getFlops() { return 8 * getWeight().getType().getNumElements(); }

/// The negation of a negation is the value.
struct FoldDoubleNegation : PassWrapper<FoldDoubleNegation, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FoldDoubleNegation)
  StringRef getArgument() const override { return "example-fold-double-negation"; }
  StringRef getDescription() const override { return "replaces the negation of a negation"; }
  void runOnOperation() override {
    getOperation().walk([](par::NegateOp outer) {
      if (auto inner = outer.getOperand().getDefiningOp<par::NegateOp>()) {
        outer.replaceAllUsesWith(inner.getOperand());
        outer.erase();
        if (inner->use_empty())
          inner.erase();
      }
    });
  }
};

} // namespace example

PAR_PLUGIN(plugin) {
  plugin.registerDialects = [](DialectRegistry &registry) { registry.insert<example::ExampleDialect>(); };
  plugin.registerPasses = [] { PassRegistration<example::FoldDoubleNegation>(); };
  plugin.passes.push_back(
      {"train", [](OpPassManager &manager) { manager.addPass(std::make_unique<example::FoldDoubleNegation>()); }});
}
