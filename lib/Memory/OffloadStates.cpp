#include "par/Dialect/Space.h"
#include "par/Memory/Arena.h"
#include "par/Memory/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_OFFLOADSTATESPASS
#include "par/Memory/Passes.h.inc"

namespace {

/// What one block does with one state.
struct Use {
  BufferOp state;
  SmallVector<LoadOp> loads;
  SmallVector<StoreOp> stores;
  Operation *first = nullptr, *last = nullptr; ///< ops that read or write its bytes
};

/// The copies of one program.
class Offloader {
public:
  explicit Offloader(ProgramOp program) : program(program), names(program) {}

  void run();

private:
  void moveState();
  SmallVector<Use> findUses(BlockOp block);
  void bring(BlockOp block);
  BufferOp onDevice(BufferOp state);

  ProgramOp program;
  SymbolTable names;
  llvm::DenseMap<Operation *, BufferOp> brought; ///< by state: where it lies on the device for a while
};

} // namespace

/// The optimizer's states; counters are scalars that kernels read everywhere.
void Offloader::moveState() {
  ModuleOp module = program->getParentOfType<ModuleOp>();
  for (BufferOp buffer : program.getOps<BufferOp>()) {
    if (buffer.getKind() != BufferKind::state || !buffer.getOf())
      continue;
    auto variable = module.lookupSymbol<VariableOp>(*buffer.getOf());
    if (variable && variable.getKind() == VariableKind::state)
      buffer->setAttr(hostAttr, UnitAttr::get(program.getContext()));
  }
}

BufferOp Offloader::onDevice(BufferOp state) {
  BufferOp &known = brought[state];
  if (known)
    return known;
  OpBuilder builder(program.getContext());
  builder.setInsertionPointAfter(state);
  known = BufferOp::create(
      builder, state.getLoc(), (state.getSymName() + ".dev").str(), BufferKind::temp, StringAttr(),
      /*sliced=*/false, SlotIndex::none, 1, state.getTensorType(), TypeAttr(), DenseI64ArrayAttr());
  names.insert(known);
  return known;
}

/// In the order of their first use.
SmallVector<Use> Offloader::findUses(BlockOp block) {
  llvm::MapVector<Operation *, Use> uses;
  auto touch = [](Use &use, Operation *op) {
    if (!use.first || op->isBeforeInBlock(use.first))
      use.first = op;
    if (!use.last || use.last->isBeforeInBlock(op))
      use.last = op;
  };
  for (Operation &op : block.getBody().front()) {
    auto load = dyn_cast<LoadOp>(op);
    auto store = dyn_cast<StoreOp>(op);
    if (!load && !store)
      continue;
    auto state = names.lookup<BufferOp>(load ? load.getBuffer() : store.getBuffer());
    if (!isOnHost(state))
      continue;
    Use &use = uses[state];
    use.state = state;
    if (store) {
      use.stores.push_back(store);
      touch(use, store);
      if (Operation *writer = store.getOperand().getDefiningOp(); !isa_and_nonnull<LoadOp>(writer))
        touch(use, writer); // it writes the bytes itself
      continue;
    }
    use.loads.push_back(load);
    for (Operation *user : load->getUsers())
      touch(use, user);
  }
  SmallVector<Use> result;
  for (auto &[state, use] : uses)
    if (use.first)
      result.push_back(std::move(use));
  llvm::stable_sort(result, [](const Use &a, const Use &b) {
    return a.first != b.first && a.first->isBeforeInBlock(b.first);
  });
  return result;
}

/// States that one op uses come together, beside the op before it that uses some.
void Offloader::bring(BlockOp block) {
  Operation *current = nullptr, *before = nullptr;
  for (Use &use : findUses(block)) {
    if (use.first != current) {
      before = current ? current : use.first;
      current = use.first;
    }
    BufferOp device = onDevice(use.state);
    OpBuilder builder(block.getContext());
    auto copy = [&](BufferOp from, BufferOp to) {
      Location loc = use.first->getLoc();
      Value value = LoadOp::create(builder, loc, from.getTensorType(), from.getSymName());
      StoreOp::create(builder, loc, value, to.getSymName());
    };
    if (!use.loads.empty()) {
      builder.setInsertionPoint(before);
      copy(use.state, device);
    }
    for (LoadOp load : use.loads) {
      load.setBuffer(device.getSymName());
      if (load->isBeforeInBlock(use.first)) // behind the copy
        load->moveBefore(use.first);
    }
    for (StoreOp store : use.stores)
      store.setBuffer(device.getSymName());
    if (!use.stores.empty()) {
      builder.setInsertionPointAfter(use.last);
      copy(device, use.state);
    }
  }
}

void Offloader::run() {
  moveState();
  for (BlockOp block : llvm::to_vector(program.getOps<BlockOp>()))
    bring(block);
}

namespace {
struct OffloadStatesPass : impl::OffloadStatesPassBase<OffloadStatesPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      Offloader(program).run();
  }
};
} // namespace

} // namespace par
