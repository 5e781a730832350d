// Moves variables, and activations kept for backward, to host memory. Each stay on the device (consecutive touches of a
// block, ended by a gap of `far` ops) gets a copy in before and, if it is written, a copy out after.
#include "MadeOfParameters.h"
#include "par/Dialect/Beside.h"
#include "par/Dialect/Space.h"
#include "par/Dialect/Spread.h"
#include "par/Phases/Memory/Arena.h"
#include "par/Phases/Memory/Passes.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_OFFLOADPASS
#include "par/Phases/Memory/Passes.h.inc"

namespace {

/// Accesses of one op of a block to one buffer.
struct Touch {
  Operation *op;   ///< reads or writes them
  Operation *last; ///< `op`, or the last store of its results
  SmallVector<LoadOp> loads;
  SmallVector<StoreOp> stores;
};

/// A buffer of the host's memory is on the device from one touch of a block to another one.
struct Stay {
  BufferOp home;
  SmallVector<Touch> touches;
  Operation *behind = nullptr; ///< the end of the home's stay before this one

  Operation *first() const { return touches.front().op; }
  bool isRead() const { return !touches.front().loads.empty(); }
  bool isWritten() const {
    return llvm::any_of(touches, [](const Touch &touch) { return !touch.stores.empty(); });
  }
};

/// The copies of one program.
class Offloader {
public:
  Offloader(ProgramOp program, const OffloadPassOptions &options)
      : program(program), options(options), names(program) {}

  void run();

private:
  VariableOp variableOf(BufferOp buffer);
  bool isMovedParameter(BufferOp buffer);
  bool movesOut(BufferOp buffer);
  void loadForEach(BlockOp block);
  std::vector<Stay> findStays(BlockOp block);
  void bring(Stay &stay, Operation *before);
  void bring(BlockOp block);
  BufferOp homeOf(StringRef buffer) {
    auto home = names.lookup<BufferOp>(buffer);
    return home && isOnHost(home) ? home : BufferOp();
  }
  BufferOp onDevice(BufferOp home);

  ProgramOp program;
  const OffloadPassOptions &options;
  SymbolTable names;
  llvm::DenseMap<Operation *, BufferOp> brought;       ///< by home: where it lies on the device for a while
  llvm::DenseMap<Operation *, Operation *> behindLast; ///< by home: the end of its last stay in the block
};

} // namespace

/// The variable of a state buffer; null of any other buffer.
VariableOp Offloader::variableOf(BufferOp buffer) {
  if (buffer.getKind() != BufferKind::state || !buffer.getOf())
    return {};
  return program->getParentOfType<ModuleOp>().lookupSymbol<VariableOp>(*buffer.getOf());
}

bool Offloader::isMovedParameter(BufferOp buffer) {
  VariableOp variable = variableOf(buffer);
  bool parameter =
      variable && (variable.getKind() == VariableKind::parameter || variable.getKind() == VariableKind::frozen);
  return parameter && (options.parameters || llvm::is_contained(options.parametersOf, variable.getSymName()));
}

/// Variables of the kinds and names in the options. Counters are scalars that kernels read everywhere. Residuals are
/// moved out unless they are small; so are those that Recompute has chosen, which have `host` before.
bool Offloader::movesOut(BufferOp buffer) {
  if (buffer.getSaved())
    return isOnHost(buffer) || (options.saved && buffer.getTensorType().getNumElements() >= minMovedElements);
  VariableOp variable = variableOf(buffer);
  if (!variable)
    return false;
  auto movesStates = [&](StringRef parameter) {
    return options.states || llvm::is_contained(options.statesOf, parameter);
  };
  if (variable.getKind() == VariableKind::state)
    return variable.getOf() ? movesStates(*variable.getOf()) : options.states;
  return isMovedParameter(buffer) || (isSpreadOver(variable, options.masterAxes) && movesStates(variable.getSymName()));
}

BufferOp Offloader::onDevice(BufferOp home) {
  BufferOp &known = brought[home];
  if (known)
    return known;
  OpBuilder builder(program.getContext());
  builder.setInsertionPointAfter(home);
  known = BufferOp::create(builder, home.getLoc(), (home.getSymName() + ".dev").str(), BufferKind::temp, StringAttr(),
                           /*sliced=*/false, SlotIndex::none, 1, home.getTensorType(), TypeAttr(), DenseI64ArrayAttr());
  names.insert(known);
  return known;
}

/// Gives every user of a home a load of its own right before it: memory has been assigned so that no store stands
/// between.
void Offloader::loadForEach(BlockOp block) {
  for (LoadOp load : llvm::to_vector(block.getOps<LoadOp>())) {
    if (!homeOf(load.getBuffer()))
      continue;
    llvm::MapVector<Operation *, SmallVector<OpOperand *>> uses;
    for (OpOperand &use : load->getUses())
      uses[use.getOwner()].push_back(&use);
    for (auto &[user, operands] : uses) {
      OpBuilder builder(user);
      auto own = LoadOp::create(builder, load.getLoc(), load.getType(), load.getBuffer());
      for (OpOperand *operand : operands)
        operand->set(own);
    }
    load.erase();
  }
}

