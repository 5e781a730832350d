// Turns the plan's `shard` rules on values into `par.constrain` ops. A rule names an input, an output, a node or a
// module: of a module the values that enter it and that leave it are constrained, and only the users on that side read
// the constraint.
#include "PlanSource.h"

#include "par/Base/Provenance.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

#include <deque>

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_CONSTRAINVALUESPASS
#include "par/Phases/Annotate/Passes.h.inc"

namespace {

/// The tensor ops of a step by the nodes and modules that they come from, in their order: each rule asks for those of
/// one.
class OpsByOrigin {
public:
  explicit OpsByOrigin(StepOp step) {
    for (Operation &op : step.getBlock())
      for (std::vector<Operation *> *list : listsOf(&op))
        list->push_back(&op);
  }

  const std::optional<Provenance> &of(Operation *op) {
    auto [known, fresh] = provenance.try_emplace(LocationAttr(op->getLoc()));
    if (fresh)
      known->second = getProvenance(op->getLoc());
    return known->second;
  }
  ArrayRef<Operation *> ofNode(StringRef path) { return nodes[path]; }
  /// With those of the modules in it.
  ArrayRef<Operation *> ofModule(StringRef name) { return modules[name]; }
  /// An op that is new in the step.
  void add(Operation *op) {
    for (std::vector<Operation *> *list : listsOf(op))
      list->insert(llvm::partition_point(*list, [&](Operation *other) { return other->isBeforeInBlock(op); }), op);
  }

private:
  std::vector<std::vector<Operation *> *> listsOf(Operation *op) {
    const std::optional<Provenance> &from = of(op);
    if (!from || !isTensorOp(op))
      return {};
    std::vector<std::vector<Operation *> *> lists{&nodes[from->path], &modules[from->module]};
    for (size_t dot = from->module.find('.'); dot != StringRef::npos; dot = from->module.find('.', dot + 1))
      lists.push_back(&modules[from->module.take_front(dot)]);
    return lists;
  }

  llvm::DenseMap<Attribute, std::optional<Provenance>> provenance; ///< by location
  llvm::StringMap<std::vector<Operation *>> nodes, modules;
};

/// Places the constraints of one step.
class Constrainer {
public:
  Constrainer(StepOp step, const ModelPlan &model, ModuleOp module)
      : step(step), model(model), module(module), ops(step) {}

  LogicalResult apply(const ResolvedShard &rule);

  bool met = false; ///< a value was constrained by this rule

private:
  /// Whether an op comes from the module or node that the rule is about.
  bool isInside(Operation *op, const ResolvedShard &rule) {
    const std::optional<Provenance> &from = ops.of(op);
    if (!from)
      return false;
    if (rule.kind == ResolvedShard::GraphOutput)
      return from->path == model.names.outputs[rule.index].node;
    if (rule.kind == ResolvedShard::NodeOutput || rule.kind == ResolvedShard::NodeInput)
      return from->path == model.names.nodes[rule.index].name;
    StringRef name = model.names.modules[rule.index];
    return from->module.starts_with(name) &&
           (from->module.size() == name.size() || from->module.substr(name.size()).starts_with("."));
  }

  /// The tensor ops that isInside is true of.
  ArrayRef<Operation *> opsInside(const ResolvedShard &rule) {
    if (rule.kind == ResolvedShard::GraphOutput)
      return ops.ofNode(model.names.outputs[rule.index].node);
    if (rule.kind == ResolvedShard::NodeOutput || rule.kind == ResolvedShard::NodeInput)
      return ops.ofNode(model.names.nodes[rule.index].name);
    return ops.ofModule(model.names.modules[rule.index]);
  }

  SmallVector<Value> outputsOf(const ResolvedShard &rule);
  SmallVector<Value> inputsOf(const ResolvedShard &rule);
  LogicalResult checkDims(Value value, int64_t rank, const ResolvedShard &rule);
  LogicalResult constrain(Value value, const ResolvedShard &rule, bool usersInside);
  LogicalResult constrainInput(const ResolvedShard &rule);
  LogicalResult constrainOutput(const ResolvedShard &rule);

  StepOp step;
  const ModelPlan &model;
  ModuleOp module;
  OpsByOrigin ops;
};

} // namespace

/// Values computed inside the module and used outside, in order.
SmallVector<Value> Constrainer::outputsOf(const ResolvedShard &rule) {
  SmallVector<Value> outputs;
  for (Operation *op : opsInside(rule))
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !isInside(user, rule); }))
        outputs.push_back(result);
  return outputs;
}

/// Activations computed outside the module and used inside, in the order of their first use.
SmallVector<Value> Constrainer::inputsOf(const ResolvedShard &rule) {
  llvm::SetVector<Value> inputs;
  for (Operation *op : opsInside(rule))
    for (Value operand : op->getOperands()) {
      Operation *source = operand.getDefiningOp();
      // Weights have rules of their own, and constants are built at their uses.
      bool other =
          source && (isa<ReadOp>(source) || source->hasTrait<OpTrait::ConstantLike>() || isInside(source, rule));
      if (!other)
        inputs.insert(operand);
    }
  return llvm::to_vector(inputs);
}

/// Checks that the rule's dims are dims of the value, each named once: -1 is the last one.
LogicalResult Constrainer::checkDims(Value value, int64_t rank, const ResolvedShard &rule) {
  SmallVector<std::optional<int64_t>> saidAs(rank);
  for (const auto &[dim, axes] : rule.dims) {
    std::optional<int64_t> *before = dim >= -rank && dim < rank ? &saidAs[dim < 0 ? dim + rank : dim] : nullptr;
    if (before && !*before) {
      *before = dim;
      continue;
    }
    InFlightDiagnostic diagnostic = emitError(planLocation(axes.origin, module))
                                    << "the value has " << rank << " dims, so ";
    if (before)
      diagnostic << "dims " << **before << " and " << dim << " are one dim; say all its axes in one list";
    else
      diagnostic << "there is no dim " << dim;
    diagnostic.attachNote(value.getLoc()) << "the value is " << value.getType();
    return diagnostic;
  }
  return success();
}

