// Outlines the groups of a block into kernels, one for each distinct body, and replaces them by launches. Other ops
// keep their order; a group is launched at its anchor, or earlier if its result is needed.
#include "Groups.h"
#include "par/Phases/Kernels/Passes.h"

#include <map>

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_FORMKERNELSPASS
#include "par/Phases/Kernels/Passes.h.inc"

namespace {

/// The kernels of a module, one for each body.
class KernelTable {
public:
  explicit KernelTable(ModuleOp module) : module(module) {}

  using Key = std::vector<const void *>;
  FlatSymbolRefAttr get(const Group &group);

private:
  FlatSymbolRefAttr build(const Group &group);

  ModuleOp module;
  std::map<Key, FlatSymbolRefAttr> byKey;
  llvm::StringMap<FlatSymbolRefAttr> known;
  llvm::StringMap<unsigned> counts;
};

/// Puts a block's groups into kernels: ops that stay keep their order, launches stand where their anchors stood.
class KernelOutliner {
public:
  KernelOutliner(BlockOp block, bool gpu, KernelTable &table)
      : body(&block.getBody().front()), table(table), groups(formGroups(block, gpu)) {
    for (auto &group : groups)
      for (Operation *op : group->ops)
        groupOf[op] = group.get();
  }

  void run();

private:
  void launch(Group *group);
  void place(Operation *op);
  void placeUpTo(Operation *op);
  void demand(Value value);

  Block *body;
  /// Ops that stay, in their order, and the number of those reached.
  SmallVector<Operation *> fixed;
  size_t reached = 0;
  KernelTable &table;
  std::vector<std::unique_ptr<Group>> groups;
  llvm::DenseMap<Operation *, Group *> groupOf;
  llvm::DenseSet<void *> done;
  IRMapping mapping;
};

} // namespace

/// All that buildKernel's text follows from, locations left out: groups of one key have one kernel, which is then
/// neither built nor printed again. Empty for ops with regions.
static KernelTable::Key keyOf(const Group &group) {
  KernelTable::Key key;
  llvm::DenseMap<Value, size_t> numbers;
  auto define = [&](Value value) {
    numbers.try_emplace(value, numbers.size());
    key.push_back(value.getType().getAsOpaquePointer());
  };
  auto mark = [&](size_t number) { key.push_back(reinterpret_cast<const void *>(number)); };
  auto use = [&](Value value) { mark(numbers.lookup(value)); };
  mark(group.arguments.size());
  llvm::for_each(group.arguments, define);
  key.push_back(StringAttr::get(group.anchor->getContext(), group.implementation).getAsOpaquePointer());
  for (Operation *op : group.body) {
    if (op->getNumRegions() > 0)
      return {};
    key.push_back(op->getName().getAsOpaquePointer());
    key.push_back(op->getAttrDictionary().getAsOpaquePointer());
    mark(op->getNumOperands());
    llvm::for_each(op->getOperands(), use);
    llvm::for_each(op->getResults(), define);
  }
  mark(group.results.size());
  llvm::for_each(group.results, use);
  for (auto [result, argument] : group.tied)
    use(result), use(argument);
  return key;
}

FlatSymbolRefAttr KernelTable::get(const Group &group) {
  Key key = keyOf(group);
  if (auto same = byKey.find(key); same != byKey.end())
    return same->second;
  FlatSymbolRefAttr kernel = build(group);
  if (!key.empty())
    byKey[std::move(key)] = kernel;
  return kernel;
}

FlatSymbolRefAttr KernelTable::build(const Group &group) {
  // Programs come after the kernels that they launch.
  OpBuilder builder(module.getContext());
  OwningOpRef<KernelOp> kernel(buildKernel(builder, group));
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().useLocalScope().elideLargeResourceString(1 << 30));
  auto [place, fresh] = known.try_emplace(text);
  if (fresh) {
    std::string name = group.anchor->getName().stripDialect().str();
    name = (name + "." + Twine(counts[name]++)).str();
    kernel->setSymName(name);
    place->second = FlatSymbolRefAttr::get(module.getContext(), name);
    auto programs = module.getOps<ProgramOp>();
    module.insert(programs.empty() ? module.getBody()->end() : Block::iterator(*programs.begin()), kernel.release());
  }
  return place->second;
}

void KernelOutliner::place(Operation *op) {
  if (!done.insert(op).second)
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    demand(operand.get());
    operand.set(mapping.lookupOrDefault(operand.get()));
  }
  op->moveBefore(body, body->end());
}

/// Ops that stay keep their order. Ops before `op` depend on no group that needs `op`: see Fusion.cpp.
void KernelOutliner::placeUpTo(Operation *op) {
  while (!done.contains(op))
    place(fixed[reached++]);
}

void KernelOutliner::demand(Value value) {
  Operation *source = value.getDefiningOp();
  if (done.contains(source))
    return; // it stands after all that is not placed, which a search for earlier stores would walk over
  if (Group *group = groupOf.lookup(source))
    launch(group);
  else if (isEarlyLoad(source))
    place(source);
  else if (source && !isKernelOp(source))
    placeUpTo(source); // where one op of the group is read before this, which another op of the group reads
}

void KernelOutliner::launch(Group *group) {
  if (!done.insert(group).second)
    return;
  SmallVector<Value> arguments;
  for (Value argument : group->arguments) {
    demand(argument);
    arguments.push_back(mapping.lookupOrDefault(argument));
  }
  auto builder = OpBuilder::atBlockEnd(body);
  auto launch = LaunchOp::create(builder, group->anchor->getLoc(), TypeRange(ValueRange(group->results)),
                                 table.get(*group), arguments);
  mapping.map(group->results, launch.getResults());
}

void KernelOutliner::run() {
  SmallVector<Operation *> ops = llvm::map_to_vector(*body, [](Operation &op) { return &op; });
  llvm::copy_if(ops, std::back_inserter(fixed), [](Operation *op) { return !isKernelOp(op); });
  for (Operation *op : ops) {
    Group *group = groupOf.lookup(op);
    if (!isKernelOp(op))
      placeUpTo(op);
    else if (group && group->anchor == op)
      launch(group);
  }
  for (Operation *op : llvm::reverse(ops))
    if (isKernelOp(op))
      op->erase();
}

/// Folds the convert of a constant: else kernels of many layers would share its result.
static void roundConstants(BlockOp block) {
  for (auto convert : llvm::make_early_inc_range(block.getOps<ConvertOp>())) {
    auto constant = convert.getOperand().getDefiningOp<ConstantOp>();
    auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
    auto to = dyn_cast<FloatType>(convert.getType().getElementType());
    if (!splat || !isa<FloatType>(splat.getElementType()) || !to)
      continue;
    APFloat value = splat.getSplatValue<APFloat>();
    bool inexact;
    value.convert(to.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
    OpBuilder builder(convert);
    Value rounded = ConstantOp::create(builder, convert.getLoc(), DenseElementsAttr::get(convert.getType(), value));
    convert.replaceAllUsesWith(rounded);
    convert.erase();
  }
}

namespace {
struct FormKernelsPass : impl::FormKernelsPassBase<FormKernelsPass> {
  using FormKernelsPassBase::FormKernelsPassBase;

  void runOnOperation() override {
    KernelTable table(getOperation());
    bool gpu = device == "cuda";
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>()) {
        if (gpu)
          roundConstants(block);
        KernelOutliner(block, gpu, table).run();
      }
  }
};
} // namespace

} // namespace par
