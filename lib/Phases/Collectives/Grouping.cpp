// Earliest start and first use of a block's collectives, also through loads and stores of buffers. Moves a collective
// between the two, with the ops that must move along.
#include "Grouping.h"
#include "par/Dialect/Interfaces/Cost.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace par {

SmallVector<Operation *> collectivesOf(BlockOp block) {
  SmallVector<Operation *> collectives;
  for (Operation &op : block.getBody().front())
    if (isa<CollectiveOpInterface>(op))
      collectives.push_back(&op);
  return collectives;
}

Operation *lastOperand(Operation *collective) {
  Operation *last = nullptr;
  for (Value input : collective->getOperands())
    if (Operation *op = input.getDefiningOp(); op && (!last || last->isBeforeInBlock(op)))
      last = op;
  return last;
}

/// The name of the buffer that a load or store touches: names are unique in a context.
static StringAttr bufferOf(Operation &op) {
  if (auto load = dyn_cast<LoadOp>(op))
    return load.getBufferAttr().getAttr();
  if (auto store = dyn_cast<StoreOp>(op))
    return store.getBufferAttr().getAttr();
  return {};
}

static bool onlyStored(Operation *op) {
  return llvm::all_of(op->getUsers(), [](Operation *user) { return isa<StoreOp>(user); });
}

bool follows(Operation *user) {
  if (isa<StoreOp>(user))
    return true;
  return isa<LaunchOp>(user) && onlyStored(user) && llvm::all_of(user->getOperands(), [](Value operand) {
           Operation *op = operand.getDefiningOp();
           return isa_and_nonnull<LoadOp, DoneOp, CollectiveOpInterface>(op);
         });
}

/// The first op after a store that accesses its buffer.
static Operation *nextTouch(StoreOp store) {
  StringAttr buffer = bufferOf(*store);
  for (Operation *op = store->getNextNode(); op; op = op->getNextNode())
    if (bufferOf(*op) == buffer)
      return op;
  return nullptr;
}

Operation *firstNeed(Operation *collective) {
  Operation *first = nullptr;
  auto need = [&](Operation *op) {
    if (op && (!first || op->isBeforeInBlock(first)))
      first = op;
  };
  for (Operation *user : collective->getUsers()) {
    if (!follows(user)) {
      need(user);
      continue;
    }
    if (auto store = dyn_cast<StoreOp>(user))
      need(nextTouch(store));
    for (Operation *store : user->getUsers())
      need(nextTouch(cast<StoreOp>(store)));
  }
  return first;
}

bool isScalar(Operation *collective) {
  return llvm::all_of(collective->getResultTypes(),
                      [](Type type) { return cast<RankedTensorType>(type).getNumElements() == 1; });
}

bool onlyLeaves(Operation *collective) { return onlyStored(collective); }

int64_t bytesOf(Operation *collective) {
  return std::max(getByteSize(collective->getOperands()), getByteSize(collective->getResults()));
}

/// Whether nothing before the load writes its buffer, so that it can stand at the block's begin.
static bool readsFirst(LoadOp load) {
  StringAttr buffer = bufferOf(*load);
  for (Operation *op = load->getPrevNode(); op; op = op->getPrevNode())
    if (isa<StoreOp>(op) && bufferOf(*op) == buffer)
      return false;
  return true;
}

std::optional<SmallVector<Operation *>> sourcesOf(Operation *collective) {
  constexpr size_t fewLaunches = 4; // a cast to a lower precision and transposes, not the model
  llvm::SetVector<Operation *> sources;
  size_t launches = 0;
  if (isa<AllReduceOp>(collective)) // of activations at a block's begin
    return std::nullopt;
  for (Value operand : collective->getOperands())
    sources.insert(operand.getDefiningOp());
  for (size_t next = 0; next < sources.size(); ++next) {
    Operation *op = sources[next];
    if (!isa_and_nonnull<LoadOp, LaunchOp>(op) ||
        (isa<LaunchOp>(op) && ++launches > fewLaunches * collective->getNumOperands()))
      return std::nullopt;
    if (auto load = dyn_cast<LoadOp>(op); load && !readsFirst(load))
      return std::nullopt;
    for (Value operand : op->getOperands())
      sources.insert(operand.getDefiningOp());
  }
  SmallVector<Operation *> ordered = sources.takeVector();
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ordered;
}

void takeFollowersAlong(Operation *op) {
  SmallVector<Operation *> followers;
  for (Operation *user : op->getUsers())
    if (user->isBeforeInBlock(op) && follows(user) && !llvm::is_contained(followers, user))
      followers.push_back(user);
  llvm::sort(followers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  Operation *end = op;
  auto append = [&](Operation *follower) {
    follower->moveAfter(end);
    end = follower;
  };
  for (Operation *follower : followers) {
    append(follower);
    for (Operation *store : follower->getUsers())
      if (store->isBeforeInBlock(end))
        append(store);
  }
}

void moveBehind(Operation *collective, Operation *place) {
  collective->moveAfter(place);
  takeFollowersAlong(collective);
}

void moveBefore(Operation *collective, ArrayRef<Operation *> sources, Operation *place) {
  for (Operation *source : sources)
    if (place->isBeforeInBlock(source))
      source->moveBefore(place);
  if (collective != place)
    collective->moveBefore(place);
}

} // namespace par
