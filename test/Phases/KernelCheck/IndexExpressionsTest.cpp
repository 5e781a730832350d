// Random expressions of indices, forward and gradient, each a kernel, run on random operands between pages that cannot
// be touched and held against the interpreter. PAR_INDEX_EXPRESSIONS=N draws N on cpu and a fifth on emulated threads;
// seeds are 1, 2, ..., or begin at PAR_INDEX_SEED.
#include "IndexExpressions.h"
#include "../Train/OneOp.h"

#include "par/Phases/KernelCheck/KernelCheck.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace par;
using namespace par::test;

namespace {

/// Expressions whose kernels are compiled together.
constexpr unsigned batch = 100;

/// `@eval` returns the sum of %y times a weight; @p0 is the variable of the gradient.
std::string stepOf(const IndexExpression &drawn) {
  std::string arguments = "%weight: " + typeOf(drawn.result, "f32"), names = "\"weight\"";
  for (auto [i, shape] : llvm::enumerate(drawn.integers)) {
    arguments += llvm::formatv(", %i{0}: {1}", i, typeOf(shape, "i64"));
    names += llvm::formatv(", \"i{0}\"", i);
  }
  Shape dims(drawn.result.size());
  std::iota(dims.begin(), dims.end(), 0);
  return llvm::formatv(
      "par.variable @p0 parameter : {0}\n"
      "par.step @eval({1}) -> (tensor<f32>, {2}) attributes {{inputs = [{3}], outputs = [\"loss\", \"y\"]} {{\n"
      "%p0 = par.read @p0 : {0}\n{4}%yw = par.multiply %y, %weight : {2}\n"
      "%l = par.reduce sum %yw dims {5} : {2} to tensor<f32>\npar.return %l, %y : tensor<f32>, {2}\n}\n",
      typeOf(drawn.parameter, "f32"), arguments, typeOf(drawn.result, "f32"), names, drawn.body, listOf(dims));
}

/// A kernel of the ops that compute `results` from a step's arguments and variables.
void addKernel(ModuleOp module, StepOp step, const std::string &name, ArrayRef<Value> results) {
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Type> inputs;
  SmallVector<Value> given(step.getBlock().getArguments());
  step.walk([&](ReadOp read) { given.push_back(read.getResult()); });
  for (Value value : given)
    inputs.push_back(value.getType());
  auto type =
      builder.getFunctionType(inputs, llvm::map_to_vector(results, [](Value value) { return value.getType(); }));
  auto kernel = KernelOp::create(builder, module.getLoc(), name, type, "generated");
  Block *body = kernel.getBody().empty() ? &kernel.getBody().emplaceBlock() : &kernel.getBody().front();
  if (body->getNumArguments() == 0)
    for (Type input : inputs)
      body->addArgument(input, module.getLoc());
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  mapping.map(ValueRange(given), body->getArguments());
  for (Operation &op : step.getBlock().without_terminator()) {
    if (isa<ReadOp>(op))
      continue;
    if (isa<CotangentOp>(op)) // the seed's value
      mapping.map(op.getResult(0), mapping.lookup(op.getOperand(1)));
    else if (isa<GradientOp>(op))
      mapping.map(op.getResult(0), mapping.lookup(op.getOperand(0)));
    else
      builder.clone(op, mapping);
  }
  SmallVector<Value> mapped = llvm::map_to_vector(results, [&](Value value) { return mapping.lookup(value); });
  ReturnOp::create(builder, module.getLoc(), mapped);
}

/// Nothing that no result needs.
void dropUnused(ModuleOp module) {
  for (bool changed = true; changed;) {
    changed = false;
    module.walk([&](Operation *op) {
      if (op->getNumResults() && op->use_empty() && !isa<KernelOp>(op)) {
        op->erase();
        changed = true;
      }
    });
  }
}

class Campaign {
public:
  explicit Campaign(std::string device) : device(std::move(device)) { session.context.loadAllAvailableDialects(); }

  void add(unsigned seed) {
    IndexExpression drawn(seed);
    OwningOpRef<ModuleOp> step = session.parse(stepOf(drawn));
    ASSERT_TRUE(step) << "seed " << seed;
    auto eval = step->lookupSymbol<StepOp>("eval");
    addKernel(*kernels, eval, "forward" + std::to_string(seed), eval.getBlock().getTerminator()->getOperand(1));
    session.run(*step, {+[] { return createDifferentiatePass(); }});
    SmallVector<Value> gradients;
    auto train = step->lookupSymbol<StepOp>("train");
    train.walk([&](GradientOp gradient) { gradients.push_back(gradient.getOperand()); });
    addKernel(*kernels, train, "gradient" + std::to_string(seed), gradients);
  }

  /// Compiles and checks the kernels added since the last call.
  void check() {
    dropUnused(*kernels);
    CodegenOptions options;
    options.device = device;
    options.keepIR = device == "cuda";
    FailureOr<CompiledKernels> compiled = compileKernels(*kernels, options);
    ASSERT_TRUE(succeeded(compiled));
    EXPECT_TRUE(succeeded(checkKernels(*kernels, *compiled, {}, counts)));
    kernels = ModuleOp::create(UnknownLoc::get(&session.context));
  }

  Session session;
  KernelCheckCounts counts;

private:
  std::string device;
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(&session.context));
};

void run(const std::string &device, unsigned count) {
  Campaign campaign(device);
  unsigned first = drawsOf("PAR_INDEX_SEED", 1);
  for (unsigned i = 0; i < count; ++i) {
    campaign.add(first + i);
    if ((i + 1) % batch == 0 || i + 1 == count)
      campaign.check();
  }
  EXPECT_EQ(campaign.counts.addressesOnly + campaign.counts.notRun, 0u);
  llvm::outs() << device << ": seeds " << first << " to " << first + count - 1 << ", " << campaign.counts.kernels
               << " different kernels, " << campaign.counts.elements << " elements compared\n";
}

TEST(IndexExpressions, AgreeOnTheCpu) { run("cpu", drawsOf("PAR_INDEX_EXPRESSIONS", 25)); }

TEST(IndexExpressions, AgreeOnAGpu) {
  setenv("PAR_PTXAS", "", 1); // which knows nothing of numbers
  run("cuda", (drawsOf("PAR_INDEX_EXPRESSIONS", 25) + 4) / 5);
  unsetenv("PAR_PTXAS");
}

} // namespace
