// Groups of ops that become one kernel: absorbing producers that are free to recompute, accumulating into and filling
// in place, and building the kernel. `formGroups` calls library and builtin forms first, then fusion.
#include "Groups.h"
#include "JoinContracted.h"
#include "LastConvolution.h"
#include "PaddedRows.h"
#include "RowWrites.h"
#include "par/Phases/Kernels/Fill.h"
#include "par/Phases/Kernels/KernelGroups.h"

using namespace mlir;

namespace par {

bool isKernelOp(Operation *op) { return isTensorOp(op) || isa<AxisIndexOp>(op); }

/// A convert from bf16 or f16 is recomputed at each use: only its operand is stored.
static bool widens(Operation *op) {
  auto convert = dyn_cast<ConvertOp>(op);
  if (!convert)
    return false;
  auto from = dyn_cast<FloatType>(convert.getOperand().getType().getElementType()),
       to = dyn_cast<FloatType>(convert.getType().getElementType());
  return from && to && from.getWidth() < 32 && to.getWidth() == 32;
}

bool isFree(Operation *op) {
  return isKernelOp(op) && (op->hasTrait<OpTrait::ConstantLike>() || widens(op) || dropsPadding(op) ||
                            isa<IotaOp, AxisIndexOp, BroadcastInDimOp, ReshapeOp>(op));
}

bool isEarlyLoad(Operation *op) {
  auto load = dyn_cast_or_null<LoadOp>(op);
  if (!load)
    return false;
  FlatSymbolRefAttr buffer = load.getBufferAttr();
  for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode())
    if (auto store = dyn_cast<StoreOp>(before); store && store.getBufferAttr() == buffer)
      return false;
  return true;
}

/// True if the value, perhaps reduced over ranks on the way, is stored to the buffer.
static bool isStoredTo(Value value, StringRef buffer) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    if (auto store = dyn_cast<StoreOp>(use.getOwner()))
      return store.getBuffer() == buffer;
    auto reduce = dyn_cast<AllReduceOp>(use.getOwner());
    return reduce && isStoredTo(reduce->getResult(use.getOperandNumber()), buffer);
  });
}

AddOp findAccumulation(Value value, Value &accumulator, IsTaken isTaken) {
  auto add = value.hasOneUse() ? dyn_cast<AddOp>(*value.getUsers().begin()) : AddOp();
  if (!add || add.getLhs() == add.getRhs())
    return {};
  accumulator = add.getLhs() == value ? add.getRhs() : add.getLhs();
  Operation *source = accumulator.getDefiningOp();
  if (!source || !accumulator.hasOneUse())
    return {};
  if (isTaken(source) && source->isBeforeInBlock(value.getDefiningOp()))
    return add;
  auto load = dyn_cast<LoadOp>(source);
  if (!load || !isEarlyLoad(load))
    return {};
  StringRef buffer = load.getBuffer();
  bool goesBack =
      isStoredTo(add.getResult(), buffer) || // nearly always: the other answer looks at each store of the block
      llvm::any_of(add->getBlock()->getOps<StoreOp>(), [&](StoreOp store) { return store.getBuffer() == buffer; });
  return goesBack ? add : AddOp();
}

void Group::close(IsTaken isTaken) {
  llvm::SetVector<Value> read;
  llvm::SmallPtrSet<Operation *, 16> own(ops.begin(), ops.end()), done;
  auto visit = [&](auto &self, Operation *op) -> void {
    if (!done.insert(op).second)
      return;
    for (Value operand : op->getOperands()) {
      Operation *source = operand.getDefiningOp();
      bool computes = source && (own.contains(source) || clones.contains(source) ||
                                 (clonesFree && isFree(source) && !isTaken(source)));
      if (computes)
        self(self, source);
      else
        read.insert(operand);
    }
    body.push_back(op);
  };
  body.clear();
  for (Operation *op : ops)
    visit(visit, op);
  arguments = read.takeVector();
}

void Group::absorb(Operation *op, IsTaken isTaken) {
  clones.insert(op);
  for (Operation *each : body)
    if (!llvm::is_contained(ops, each))
      clones.insert(each);
  close(isTaken);
}

void tieAccumulator(Group &group) {
  // No element may be read after its place is written: one result, element by element.
  bool elementwise = llvm::all_of(group.ops, [&](Operation *op) {
    return op->hasTrait<OpTrait::Elementwise>() && group.results.size() == 1 &&
           getTensorType(op->getResult(0).getType()).getShape() == getTensorType(group.results[0].getType()).getShape();
  });
  if (!elementwise)
    return;
  for (Value argument : group.arguments) {
    auto load = argument.getDefiningOp<LoadOp>();
    if (!load || !argument.hasOneUse() || !llvm::is_contained(group.ops, *argument.getUsers().begin()))
      continue;
    for (Value result : group.results)
      if (result.getType() == argument.getType() && group.tied.empty() && isStoredTo(result, load.getBuffer()))
        group.tied.push_back({result, argument});
  }
}

void fillInPlace(Group &group) {
  if (group.body.size() != 1 || group.results.size() != 1 || !addsAtEnd(group.body.front()))
    return;
  group.implementation = "fill";
  group.tied = {{group.results[0], group.arguments[0]}};
}

