// Gives every value of a program a buffer in one pass over each block: the buffer that it is stored to if that is free,
// its operand's buffer for in-place ops, else a scratch buffer. A loaded value that is overwritten before its last use
// is copied.
#include "Touches.h"
#include "Views.h"
#include "par/Dialect/Beside.h"
#include "par/Phases/Memory/Arena.h"
#include "par/Phases/Memory/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_ASSIGNBUFFERSPASS
#include "par/Phases/Memory/Passes.h.inc"

namespace {

/// Puts one block into the form where every result is stored at once and loaded where it is used.
class Assigner {
public:
  Assigner(BlockOp block, SymbolTable &names, const SymbolTable &kernels, const llvm::DenseSet<Operation *> &grown)
      : block(block), names(names), kernels(kernels), grown(grown), touches(block), builder(block) {}

  void run();

private:
  BufferOp makeScratch(RankedTensorType type);
  StoreOp makeStore(Location where, Value value, StringRef buffer);
  LoadOp makeLoad(Location where, Type type, StringRef buffer);
  void erase(StoreOp store);
  void assign(Operation *op);
  BufferOp chooseInPlace(Operation *op, unsigned operand, OpResult result);
  BufferOp chooseFresh(Operation *op, OpResult result);
  StoreOp findStore(Value value);
  StoreOp findStoreOfView(Value value);
  RankedTensorType roomFor(Value value);
  bool canFill(Operation *op, BufferOp buffer);
  bool isTouchedLater(Operation *from, BufferOp buffer, Operation *except);
  void see(Operation *view, LoadOp load);
  void assignView(Operation *op);
  void seeLoads();
  void keepLoads();

  BlockOp block;
  SymbolTable &names; ///< of the program
  const SymbolTable &kernels;
  const llvm::DenseSet<Operation *> &grown; ///< buffers of state with room after their elements
  BlockTouches touches;                     ///< of the block, kept up to date
  OpBuilder builder;
  unsigned scratches = 0;
};

} // namespace

static BufferOp lookup(const SymbolTable &names, FlatSymbolRefAttr name) {
  return cast<BufferOp>(names.lookup(name.getAttr()));
}

BufferOp getBuffer(Value value, const SymbolTable &names) {
  if (auto load = value.getDefiningOp<LoadOp>())
    return lookup(names, load.getBufferAttr());
  for (Operation *user : value.getUsers())
    if (auto store = dyn_cast<StoreOp>(user))
      return lookup(names, store.getBufferAttr());
  return {};
}

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static bool fits(RankedTensorType type, BufferOp buffer) {
  return type.getNumElements() <= buffer.getTensorType().getNumElements();
}

BufferOp Assigner::makeScratch(RankedTensorType type) {
  OpBuilder atProgram(block);
  std::string name = (block.getSymName() + ".t" + Twine(scratches++)).str();
  auto scratch = BufferOp::create(atProgram, block.getLoc(), StringRef(name), BufferKind::temp, StringAttr(),
                                  /*sliced=*/false, SlotIndex::none, 1, type, TypeAttr(), DenseI64ArrayAttr());
  names.insert(scratch);
  return scratch;
}

StoreOp Assigner::makeStore(Location where, Value value, StringRef buffer) {
  auto store = StoreOp::create(builder, where, value, buffer);
  touches.add(store);
  return store;
}

LoadOp Assigner::makeLoad(Location where, Type type, StringRef buffer) {
  auto load = LoadOp::create(builder, where, type, buffer);
  touches.add(load);
  return load;
}

void Assigner::erase(StoreOp store) {
  touches.remove(store);
  store.erase();
}

SmallVector<int64_t> getTiedOperands(Operation *op, const SymbolTable &kernels) {
  SmallVector<int64_t> tied(op->getNumResults(), -1);
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    auto kernel = cast<KernelOp>(kernels.lookup(launch.getKernelAttr().getAttr()));
    if (kernel.getTied())
      tied.assign(kernel.getTied()->begin(), kernel.getTied()->end());
  } else if (isa<AllReduceOp, WorldAllReduceOp, DoneOp>(op)) {
    for (auto [index, operand] : llvm::enumerate(tied))
      operand = index;
  }
  return tied;
}

/// Replaces a view by a load of the same buffer under the view's shape.
void Assigner::see(Operation *view, LoadOp load) {
  builder.setInsertionPointAfter(load);
  Value seen = makeLoad(view->getLoc(), view->getResult(0).getType(), load.getBuffer());
  view->getResult(0).replaceAllUsesWith(seen);
  view->erase();
}

