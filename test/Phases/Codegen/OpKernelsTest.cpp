// Every op that has a lowering, on random shapes and all element types, as a kernel of its own against the
// interpreter. PAR_KERNELS=N draws N shapes of each kind of case instead of one (check-all-kernels.test).
#include "../Train/OneOp.h"
#include "../Train/OtherCases.h"
#include "RunKernels.h"

#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Dialect/Interfaces/Lowerable.h"

using namespace mlir;
using namespace par;
using namespace par::test;

namespace {

constexpr unsigned seed = 31;

unsigned shapes() { return drawsOf("PAR_KERNELS", 1); }

/// Differentiable ops on f32 and f64, and all other ops.
std::vector<NamedCase> kernelCases() {
  std::vector<NamedCase> cases = otherCases();
  for (const auto &from : {differentiableCases(), compositeCases()})
    for (auto &[name, make] : from) {
      if (name == "constrain") // of no kernel
        continue;
      cases.emplace_back(name, inElement(make, "f32"));
      cases.emplace_back(name, make);
    }
  for (auto &each : retypedCases({"f32"}))
    cases.push_back(each);
  return cases;
}

/// How far a kernel may be off, by the narrowest float in it.
double boundOf(StringRef text) {
  return text.contains("bf16") ? 2e-2 : text.contains("f16") ? 4e-3 : text.contains("f32") ? 1e-5 : 1e-11;
}

struct KernelCase {
  OpCase made;
  Chooser choose;
  std::string text;
};

/// Draws a case of at most a few thousand elements.
KernelCase drawCase(const MakeCase &make, unsigned round, const std::string &symbol) {
  for (unsigned again = 0;; ++again) {
    Chooser choose(seed + 1000 * again + round, round % 4, round % 8 < 4 ? 20 : 6);
    OpCase made = make(choose);
    int64_t most = 0;
    auto count = [&](const Shape &shape) {
      most = std::max(most, std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()));
    };
    count(made.result);
    std::string arguments;
    for (auto [i, input] : llvm::enumerate(made.inputs)) {
      count(input.shape);
      arguments += llvm::formatv("{0}%a{1}: {2}", i ? ", " : "", i, typeOf(input.shape, input.element));
    }
    if (most > 2000)
      continue;
    std::string result = typeOf(made.result, made.element);
    std::string text = llvm::formatv("par.kernel @{0}({1}) -> {2} attributes {{implementation = \"generated\"} {{\n"
                                     "{3}\npar.return %y : {2}\n}\n",
                                     symbol, arguments, result, renamed(made.text));
    return {made, choose, text};
  }
}

/// Operands as the case says, and as its element types hold them.
std::vector<Tensor> drawInputs(KernelOp kernel, KernelCase &drawn) {
  std::vector<Tensor> inputs;
  for (auto [i, input] : llvm::enumerate(drawn.made.inputs)) {
    auto type = cast<RankedTensorType>(kernel.getFunctionType().getInput(i));
    inputs.push_back(drawTensor(type, input, drawn.choose, i));
    if (type.getElementType().isF32())
      for (double &value : inputs.back().mutableFloats())
        value = static_cast<float>(value);
  }
  return inputs;
}

// Padding may hold anything: dividing integers by it must not trap.
TEST(OpKernels, DivideByZeroAndMinusOne) {
  run_kernels::runAll(R"(
    par.kernel @divide(%a: tensor<5x7xi64>, %b: tensor<5x7xi64>) -> tensor<5x7xi64>
        attributes {implementation = "generated"} {
      %one = par.constant dense<1> : tensor<5x7xi64>
      %divisor = par.subtract %b, %one : tensor<5x7xi64>
      %0 = par.divide %a, %divisor : tensor<5x7xi64>
      par.return %0 : tensor<5x7xi64>
    })");
}

TEST(OpKernels, EmptyTensors) {
  run_kernels::runAll(R"(
    par.kernel @elements(%a: tensor<0x3xf32>, %b: tensor<0x3xf32>) -> tensor<0x3xf32>
        attributes {implementation = "generated"} {
      %0 = par.add %a, %b : tensor<0x3xf32>
      par.return %0 : tensor<0x3xf32>
    }
    par.kernel @sum(%a: tensor<0x3xf32>) -> tensor<3xf32> attributes {implementation = "generated"} {
      %0 = par.reduce sum %a dims [0] : tensor<0x3xf32> to tensor<3xf32>
      par.return %0 : tensor<3xf32>
    }
    par.kernel @concat(%a: tensor<0x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32>
        attributes {implementation = "generated"} {
      %0 = par.concat %a, %b dim 0 : (tensor<0x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
      par.return %0 : tensor<2x3xf32>
    })");
}

/// On one target.
void expectAgreement(const std::string &isa) {
  SCOPED_TRACE("compiled for " + isa);
  llvm::StringSet<> seen;
  unsigned kinds = 0, kernels = 0;
  for (auto &[name, make] : kernelCases()) {
    std::vector<KernelCase> drawn;
    std::string text;
    for (unsigned round = 0; round < shapes(); ++round) {
      drawn.push_back(drawCase(make, shapes() == 1 ? kinds : round, name + "_" + std::to_string(round)));
      text += drawn.back().text;
    }
    ++kinds;
    SCOPED_TRACE(text);
    LoadedKernels loaded(text, isa);
    if (!loaded.handle) {
      ADD_FAILURE() << name << " is refused: " << loaded.errors;
      continue;
    }
    for (auto [one, info] : llvm::zip(drawn, loaded.compiled.kernels)) {
      auto kernel = loaded.module->lookupSymbol<KernelOp>(info.kernel);
      std::vector<Tensor> inputs = drawInputs(kernel, one);
      for (bool atEnd : {false, true})
        run_kernels::runOne(kernel, info, loaded.function(info), inputs, atEnd, boundOf(one.text));
      kernel.walk([&](Operation *op) { seen.insert(op->getName().getStringRef()); });
      ++kernels;
    }
  }
  // A new op with a lowering cannot be forgotten.
  Session session;
  unsigned ops = 0;
  for (RegisteredOperationName name : session.context.getRegisteredOperations())
    if (name.hasInterface<LowerableOpInterface>() || name.hasInterface<DecomposableOpInterface>()) {
      EXPECT_TRUE(seen.contains(name.getStringRef())) << name.getStringRef().str() << " is not tested";
      ++ops;
    }
  llvm::outs() << ops << " ops, " << kinds << " kinds of cases, " << kernels << " kernels\n";
}

TEST(OpKernels, AgreeWithTheInterpreter) { expectAgreement(""); }

// Without ptxas, which knows nothing of the numbers.
TEST(OpKernels, AgreeOnAGpu) {
  setenv("PAR_PTXAS", "", 1);
  expectAgreement("sm_80");
  unsetenv("PAR_PTXAS");
}

} // namespace
