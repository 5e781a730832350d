// Sends activations and their gradients between ranks in the format of matmuls, not in the format of their users.
//
// If a norm or sum in f32 reads a matmul, -par-widen-sums lets the matmul return its f32 sum unrounded. On one device
// that is free. Between ranks it would send twice the bytes of a rounded result, though each rank's part is only as
// precise as the narrow operands. So if all terms of a sum over ranks come from narrow numbers by linear ops, each rank
// rounds its part, and the received sum is widened:
//
//     %a = dot %x, %v : bf16, bf16 -> f32
//     %b = dot %y, %w : bf16, bf16 -> f32           %s = add %a, %b : f32
//     %s = add %a, %b : f32                   ->    %n = convert %s : f32 to bf16
//     %r = all_reduce sum %s : f32                  %r = convert (all_reduce sum %n) : bf16 to f32
//
// A value that is only moved and that all users round is rounded before it is sent. Gradients of parameters are not
// changed: the plan sets their formats (-par-narrow-gradients). So are sums of values computed in f32: statistics,
// losses, weighted experts.
#include "par/Phases/Partition/Passes.h"

#include "par/Dialect/Interfaces/Bilinear.h"
#include "par/Dialect/Interfaces/Cost.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_NARROWACTIVATIONSPASS
#include "par/Phases/Partition/Passes.h.inc"

static FloatType floatOf(Value value) { return dyn_cast<FloatType>(getElementTypeOrSelf(value.getType())); }

static SmallVector<Value> floatOperands(Operation *op) {
  return llvm::to_vector(llvm::make_filter_range(op->getOperands(), [](Value value) { return bool(floatOf(value)); }));
}

/// Linear in all its float operands together: ops that add, move or select.
static bool isLinear(Operation *op) {
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  size_t floats = floatOperands(op).size();
  return rule && op->getNumResults() == 1 && floats > 0 &&
         llvm::any_of(rule.getShardingRule().linear, [&](auto &set) { return set.size() == floats; }) &&
         (floats > 1 || op->getNumOperands() == 1);
}

/// Sums one value over ranks.
static bool sumsOverRanks(Operation *op) {
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return reduce.getKind() == ReduceKind::sum && op->getNumOperands() == 1;
  auto scatter = dyn_cast<ReduceScatterOp>(op);
  return scatter && scatter.getKind() == ReduceKind::sum && op->getNumOperands() == 1;
}

/// Moves one value between ranks.
static bool movesBetweenRanks(Operation *op) { return isa<AllGatherOp, AllToAllOp>(op) && op->getNumOperands() == 1; }

/// The one format narrower than the value's that all its readers round it to; null if there is none.
static FloatType formatOfReaders(Value value) {
  FloatType format;
  for (Operation *user : value.getUsers()) {
    auto convert = dyn_cast<ConvertOp>(user);
    FloatType to = convert ? floatOf(convert.getResult()) : FloatType();
    if (!to || to.getWidth() >= floatOf(value).getWidth() || (format && to != format))
      return {};
    format = to;
  }
  return format;
}

namespace {

/// The formats of the numbers that a value is computed from by linear ops.
class NarrowSource {
public:
  /// `readers`: a value that is only moved counts as being of this format.
  explicit NarrowSource(FloatType readers) : format(readers), readers(readers) {}
  /// The one narrow format of all terms of the value, or null.
  FloatType of(Value value) { return trace(value) ? format : FloatType(); }

private:
  bool accept(FloatType found, Value wide) {
    if (!found || found.getWidth() >= floatOf(wide).getWidth() || (format && found != format))
      return false;
    format = found;
    return true;
  }
  bool trace(Value value);

  FloatType format, readers;
};

/// Rounds values sent between ranks in one module's forward and backward fragments.
class Narrower {
public:
  explicit Narrower(ModuleOp module) : module(module), symbols(module) {}
  void run();

private:
  void markGradients(StepOp step);
  void mark(Value value);
  void visit(Operation *op);

  ModuleOp module;
  SymbolTable symbols;
  DenseSet<Operation *> gradients; ///< collectives that sum a parameter's gradient
};

} // namespace

