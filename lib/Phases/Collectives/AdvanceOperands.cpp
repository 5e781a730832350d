// Pads and casts of gradients, and additions to the sums of earlier microbatches, stand where Partition reduces them,
// at the end of the last backward. Each moves to where its own operand is computed, so that the reduction can start
// there.
#include "Grouping.h"
#include "par/Phases/Collectives/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_ADVANCEOPERANDSPASS
#include "par/Phases/Collectives/Passes.h.inc"

/// Whether only reductions whose results leave the block use the launch.
static bool onlyFeedsReductions(LaunchOp launch) {
  return !launch->use_empty() && llvm::all_of(launch->getUsers(), [](Operation *user) {
    return isa<AllReduceOp, ReduceScatterOp>(user) && !firstNeed(user);
  });
}

/// The arguments whose storage a result takes.
static SmallVector<int64_t> overwritten(KernelOp kernel) {
  SmallVector<int64_t> arguments;
  for (int64_t argument : kernel.getTied().value_or(ArrayRef<int64_t>()))
    if (argument >= 0)
      arguments.push_back(argument);
  return arguments;
}

/// The op that makes an operand; of a loaded one the last store to its buffer before the load. Null: the load can stand
/// anywhere.
static Operation *maker(Value operand) {
  Operation *op = operand.getDefiningOp();
  auto load = dyn_cast_or_null<LoadOp>(op);
  if (!load)
    return op;
  for (Operation *before = load->getPrevNode(); before; before = before->getPrevNode())
    if (auto store = dyn_cast<StoreOp>(before); store && store.getBuffer() == load.getBuffer())
      return store;
  return nullptr;
}

/// The op after which a launch can stand: the last one that makes an operand, or that reads one which the launch
/// overwrites. Null if it stays: it is a matmul, or it overwrites a buffer.
static Operation *earliestPlace(LaunchOp launch, KernelOp kernel) {
  StringRef implementation = kernel.getImplementation();
  if (implementation != "generated" && implementation != "fill")
    return nullptr;
  Operation *last = nullptr;
  for (Value operand : launch.getOperands())
    if (Operation *op = maker(operand); op && (!last || last->isBeforeInBlock(op)))
      last = op;
  for (int64_t argument : overwritten(kernel)) {
    Value operand = launch.getOperands()[argument];
    if (isa_and_nonnull<LoadOp>(operand.getDefiningOp()))
      return nullptr;
    for (Operation *user : operand.getUsers())
      if (user != launch && last && last->isBeforeInBlock(user))
        last = user;
  }
  return last && last->isBeforeInBlock(launch) ? last : nullptr;
}

/// Moves a launch after `place`, with the loads that it uses.
static void advance(LaunchOp launch, Operation *place) {
  launch->moveAfter(place);
  for (Value operand : launch.getOperands())
    if (auto load = operand.getDefiningOp<LoadOp>(); load && launch->isBeforeInBlock(load))
      load->moveBefore(launch);
}

namespace {
struct AdvanceOperandsPass : impl::AdvanceOperandsPassBase<AdvanceOperandsPass> {
  void runOnOperation() override {
    SymbolTable kernels(getOperation());
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>())
        for (LaunchOp launch : llvm::make_early_inc_range(block.getOps<LaunchOp>()))
          if (onlyFeedsReductions(launch))
            if (Operation *place = earliestPlace(launch, kernels.lookup<KernelOp>(launch.getKernel())))
              advance(launch, place);
  }
};
} // namespace

} // namespace par