void Assigner::assignView(Operation *op) {
  auto load = op->getOperand(0).getDefiningOp<LoadOp>();
  for (Operation *user : llvm::make_early_inc_range(op->getResult(0).getUsers()))
    if (auto store = dyn_cast<StoreOp>(user); store && store.getBuffer() == load.getBuffer())
      erase(store); // it lies there already
  see(op, load);
}

/// Views of values that other blocks stored become loads as well, so that a value is copied before it is overwritten.
void Assigner::seeLoads() {
  for (Operation &op : llvm::make_early_inc_range(block.getBody().front()))
    if (isView(&op, kernels))
      if (auto load = op.getOperand(0).getDefiningOp<LoadOp>())
        see(&op, load);
}

/// The first store of a value that is only seen under other shapes.
StoreOp Assigner::findStoreOfView(Value value) {
  StoreOp first;
  for (Operation *user : value.getUsers())
    if (isView(user, kernels))
      if (StoreOp store = findStore(user->getResult(0)); store && (!first || store->isBeforeInBlock(first)))
        first = store;
  return first;
}

/// The first store of a value; if it has none, of a reshape of it, or of the result of its only user that is computed
/// in place.
StoreOp Assigner::findStore(Value value) {
  StoreOp first;
  for (Operation *user : value.getUsers())
    if (auto store = dyn_cast<StoreOp>(user))
      if (!first || store->isBeforeInBlock(first))
        first = store;
  if (!first)
    first = findStoreOfView(value);
  if (first || !value.hasOneUse())
    return first;
  OpOperand &use = *value.getUses().begin();
  SmallVector<int64_t> tied = getTiedOperands(use.getOwner(), kernels);
  auto taken = llvm::find(tied, static_cast<int64_t>(use.getOperandNumber()));
  return taken == tied.end() ? first : findStore(use.getOwner()->getResult(taken - tied.begin()));
}

/// The buffer type for a value: larger than the value if an op in place appends to it.
RankedTensorType Assigner::roomFor(Value value) {
  RankedTensorType room = typeOf(value);
  for (OpOperand &use : value.getUses()) {
    SmallVector<int64_t> tied = getTiedOperands(use.getOwner(), kernels);
    auto taken = llvm::find(tied, static_cast<int64_t>(use.getOperandNumber()));
    if (taken == tied.end())
      continue;
    RankedTensorType more = roomFor(use.getOwner()->getResult(taken - tied.begin()));
    if (more.getNumElements() > room.getNumElements())
      room = more;
  }
  return room;
}

/// Whether an op may append in place to a buffer of state with room: no op stores to the buffer before the result is
/// used.
bool Assigner::canFill(Operation *op, BufferOp buffer) {
  if (!grown.contains(buffer) || !isFill(op, kernels) || !fits(typeOf(op->getResult(0)), buffer))
    return false;
  auto isBefore = [&](StoreOp store) {
    Operation *writer = store.getOperand().getDefiningOp();
    writer = isa_and_nonnull<LoadOp>(writer) ? store : writer;
    return llvm::all_of(op->getUsers(), [&](Operation *user) { return writer && user->isBeforeInBlock(writer); });
  };
  return llvm::all_of(touches.stores(buffer.getSymName()), isBefore);
}

/// True if the buffer is loaded or stored after `from`, or a value loaded from it before is used there.
bool Assigner::isTouchedLater(Operation *from, BufferOp buffer, Operation *except) {
  return llvm::any_of(touches.loads(buffer.getSymName()), [&](LoadOp load) {
    return llvm::any_of(load->getUsers(),
                        [&](Operation *user) { return user != except && from->isBeforeInBlock(user); });
  });
}

/// Copies a loaded value at its load if it is used after a store to its buffer.
void Assigner::keepLoads() {
  for (Operation &op : llvm::make_early_inc_range(block.getBody().front())) {
    auto load = dyn_cast<LoadOp>(op);
    if (!load)
      continue;
    bool clobbered = false;
    for (StoreOp store : touches.stores(load.getBuffer())) {
      if (store.getOperand() == load.getResult() || !load->isBeforeInBlock(store))
        continue;
      // The op that writes the buffer may be as early as the value's definition.
      Operation *writer = store.getOperand().getDefiningOp();
      for (Operation *user : load->getUsers())
        clobbered |= writer && writer->isBeforeInBlock(user);
    }
    if (!clobbered)
      continue;
    BufferOp scratch = makeScratch(load.getType());
    builder.setInsertionPointAfter(load);
    StoreOp store = makeStore(load.getLoc(), load, scratch.getSymName());
    LoadOp again = makeLoad(load.getLoc(), load.getType(), scratch.getSymName());
    load.getResult().replaceAllUsesExcept(again, store);
  }
}

