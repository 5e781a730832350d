#include "par/Dialect/Term.h"
#include "par/Phases/Train/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_SKIPOVERFLOWPASS
#include "par/Phases/Train/Passes.h.inc"

namespace {

/// Makes the writes of one step conditional, and counts good steps. Buffers are forward's: they have been written when
/// a gradient turns out not to be finite, as in PyTorch.
class Skipper {
public:
  Skipper(StepOp step, int64_t growth, bool counts)
      : step(step), module(step->getParentOfType<ModuleOp>()), builder(step.getTerminator()), growth(growth),
        counts(counts) {}
  LogicalResult run();

private:
  LogicalResult findTests();
  Value testFor(WriteOp write);
  Term read(StringRef variable, Type type);
  void skip(WriteOp write);
  void updateScale();
  LogicalResult countSkipped(StringRef name);

  StepOp step;
  ModuleOp module;
  OpBuilder builder;
  int64_t growth;
  bool counts;
  llvm::StringMap<Value> tests; ///< by parameter: whether the whole gradient's norm is finite
  std::optional<Term> first;    ///< one of them, for variables that belong to no parameter
};

} // namespace

/// The tests of gradients for finiteness. -par-clip-gradients has left the sums of squares in one stage_all_reduce.
LogicalResult Skipper::findTests() {
  SmallVector<GradientOp> gradients(step.getBlock().getOps<GradientOp>());
  auto reduces = step.getBlock().getOps<StageAllReduceOp>();
  if (reduces.empty() || (*reduces.begin())->getNumResults() < gradients.size())
    return step.emitOpError() << "has no par.stage_all_reduce with a result for each of its " << gradients.size()
                              << " gradients";
  StageAllReduceOp norm = *reduces.begin();
  for (auto [gradient, sum] : llvm::zip(gradients, norm.getResults().take_front(gradients.size()))) {
    Value finite = IsFiniteOp::create(builder, gradient.getLoc(), sum);
    tests[gradient.getVariable()] = finite;
    if (!first)
      first.emplace(builder, step.getLoc(), finite);
  }
  return success();
}

Value Skipper::testFor(WriteOp write) {
  auto variable = module.lookupSymbol<VariableOp>(write.getVariable());
  StringRef parameter = variable.getKind() == VariableKind::state ? *variable.getOf() : write.getVariable();
  Value test = tests.lookup(parameter);
  return test ? test : Value(*first);
}

Term Skipper::read(StringRef variable, Type type) {
  for (auto known : step.getBlock().getOps<ReadOp>())
    if (known.getVariable() == variable)
      return Term(builder, known.getLoc(), known);
  OpBuilder start(&step.getBlock(), step.getBlock().begin());
  return Term(builder, step.getLoc(), ReadOp::create(start, step.getLoc(), type, variable));
}

/// The new value if the step is good, else the old one.
void Skipper::skip(WriteOp write) {
  Value now = write.getOperand();
  Term before = read(write.getVariable(), now.getType());
  Term good = before.with(testFor(write)).broadcast(before.getShape());
  Value kept = good.select(now, before);
  write.getOperandMutable().assign(kept);
  write->moveAfter(kept.getDefiningOp());
}

/// Half after a bad step, twice after `growth` good ones.
void Skipper::updateScale() {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  Term scale = read("loss_scale", scalar), count = read("good_steps", scalar) + 1.0;
  Term grows = count.compare(Predicate::ge, static_cast<double>(growth));
  Term good = *first, zero = count.splat(0), grown = grows.select(scale * 2.0, scale);
  Term next = good.select(grown, scale * 0.5);
  WriteOp::create(builder, step.getLoc(), next, "loss_scale");
  WriteOp::create(builder, step.getLoc(), good.select(grows.select(zero, count), zero), "good_steps");
  Operation *terminator = step.getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), Value(next));
  step.setFunctionType(builder.getFunctionType(step.getArgumentTypes(), terminator->getOperandTypes()));
  SmallVector<Attribute> names(step.getOutputsAttr().begin(), step.getOutputsAttr().end());
  names.push_back(builder.getStringAttr("loss_scale"));
  step.setOutputsAttr(builder.getArrayAttr(names));
}

/// Counts the steps that have written nothing, by which the runtime knows that there may be some.
LogicalResult Skipper::countSkipped(StringRef name) {
  if (Operation *taken = module.lookupSymbol(name)) {
    InFlightDiagnostic error = step.emitError() << "training needs a variable @" << name << " of its own";
    error.attachNote(taken->getLoc()) << "the name is taken here";
    return error;
  }
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  OpBuilder outside(*module.getOps<StepOp>().begin());
  VariableOp::create(outside, step.getLoc(), name, VariableKind::counter, FlatSymbolRefAttr(), scalar, TypeAttr(),
                     ShardingAttr(), ArrayAttr(), DenseElementsAttr::get(scalar, 0.0f), StringAttr(), DictionaryAttr());
  Term count = read(name, scalar);
  WriteOp::create(builder, step.getLoc(), first->select(count, count + 1.0), name);
  return success();
}

LogicalResult Skipper::run() {
  if (step.getBlock().getOps<GradientOp>().empty())
    return success();
  if (failed(findTests()))
    return failure();
  for (WriteOp write : llvm::to_vector(step.getBlock().getOps<WriteOp>()))
    if (module.lookupSymbol<VariableOp>(write.getVariable()).getKind() != VariableKind::buffer)
      skip(write);
  if (counts && failed(countSkipped("skipped_steps")))
    return failure();
  if (growth > 0 && module.lookupSymbol("loss_scale"))
    updateScale();
  return success();
}

namespace {
struct SkipOverflowPass : impl::SkipOverflowPassBase<SkipOverflowPass> {
  using Base::Base;
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<StepOp>("train");
    if (growth < 0) {
      getOperation().emitError() << "lets the loss scale grow after " << growth.getValue()
                                 << " steps, expected 0 or more";
      return signalPassFailure();
    }
    if (step && failed(Skipper(step, growth, count).run()))
      signalPassFailure();
  }
};
} // namespace

} // namespace par
