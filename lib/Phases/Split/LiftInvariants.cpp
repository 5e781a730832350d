// Hoists ops of a microbatch loop that depend only on constants and values from outside, if they compute (layout ops
// stay) and their result is no larger than their inputs, within the pass's limits of bytes. If a stage's values exceed
// the limit none is hoisted, so that equal layers stay equal. Masters, f32 parameters that ranks have shards of, are
// always rounded outside the loop.
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Phases/Split/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_LIFTINVARIANTSPASS
#include "par/Phases/Split/Passes.h.inc"

/// Whether the op rounds the value read of a parameter of at least `masters` elements, or of a copy of one.
static bool roundsMaster(Operation *op, int64_t masters) {
  auto convert = dyn_cast<ConvertOp>(op);
  auto read = convert ? convert.getOperand().getDefiningOp<ReadOp>() : ReadOp();
  if (!read || masters < 0 || getByteSize(convert.getType()) >= getByteSize(read.getType()))
    return false;
  auto variable = SymbolTable::lookupNearestSymbolFrom<VariableOp>(read, read.getVariableAttr());
  bool ofParameter = variable.getKind() == VariableKind::parameter || variable.getKind() == VariableKind::copy;
  return ofParameter && variable.getTensorType().getNumElements() >= masters;
}

namespace {

/// Finds ops of one loop that depend only on values from outside, and lifts those whose results are worth keeping.
class InvariantHoisting {
public:
  InvariantHoisting(LoopOp loop, int64_t minBytes, int64_t maxBytes, int64_t masters)
      : loop(loop), minBytes(minBytes), maxBytes(maxBytes), masters(masters) {}

  /// `again`: the loop reads each value several times; else only masters are worth lifting.
  void run(bool again);

private:
  /// Inputs of an op into which no microbatch flows.
  struct Cone {
    llvm::SmallSetVector<Value, 2> sources; ///< values from outside the loop
    bool worth = false;
  };

  Block &body() { return loop.getBody().front(); }
  void find(bool again);
  bool isWorth(Operation *op, const Cone &cone);
  void dropWhatIsTooMuch(SmallVector<Value> &kept);
  Value lift(Value value);
  Operation *equalOutside(Operation *op);
  void eraseDead();

  LoopOp loop;
  int64_t minBytes, maxBytes;
  int64_t masters;                          ///< minimum elements of masters; negative: none
  llvm::MapVector<Operation *, Cone> cones; ///< of ops that depend only on constants and on values from outside
  IRMapping lifted;
};

} // namespace

void InvariantHoisting::find(bool again) {
  for (Operation &op : body().without_terminator()) {
    if (!isTensorOp(&op) || isa<CotangentOp>(op) || !isMemoryEffectFree(&op))
      continue;
    Cone cone;
    bool invariant = llvm::all_of(op.getOperands(), [&](Value operand) {
      if (operand.getParentBlock() != &body()) {
        cone.sources.insert(operand);
        return true;
      }
      auto known = cones.find(operand.getDefiningOp());
      if (known == cones.end())
        return false;
      cone.sources.insert(known->second.sources.begin(), known->second.sources.end());
      return true;
    });
    if (!invariant)
      continue;
    cone.worth = roundsMaster(&op, masters) || (again && isWorth(&op, cone));
    cones[&op] = std::move(cone);
  }
}

/// Ops that only move or broadcast elements are recomputed at each use. So are ops whose result needs more memory than
/// their inputs.
bool InvariantHoisting::isWorth(Operation *op, const Cone &cone) {
  bool computes = op->hasTrait<OpTrait::Elementwise>() || getCost(op).flops > 0;
  int64_t bytes = getByteSize(op->getResults());
  return computes && bytes >= minBytes && bytes <= getByteSize(cone.sources.getArrayRef());
}

/// All values of a stage or none, so equal layers stay equal; masters always.
void InvariantHoisting::dropWhatIsTooMuch(SmallVector<Value> &kept) {
  if (maxBytes <= 0)
    return;
  auto stageOf = [](Value value) { return getStage(value.getDefiningOp()).value_or(-1); };
  llvm::DenseMap<int64_t, int64_t> bytes;
  for (Value value : kept)
    bytes[stageOf(value)] += getByteSize(value.getType());
  llvm::erase_if(kept, [&](Value value) {
    return bytes[stageOf(value)] > maxBytes && !roundsMaster(value.getDefiningOp(), masters);
  });
}

/// An equal op outside, if there is one.
Operation *InvariantHoisting::equalOutside(Operation *op) {
  for (Value operand : op->getOperands())
    for (Operation *user : operand.getUsers())
      if (user != op && user->getBlock() == loop->getBlock() && user->isBeforeInBlock(op) &&
          OperationEquivalence::isEquivalentTo(op, user, OperationEquivalence::IgnoreLocations))
        return user;
  return nullptr;
}

/// The value before the loop, computed by clones of its ops.
Value InvariantHoisting::lift(Value value) {
  if (value.getParentBlock() != &body())
    return value;
  if (Value known = lifted.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    lifted.map(operand, lift(operand));
  Operation *clone = OpBuilder(loop).clone(*op, lifted);
  if (Operation *equal = equalOutside(clone)) {
    clone->erase();
    clone = equal;
    lifted.map(op->getResults(), equal->getResults());
  }
  return lifted.lookup(value);
}

void InvariantHoisting::eraseDead() {
  for (auto &[op, cone] : llvm::reverse(cones))
    if (isOpTriviallyDead(op))
      op->erase();
}

void InvariantHoisting::run(bool again) {
  find(again);
  // Lifts the last ops of such chains; ops that only they need go with them. A sum over microbatches stays in the loop.
  auto staysInside = [&](Operation *user) {
    auto cone = cones.find(user);
    return (cone == cones.end() || !cone->second.worth) && !user->hasTrait<OpTrait::IsTerminator>();
  };
  SmallVector<Value> kept;
  for (auto &[op, cone] : cones)
    for (Value result : op->getResults())
      if (cone.worth && llvm::any_of(result.getUsers(), staysInside))
        kept.push_back(result);
  dropWhatIsTooMuch(kept);
  for (Value value : kept)
    value.replaceUsesWithIf(lift(value), [&](OpOperand &use) { return staysInside(use.getOwner()); });
  eraseDead();
}

/// One microbatch without backward uses everything once.
static bool usesAgain(LoopOp loop) {
  return loop.getCount() > 1 || !loop.getBody().front().getOps<CotangentOp>().empty();
}

namespace {
struct LiftInvariantsPass : impl::LiftInvariantsPassBase<LiftInvariantsPass> {
  using LiftInvariantsPassBase::LiftInvariantsPassBase;

  void runOnOperation() override {
    for (StepOp step : getOperation().getOps<StepOp>())
      for (LoopOp loop : llvm::to_vector(step.getBlock().getOps<LoopOp>()))
        if (bool again = usesAgain(loop); again || masters >= 0)
          InvariantHoisting(loop, minBytes, maxBytes, masters).run(again);
  }
};
} // namespace

} // namespace par