/// Buffer of an in-place result: the operand's buffer if its old bytes are not needed any more, else a new one to which
/// the operand is copied first.
BufferOp Assigner::chooseInPlace(Operation *op, unsigned operand, OpResult result) {
  Value old = op->getOperand(operand);
  BufferOp buffer = getBuffer(old, names);
  if (isa<DoneOp>(op)) // a copy before it would read bytes that the collective has not written yet
    return buffer;
  StoreOp store = findStore(result);
  bool scratch =
      buffer.getKind() == BufferKind::temp && buffer.getSymName().starts_with(block.getSymName().str() + ".t");
  bool same = store && store.getBuffer() == buffer.getSymName();
  // Under another shape its elements are read at other places than they are written.
  bool seenElsewhere = llvm::any_of(op->getOperands(), [&](Value other) {
    return other.getType() != old.getType() && other.getDefiningOp<LoadOp>() && getBuffer(other, names) == buffer;
  });
  bool free = ((scratch || same) && fits(typeOf(result), buffer)) || canFill(op, buffer);
  if (free && !seenElsewhere && !isTouchedLater(op, buffer, store))
    return buffer;
  BufferOp target = chooseFresh(op, result);
  builder.setInsertionPoint(op);
  makeStore(op->getLoc(), old, target.getSymName());
  Value copy = makeLoad(op->getLoc(), old.getType(), target.getSymName());
  op->setOperand(operand, copy);
  return target;
}

/// Storage of a new result: the buffer that it is stored to, if that is free from here to there, else
/// scratch.
BufferOp Assigner::chooseFresh(Operation *op, OpResult result) {
  StoreOp store = findStore(result);
  BufferOp buffer = store ? lookup(names, store.getBufferAttr()) : BufferOp();
  if (!buffer || !fits(typeOf(result), buffer))
    return makeScratch(roomFor(result));
  auto isBetween = [&](StoreOp write) { return op->isBeforeInBlock(write) && write->isBeforeInBlock(store); };
  // Old bytes that this op itself or a later one still reads.
  auto isRead = [&](LoadOp load) {
    return llvm::any_of(load->getUsers(), [&](Operation *user) {
      return user == op || (op->isBeforeInBlock(user) && load->isBeforeInBlock(store));
    });
  };
  StringRef name = buffer.getSymName();
  bool isFree = llvm::none_of(touches.stores(name), isBetween) && llvm::none_of(touches.loads(name), isRead);
  return isFree ? buffer : makeScratch(roomFor(result));
}

void Assigner::assign(Operation *op) {
  SmallVector<int64_t> tied = getTiedOperands(op, kernels);
  for (OpResult result : op->getResults()) {
    int64_t operand = tied[result.getResultNumber()];
    BufferOp buffer = operand >= 0 ? chooseInPlace(op, operand, result) : chooseFresh(op, result);
    builder.setInsertionPointAfter(op);
    StoreOp store = makeStore(op->getLoc(), result, buffer.getSymName());
    builder.setInsertionPointAfter(store);
    Value loaded = makeLoad(op->getLoc(), result.getType(), buffer.getSymName());
    for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
      auto other = dyn_cast<StoreOp>(use.getOwner());
      if (other == store)
        continue;
      if (other && other.getBuffer() == buffer.getSymName())
        erase(other); // it lies there already
      else
        use.set(loaded);
    }
  }
}

void Assigner::run() {
  seeLoads();
  keepLoads();
  SmallVector<Operation *> ops;
  for (Operation &op : block.getBody().front())
    if (!isa<LoadOp>(op) && op.getNumResults() > 0)
      ops.push_back(&op);
  for (Operation *op : ops)
    if (isView(op, kernels))
      assignView(op);
    else
      assign(op);
  for (Operation &op : llvm::make_early_inc_range(block.getBody().front()))
    if (isa<LoadOp>(op) && op.use_empty())
      op.erase();
}

namespace {
struct AssignBuffersPass : impl::AssignBuffersPassBase<AssignBuffersPass> {
  using AssignBuffersPassBase::AssignBuffersPassBase;

  /// Erases kernels that are launched no more, as all their launches were views.
  void eraseUnused() {
    llvm::DenseSet<Attribute> used;
    getOperation().walk([&](LaunchOp launch) { used.insert(launch.getKernelAttr().getAttr()); });
    for (KernelOp kernel : llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (!used.contains(kernel.getSymNameAttr()))
        kernel.erase();
  }

  void runOnOperation() override {
    SymbolTable kernels(getOperation());
    llvm::DenseSet<Operation *> grown;
    if (growState)
      grown = growBuffersOfState(getOperation(), kernels);
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      SymbolTable names(program);
      for (BlockOp block : llvm::to_vector(program.getOps<BlockOp>()))
        Assigner(block, names, kernels, grown).run();
    }
    eraseUnused();
  }
};
} // namespace

} // namespace par