/// Stays in the order of their first touches. A touch begins another stay if `far` ops have touched other homes since
/// the one before. The end of a collective never does, as its start uses the same bytes.
std::vector<Stay> Offloader::findStays(BlockOp block) {
  std::vector<Stay> stays;
  llvm::DenseMap<Operation *, std::pair<size_t, unsigned>> open; // by home: stay, and number of its last touch
  unsigned number = 0;
  for (Operation &op : block.getBody().front()) {
    llvm::MapVector<Operation *, Touch> touches; // by home
    auto touch = [&](BufferOp home) -> Touch & {
      return touches.try_emplace(home, Touch{&op, &op, {}, {}}).first->second;
    };
    auto store = dyn_cast<StoreOp>(op);
    bool copies = store && isa_and_nonnull<LoadOp>(store.getOperand().getDefiningOp());
    for (Value operand : op.getOperands())
      if (auto load = operand.getDefiningOp<LoadOp>())
        if (BufferOp home = homeOf(load.getBuffer()))
          touch(home).loads.push_back(load);
    if (BufferOp home = copies ? homeOf(store.getBuffer()) : BufferOp())
      touch(home).stores.push_back(store);
    for (Operation *user : op.getUsers())
      if (auto kept = dyn_cast<StoreOp>(user); kept && !isa<LoadOp>(op))
        if (BufferOp home = homeOf(kept.getBuffer())) {
          Touch &written = touch(home);
          written.stores.push_back(kept);
          written.last = written.last->isBeforeInBlock(kept) ? kept.getOperation() : written.last;
        }
    if (touches.empty())
      continue;
    ++number;
    for (auto &[home, made] : touches) {
      auto [known, fresh] = open.try_emplace(home, stays.size(), number);
      bool away = !fresh && number - known->second.second > options.far && !made.loads.empty() && !isa<DoneOp>(op);
      if (fresh || away) {
        known->second.first = stays.size();
        stays.push_back({cast<BufferOp>(home), {}, nullptr});
      }
      known->second.second = number;
      stays[known->second.first].touches.push_back(std::move(made));
    }
  }
  return stays;
}

/// The copy in goes before `before`, but after the last stay of the same home.
void Offloader::bring(Stay &stay, Operation *before) {
  BufferOp device = onDevice(stay.home);
  OpBuilder builder(program.getContext());
  Operation *end = nullptr;
  auto copy = [&](BufferOp from, BufferOp to) {
    Location loc = stay.first()->getLoc();
    Value value = LoadOp::create(builder, loc, from.getTensorType(), from.getSymName());
    end = StoreOp::create(builder, loc, value, to.getSymName());
  };
  Operation *&behind = behindLast[stay.home];
  if (stay.isRead()) {
    if (behind && before->isBeforeInBlock(behind))
      builder.setInsertionPointAfter(behind);
    else
      builder.setInsertionPoint(before);
    copy(stay.home, device);
    for (LoadOp load : stay.touches.front().loads)
      load->moveBefore(stay.first()); // after the copy
  }
  for (Touch &touch : stay.touches) {
    for (LoadOp load : touch.loads)
      load.setBuffer(device.getSymName());
    for (StoreOp store : touch.stores)
      store.setBuffer(device.getSymName());
  }
  behind = stay.touches.back().last;
  if (stay.isWritten()) {
    builder.setInsertionPointAfter(behind);
    copy(device, stay.home);
    behind = end;
  }
}

/// Copies in that one op is the first to use go together, beside the last op before it that is the first to use some.
void Offloader::bring(BlockOp block) {
  loadForEach(block);
  Operation *current = nullptr, *before = nullptr;
  behindLast.clear();
  for (Stay &stay : findStays(block)) {
    if (stay.first() != current) {
      before = current ? current : stay.first();
      current = stay.first();
    }
    bring(stay, before);
  }
}

void Offloader::run() {
  llvm::DenseSet<Operation *> made =
      findMadeOfParameters(program, [&](BufferOp buffer) { return isMovedParameter(buffer); });
  for (BufferOp buffer : program.getOps<BufferOp>())
    if (movesOut(buffer) || (made.contains(buffer) && buffer.getTensorType().getNumElements() >= minMovedElements))
      buffer.setHost(true);
  for (BlockOp block : llvm::to_vector(program.getOps<BlockOp>()))
    bring(block);
}

namespace {
struct OffloadPass : impl::OffloadPassBase<OffloadPass> {
  using OffloadPassBase::OffloadPassBase;

  void runOnOperation() override {
    OffloadPassOptions options;
    options.states = states;
    options.parameters = parameters;
    options.saved = saved;
    options.statesOf.assign(statesOf.begin(), statesOf.end());
    options.parametersOf.assign(parametersOf.begin(), parametersOf.end());
    options.masterAxes.assign(masterAxes.begin(), masterAxes.end());
    options.far = far;
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      Offloader(program, options).run();
  }
};
} // namespace

} // namespace par