/// Inserts a constraint after `value`; the users inside, or those outside, read it.
LogicalResult Constrainer::constrain(Value value, const ResolvedShard &rule, bool usersInside) {
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
  SmallVector<int64_t> dimOf = llvm::to_vector(llvm::seq<int64_t>(rank));
  if (failed(checkDims(value, rank, rule)))
    return failure();
  OpBuilder builder(step.getContext());
  builder.setInsertionPointAfterValue(value);
  ShardingAttr sharding = buildSharding(model.plan, rule, rank, dimOf, step.getContext());
  auto constrained = ConstrainOp::create(builder, value.getLoc(), value.getType(), value, sharding,
                                         rule.priority ? **rule.priority : 1);
  ops.add(constrained);
  bool whole = rule.kind == ResolvedShard::GraphInput || rule.kind == ResolvedShard::GraphOutput;
  met = true;
  value.replaceUsesWithIf(constrained, [&](OpOperand &use) {
    return use.getOwner() != constrained && (whole || isInside(use.getOwner(), rule) == usersInside);
  });
  return success();
}

/// Constrains the step's result of the output's name; if a loss was attached to the output, the output of its node.
LogicalResult Constrainer::constrainOutput(const ResolvedShard &rule) {
  StringRef wanted = model.names.outputs[rule.index].name;
  if (ArrayAttr outputs = step.getOutputsAttr())
    for (auto [name, value] : llvm::zip(outputs.getAsRange<StringAttr>(), step.getTerminator()->getOperands()))
      if (name.getValue() == wanted)
        return constrain(value, rule, /*usersInside=*/false);
  for (Value output : outputsOf(rule))
    if (failed(constrain(output, rule, /*usersInside=*/false)))
      return failure();
  return success();
}

/// Constrains an argument of the step, or the carried variable that is read in place of that input.
LogicalResult Constrainer::constrainInput(const ResolvedShard &rule) {
  StringRef wanted = model.names.inputs[rule.index].name;
  for (auto [name, argument] : llvm::zip(*step.getInputs(), step.getBlock().getArguments()))
    if (cast<StringAttr>(name).getValue() == wanted)
      return constrain(argument, rule, /*usersInside=*/true);
  for (auto read : step.getBlock().getOps<ReadOp>())
    if (auto variable = module.lookupSymbol<VariableOp>(read.getVariable());
        read.getVariable() == wanted && variable.getKind() == VariableKind::carried)
      return constrain(read, rule, /*usersInside=*/true);
  return success();
}

LogicalResult Constrainer::apply(const ResolvedShard &rule) {
  switch (rule.kind) {
  case ResolvedShard::ModuleOutput:
  case ResolvedShard::NodeOutput:
    for (Value output : outputsOf(rule))
      if (failed(constrain(output, rule, /*usersInside=*/false)))
        return failure();
    return success();
  case ResolvedShard::ModuleInput:
  case ResolvedShard::NodeInput: {
    SmallVector<Value> inputs = inputsOf(rule);
    if (rule.input >= inputs.size())
      return emitError(planLocation(rule.origin, module))
             << "there is no input " << rule.input << ", the module has " << inputs.size();
    return constrain(inputs[rule.input], rule, /*usersInside=*/true);
  }
  case ResolvedShard::GraphInput:
    return constrainInput(rule);
  case ResolvedShard::GraphOutput:
    return constrainOutput(rule);
  default:
    return success(); // of parameters
  }
}

/// Whether the plan lays a parameter that is an output under its own name: a rule of this name means both.
static bool isOfParameter(const ResolvedShard &output, ArrayRef<ResolvedShard> rules, const NameTable &names) {
  return llvm::any_of(rules, [&](const ResolvedShard &rule) {
    return rule.kind == ResolvedShard::Parameter &&
           names.parameters[rule.index].name == names.outputs[output.index].name;
  });
}

namespace {
struct ConstrainValuesPass : PlanPass<impl::ConstrainValuesPassBase<ConstrainValuesPass>> {
  using PlanPass::PlanPass;

  LogicalResult apply(const ModelPlan &model) override {
    ModuleOp module = getOperation();
    PlanErrors errors;
    std::vector<ResolvedShard> rules = resolveShards(model.plan, model.names, errors);
    if (failed(emitPlanErrors(errors, module)))
      return failure();
    std::deque<Constrainer> constrainers;
    for (StepOp step : module.getOps<StepOp>())
      constrainers.emplace_back(step, model, module);
    for (const ResolvedShard &rule : rules) {
      bool met = rule.kind != ResolvedShard::GraphOutput || isOfParameter(rule, rules, model.names);
      for (Constrainer &constrainer : constrainers) {
        constrainer.met = false;
        if (failed(constrainer.apply(rule)))
          return failure();
        met |= constrainer.met;
      }
      if (!met)
        return emitError(planLocation(rule.origin, module))
               << "the graph output \"" << model.names.outputs[rule.index].name
               << "\" is returned by no step of this plan; shard the module that gives it";
    }
    return success();
  }
};
} // namespace

std::unique_ptr<Pass> createConstrainValuesPass(const ModelPlan &plan) {
  return makePlanPass<ConstrainValuesPass>(plan);
}

} // namespace par
