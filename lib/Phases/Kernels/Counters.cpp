// Forms a kernel of its own for the new value of a counter that several stages have.
#include "Counters.h"

#include "par/Dialect/VariableTable.h"

using namespace mlir;

namespace par {
namespace {

class CounterGroups {
public:
  CounterGroups(BlockOp block, IsTaken isTaken)
      : program(block->getParentOfType<ProgramOp>()), variables(program), isTaken(isTaken) {}

  bool isShared(StoreOp store);
  std::unique_ptr<Group> form(StoreOp store);

private:
  VariableOp variableOf(StoreOp store);
  bool isLeaf(Operation *op);
  void collect(Operation *op, llvm::SetVector<Operation *> &slice);

  ProgramOp program;
  VariableTable variables;
  IsTaken isTaken;
};

} // namespace

static bool isScalar(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 0;
}

/// The variable whose state the buffer is; null of other buffers.
VariableOp CounterGroups::variableOf(StoreOp store) {
  auto buffer = cast<BufferOp>(SymbolTable::lookupSymbolIn(program, store.getBufferAttr()));
  return buffer.getOfAttr() ? variables.lookup(buffer.getOfAttr()) : VariableOp();
}

bool CounterGroups::isShared(StoreOp store) {
  VariableOp variable = variableOf(store);
  return variable && variable.getKind() == VariableKind::counter && variable.getAtAttr() &&
         variable.getAtAttr().size() > 1;
}

/// Whether the value is read, not computed: others than scalars, and what goes to other ranks, which on those comes
/// from a buffer.
bool CounterGroups::isLeaf(Operation *op) {
  if (!op || !isKernelOp(op) || isTaken(op) || !op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1 ||
      !isScalar(op->getResult(0)))
    return true;
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    auto store = dyn_cast<StoreOp>(user);
    return store ? !variableOf(store) : !isKernelOp(user) && !isa<FetchOp>(user);
  });
}

void CounterGroups::collect(Operation *op, llvm::SetVector<Operation *> &slice) {
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp(); !isLeaf(source) && !slice.contains(source))
      collect(source, slice);
  slice.insert(op);
}

/// The scalars are cloned in front of the store, where nothing else reads them.
std::unique_ptr<Group> CounterGroups::form(StoreOp store) {
  Operation *last = store.getOperand().getDefiningOp();
  if (isLeaf(last))
    return nullptr;
  llvm::SetVector<Operation *> slice;
  collect(last, slice);
  auto group = std::make_unique<Group>();
  group->clonesFree = true;
  group->tiesNone = true;
  OpBuilder builder(store);
  IRMapping mapping;
  for (Operation *op : slice)
    group->ops.push_back(builder.clone(*op, mapping));
  group->anchor = group->ops.back();
  store->setOperand(0, mapping.lookup(last->getResult(0)));
  group->close(isTaken);
  return group;
}

std::vector<std::unique_ptr<Group>> formCounters(BlockOp block, IsTaken isTaken) {
  auto stores = llvm::to_vector(
      llvm::make_filter_range(block.getOps<StoreOp>(), [](StoreOp store) { return isScalar(store.getOperand()); }));
  std::vector<std::unique_ptr<Group>> groups;
  if (stores.empty())
    return groups;
  CounterGroups counters(block, isTaken);
  llvm::erase_if(stores, [&](StoreOp store) { return !counters.isShared(store); });
  for (StoreOp store : stores)
    if (auto group = counters.form(store))
      groups.push_back(std::move(group));
  return groups;
}

} // namespace par