bool NarrowSource::trace(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<ConvertOp>(op))
    return accept(floatOf(op->getOperand(0)), value);
  if (isBilinear(op))
    return accept(floatOf(op->getOperand(0)), value) && accept(floatOf(op->getOperand(1)), value);
  if (matchPattern(op, m_AnyZeroFloat()))
    return true;
  if (isLinear(op))
    return llvm::all_of(floatOperands(op), [&](Value operand) { return trace(operand); });
  return readers && op->getNumResults() == 1 && movesElements(op);
}

/// Marks the collectives that a parameter's gradient passes, back to the first op that is not linear.
void Narrower::mark(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  bool seen = sumsOverRanks(op) && !gradients.insert(op).second;
  if (!seen && (sumsOverRanks(op) || movesBetweenRanks(op) || isa<ConvertOp>(op) || isLinear(op)))
    for (Value operand : floatOperands(op))
      mark(operand);
}

/// Marks the gradients, which are the labelled results of loops.
void Narrower::markGradients(StepOp step) {
  step.walk([&](LoopOp loop) {
    for (auto [number, label] : llvm::enumerate(loop.getLabels().value_or(ArrayAttr()))) {
      auto made = dyn_cast<OpResult>(loop.getBody().front().getTerminator()->getOperand(number));
      auto run = made ? dyn_cast<RunOp>(made.getOwner()) : RunOp();
      if (!run || cast<StringAttr>(label).getValue().empty())
        continue;
      auto fragment = symbols.lookup<FragmentOp>(run.getFragment());
      mark(fragment.getTerminator()->getOperand(made.getResultNumber()));
    }
  });
}

/// The value in that format; a matmul without other users gives it directly, a widening convert is dropped, any other
/// value is rounded.
static Value narrow(OpBuilder &builder, Value value, FloatType format) {
  Operation *op = value.getDefiningOp();
  if (auto convert = dyn_cast_or_null<ConvertOp>(op); convert && floatOf(convert.getOperand()) == format)
    return convert.getOperand();
  if (!isBilinear(op) || !value.hasOneUse())
    return buildConvert(builder, value.getLoc(), value, format);
  value.setType(cast<RankedTensorType>(value.getType()).clone(format));
  return value;
}

void Narrower::visit(Operation *op) {
  Value sent = op->getOperand(0), result = op->getResult(0);
  FloatType wide = floatOf(sent), readers = wide && !result.use_empty() ? formatOfReaders(result) : FloatType();
  auto convert = sent.getDefiningOp<ConvertOp>();
  FloatType format;
  if (movesBetweenRanks(op) && wide)
    format = readers ? readers : convert ? NarrowSource({}).of(sent) : FloatType();
  else if (sumsOverRanks(op) && wide && !gradients.contains(op))
    format = NarrowSource(readers).of(sent);
  if (!format)
    return;
  OpBuilder builder(op);
  op->setOperand(0, narrow(builder, sent, format));
  if (convert && convert->use_empty())
    convert.erase();
  result.setType(cast<RankedTensorType>(result.getType()).clone(format));
  builder.setInsertionPointAfter(op);
  if (readers) {
    for (Operation *user : llvm::make_early_inc_range(result.getUsers())) { // their converts
      user->getResult(0).replaceAllUsesWith(result);
      user->erase();
    }
    return;
  }
  Value again = buildConvert(builder, op->getLoc(), result, wide);
  result.replaceAllUsesExcept(again, again.getDefiningOp());
}

void Narrower::run() {
  for (StepOp step : module.getOps<StepOp>())
    markGradients(step);
  SmallVector<Operation *> sent;
  for (FragmentOp fragment : module.getOps<FragmentOp>())
    if (fragment.getKind() == FragmentKind::forward || fragment.getKind() == FragmentKind::backward)
      for (Operation &op : fragment.getBlock())
        if (sumsOverRanks(&op) || movesBetweenRanks(&op))
          sent.push_back(&op);
  for (Operation *op : sent)
    visit(op);
}

namespace {
struct NarrowActivationsPass : impl::NarrowActivationsPassBase<NarrowActivationsPass> {
  void runOnOperation() override { Narrower(getOperation()).run(); }
};
} // namespace

} // namespace par