KernelOp buildKernel(OpBuilder &builder, const Group &group) {
  auto type = builder.getFunctionType(TypeRange(ValueRange(group.arguments)), TypeRange(ValueRange(group.results)));
  Location loc = group.anchor->getLoc();
  auto kernel = KernelOp::create(builder, loc, "kernel", type, group.implementation);
  if (kernel.getBody().empty())
    kernel.getBody().emplaceBlock().addArguments(type.getInputs(), SmallVector<Location>(type.getNumInputs(), loc));
  OpBuilder inner = OpBuilder::atBlockEnd(&kernel.getBlock());
  if (!kernel.getBlock().empty())
    inner.setInsertionPoint(&kernel.getBlock(), kernel.getBlock().begin());
  IRMapping mapping;
  mapping.map(group.arguments, kernel.getBody().getArguments());
  for (Operation *op : group.body)
    inner.clone(*op, mapping);
  SmallVector<Value> values = llvm::map_to_vector(group.results, [&](Value v) { return mapping.lookup(v); });
  ReturnOp::create(inner, loc, values);
  SmallVector<int64_t> tied(group.results.size(), -1);
  for (auto [result, argument] : group.tied)
    tied[llvm::find(group.results, result) - group.results.begin()] =
        llvm::find(group.arguments, argument) - group.arguments.begin();
  if (!group.tied.empty())
    kernel.setTied(tied);
  return kernel;
}

namespace {

/// Forms the groups of one block.
class GroupFormer {
public:
  GroupFormer(BlockOp block, bool gpu) : block(block), gpu(gpu) {}

  std::vector<std::unique_ptr<Group>> run();

private:
  void add(std::unique_ptr<Group> group);
  /// Makes a group of its own for the free op that defines a value used outside kernels.
  void require(Value value);
  void dropUnread();

  BlockOp block;
  bool gpu;
  std::vector<std::unique_ptr<Group>> groups;
  llvm::DenseMap<Operation *, Group *> groupOf;
  llvm::DenseSet<Value> arguments; ///< of groups that calls and builtins are
};

} // namespace

void GroupFormer::add(std::unique_ptr<Group> group) {
  for (Operation *op : group->ops)
    groupOf[op] = group.get();
  arguments.insert_range(group->arguments);
  groups.push_back(std::move(group));
}

static std::unique_ptr<Group> formSingle(Operation *op, IsTaken isTaken) {
  auto group = std::make_unique<Group>();
  group->ops.push_back(op);
  group->anchor = op;
  group->clonesFree = true;
  group->close(isTaken);
  return group;
}

void GroupFormer::require(Value value) {
  Operation *op = value.getDefiningOp();
  if (op && isKernelOp(op) && !groupOf.contains(op))
    add(formSingle(op, [&](Operation *other) { return groupOf.contains(other); }));
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

std::vector<std::unique_ptr<Group>> GroupFormer::run() {
  auto isTaken = [&](Operation *op) { return groupOf.contains(op); };
  if (gpu)
    roundConstants(block);
  arrangeAttention(block);
  splitConcats(block);
  if (gpu) {
    roundRowsFirst(block);
    roundForLibrary(block);
  }
  joinContracted(block, /*narrow=*/gpu);
  for (auto dot : block.getOps<DotOp>())
    if (auto group = formMatmul(dot, /*narrow=*/gpu, isTaken))
      add(std::move(group));
  for (Operation &op : block.getBody().front()) {
    if (!isKernelOp(&op) || groupOf.contains(&op) || isFree(&op))
      continue;
    auto group = formAttention(&op, isTaken, [&](Value value) { return arguments.contains(value); });
    if (!group && !gpu)
      group = formRowWrite(&op, isTaken);
    if (group || (group = formLastConvolution(&op, isTaken)) || (group = formBuiltin(&op, gpu, isTaken)))
      add(std::move(group));
  }
  if (gpu) {
    fuseBiasGradients(block, groupOf, groups);
    splitSums(block, isTaken);
  }
  fuseGroups(block, gpu, groupOf, groups);
  splitWideGroups(gpu, groupOf, groups);
  if (gpu)
    refineForGpu(block, groupOf, groups);
  for (Operation &op : block.getBody().front())
    if (!isKernelOp(&op))
      for (Value operand : op.getOperands())
        require(operand);
  for (size_t index = 0; index < groups.size(); ++index)
    for (Value argument : SmallVector<Value>(groups[index]->arguments))
      require(argument);
  dropUnread();
  if (gpu)
    fuseEpilogues(block, groupOf, groups);
  return std::move(groups);
}

/// Keeps only results that other groups or ops read, and removes groups without any.
void GroupFormer::dropUnread() {
  SmallVector<Value> pending;
  for (Operation &op : block.getBody().front())
    if (!isKernelOp(&op))
      pending.append(op.operand_begin(), op.operand_end());
  llvm::DenseSet<Value> read;
  llvm::DenseSet<Group *> live;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Group *group = groupOf.lookup(value.getDefiningOp());
    if (read.insert(value).second && group && live.insert(group).second)
      pending.append(group->arguments.begin(), group->arguments.end());
  }
  llvm::erase_if(groups, [&](const std::unique_ptr<Group> &group) { return !live.contains(group.get()); });
  for (auto &group : groups) {
    if (group->implementation != "generated")
      continue; // all that the call writes
    for (Operation *op : group->ops)
      for (Value result : op->getResults())
        if (read.contains(result))
          group->results.push_back(result);
    tieAccumulator(*group);
    fillInPlace(*group);
  }
}

std::vector<std::unique_ptr<Group>> formGroups(BlockOp block, bool gpu) { return GroupFormer(block, gpu).run(); }

std::vector<KernelGroup> groupKernels(BlockOp block, const std::string &device) {
  std::vector<KernelGroup> kernels;
  for (std::unique_ptr<Group> &group : formGroups(block, device == "cuda"))
    kernels.push_back({std::move(group->body), std::move(group->arguments), std::move(group->results),
                       std::move(group->tied), std::move(group->implementation)});
  return kernels;
}

} // namespace par
