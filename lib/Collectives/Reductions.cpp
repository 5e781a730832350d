#include "Reductions.h"

using namespace mlir;

namespace par {

Operation *lastOperand(AllReduceOp reduce) {
  Operation *last = nullptr;
  for (Value input : reduce.getInputs())
    if (Operation *op = input.getDefiningOp(); op && (!last || last->isBeforeInBlock(op)))
      last = op;
  return last;
}

/// The buffer that a load or store touches.
static StringRef bufferOf(Operation &op) {
  if (auto load = dyn_cast<LoadOp>(op))
    return load.getBuffer();
  if (auto store = dyn_cast<StoreOp>(op))
    return store.getBuffer();
  return {};
}

Operation *firstNeed(AllReduceOp reduce) {
  Operation *first = nullptr;
  auto need = [&](Operation *op) {
    if (!first || op->isBeforeInBlock(first))
      first = op;
  };
  for (Operation *user : reduce->getUsers()) {
    auto store = dyn_cast<StoreOp>(user);
    if (!store) {
      need(user);
      continue;
    }
    for (Operation *op = store->getNextNode(); op; op = op->getNextNode())
      if (bufferOf(*op) == store.getBuffer()) {
        need(op);
        break;
      }
  }
  return first;
}

bool isScalar(AllReduceOp reduce) {
  return llvm::all_of(reduce.getResultTypes(),
                      [](Type type) { return cast<RankedTensorType>(type).getNumElements() == 1; });
}

bool onlyLeaves(AllReduceOp reduce) {
  return llvm::all_of(reduce->getUsers(), [](Operation *user) { return isa<StoreOp>(user); });
}

void moveBehind(AllReduceOp reduce, Operation *place) {
  reduce->moveAfter(place);
  Operation *end = reduce;
  for (Operation *user : llvm::to_vector(reduce->getUsers()))
    if (isa<StoreOp>(user) && user->isBeforeInBlock(reduce)) {
      user->moveAfter(end);
      end = user;
    }
}

} // namespace par
