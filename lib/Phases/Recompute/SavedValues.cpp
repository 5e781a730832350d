// The values of a forward that each mode of `recompute` saves.
#include "SavedValues.h"
#include "Segments.h"

#include "par/Base/Provenance.h"
#include "par/Dialect/Interfaces/Cost.h"

using namespace mlir;

namespace par {

/// The outermost module of a name, or around it, that a pattern matches; "" if none does.
static StringRef outermostMatch(StringRef module, ArrayRef<NamePattern> patterns) {
  size_t end = 0;
  for (StringRef segment : splitName(module)) {
    end += segment.size() + (end ? 1 : 0);
    StringRef name = module.take_front(end);
    if (llvm::any_of(patterns, [&](const NamePattern &pattern) { return pattern.matchesName(name); }))
      return name;
  }
  return "";
}

static StringRef findInstance(Operation *op, ArrayRef<NamePattern> patterns) {
  std::optional<Provenance> from = op ? getProvenance(op->getLoc()) : std::nullopt;
  return from ? outermostMatch(from->module, patterns) : "";
}

//===-- Names --------------------------------------------------------------------------------===//

/// "Gelu" of `h.0.mlp/Gelu.1`.
static StringRef opTypeOf(StringRef path) { return path.rsplit('/').second.split('.').first; }

/// Whether the op is in a module of out(M) and an op outside reads a result.
static bool leavesModule(const NamePattern &pattern, Operation *op) {
  StringRef inside = findInstance(op, pattern);
  return !inside.empty() && llvm::any_of(op->getUsers(), [&](Operation *user) {
    return !user->hasTrait<OpTrait::IsTerminator>() && findInstance(user, pattern) != inside;
  });
}

bool matchesOp(const NamePattern &pattern, Operation *op) {
  std::optional<Provenance> from = getProvenance(op->getLoc());
  if (!from)
    return false;
  switch (pattern.form()) {
  case NamePattern::Op:
    return pattern.matchesNode(opTypeOf(from->path), from->module);
  case NamePattern::Out:
    return leavesModule(pattern, op);
  case NamePattern::Name:
    return pattern.matchesName(from->path) || !outermostMatch(from->module, pattern).empty();
  default: // the plan takes no other form here
    return false;
  }
}

//===-- Modes --------------------------------------------------------------------------------===//

/// Residuals outside of regions, and values that enter one. `regionOf` an op: "" is outside.
static ValueSet saveRegionInputs(const FragmentPair &pair, llvm::function_ref<StringRef(Operation *)> regionOf) {
  ValueSet saved, residuals = pair.getResiduals();
  for (Operation &op : pair.getForward().getBlock().without_terminator()) {
    StringRef inside = regionOf(&op);
    if (inside.empty()) {
      for (Value result : op.getResults())
        if (residuals.contains(result))
          saved.insert(result);
      continue;
    }
    for (Value operand : op.getOperands())
      if (operand.getDefiningOp() && regionOf(operand.getDefiningOp()) != inside)
        saved.insert(operand);
  }
  return saved;
}

ValueSet saveModuleInputs(const FragmentPair &pair, ArrayRef<NamePattern> modules) {
  return saveRegionInputs(pair, [&](Operation *op) { return findInstance(op, modules); });
}

ValueSet saveOthers(const FragmentPair &pair, ArrayRef<NamePattern> recomputed) {
  return saveRegionInputs(pair, [&](Operation *op) -> StringRef {
    return llvm::any_of(recomputed, [&](const NamePattern &pattern) { return matchesOp(pattern, op); }) ? "in" : "";
  });
}

/// The value in the layout in which backward reads it, if it is one residual: then matmuls of forward and backward have
/// the layouts of `none`, and libraries add up in the same order. Else the value itself.
static Value findLaidOut(Value value, const ValueSet &residuals) {
  ValueSet same;
  same.insert(value);
  for (unsigned index = 0; index < same.size(); ++index)
    for (Operation *user : same[index].getUsers())
      if (isa<TransposeOp, ReshapeOp>(user))
        same.insert(user->getResult(0));
  same.remove_if([&](Value one) { return !residuals.contains(one); });
  return same.size() == 1 ? same.front() : value;
}

ValueSet saveMatching(const FragmentPair &pair, ArrayRef<NamePattern> kept) {
  ValueSet saved, residuals = pair.getResiduals();
  for (Operation &op : pair.getForward().getBlock().without_terminator())
    if (llvm::any_of(kept, [&](const NamePattern &pattern) { return matchesOp(pattern, &op); }))
      for (Value result : op.getResults())
        saved.insert(findLaidOut(result, residuals));
  return saved;
}

//===-- Attention ----------------------------------------------------------------------------===//

namespace {
/// Follows scores from the dots of two activations that make them to those that read them; a dot with a parameter ends
/// both ways.
class AttentionCore {
public:
  explicit AttentionCore(const FragmentPair &pair) {
    Block &body = pair.getForward().getBlock();
    for (BlockArgument argument : body.getArguments())
      if (!pair.isMadeBeforeLoop(argument))
        activations.insert(argument);
    for (Operation &op : body.without_terminator())
      followDown(&op);
    for (Operation &op : llvm::reverse(body.without_terminator()))
      followUp(&op);
  }
  bool contains(Operation *op) const { return core.contains(op); }

private:
  void followDown(Operation *op) {
    auto isActivation = [&](Value operand) { return activations.contains(operand); };
    if (llvm::any_of(op->getOperands(), isActivation))
      activations.insert(op->result_begin(), op->result_end());
    bool ofScores =
        llvm::any_of(op->getOperands(), [&](Value operand) { return fromScores.contains(operand.getDefiningOp()); });
    bool isDot = isa<DotOp>(op), makesScores = isDot && llvm::all_of(op->getOperands(), isActivation);
    if (makesScores && ofScores)
      reads.insert(op);
    if (makesScores || (ofScores && !isDot))
      fromScores.insert(op);
  }
  void followUp(Operation *op) {
    bool leads =
        llvm::any_of(op->getUsers(), [&](Operation *user) { return core.contains(user) || reads.contains(user); });
    if (leads && fromScores.contains(op) && !reads.contains(op))
      core.insert(op);
  }

  llvm::DenseSet<Value> activations;
  llvm::DenseSet<Operation *> fromScores, reads, core;
};
} // namespace

ValueSet saveAroundAttention(const FragmentPair &pair) {
  AttentionCore core(pair);
  return saveRegionInputs(pair, [&](Operation *op) -> StringRef { return core.contains(op) ? "core" : ""; });
}

ValueSet saveSegmentInputs(const FragmentPair &pair, int64_t inFlight) {
  if (inFlight > 1)
    return {};
  Segments segments(pair);
  std::vector<unsigned> cuts = segments.findCuts().front();
  ValueSet saved = segments.findCrossing(cuts);
  for (const PlacedValue &value : segments.getValues())
    if (value.isResidual && (cuts.empty() || value.made >= cuts.back()))
      saved.insert(value.value);
  return saved;
}

} // namespace par
