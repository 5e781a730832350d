#include "OrderSums.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace par::cpu {

/// The additions of a loop's sums: each adds to a value that the loop carries.
static llvm::SmallVector<llvm::Instruction *> findSums(const llvm::Loop &loop) {
  llvm::SmallVector<llvm::Instruction *> sums;
  llvm::BasicBlock *latch = loop.getLoopLatch();
  if (!latch)
    return sums;
  for (llvm::PHINode &carried : loop.getHeader()->phis()) {
    auto *next = llvm::dyn_cast<llvm::BinaryOperator>(carried.getIncomingValueForBlock(latch));
    if (next && next->getOpcode() == llvm::Instruction::FAdd && next->hasAllowReassoc() &&
        llvm::is_contained(next->operands(), &carried))
      sums.push_back(next);
  }
  return sums;
}

/// The length of a loop from one constant to another as it is generated: `i < end`, `i + step`.
static std::optional<uint64_t> lengthOf(const llvm::Loop &loop) {
  auto *branch = llvm::dyn_cast<llvm::BranchInst>(loop.getHeader()->getTerminator());
  auto *compare = branch && branch->isConditional() ? llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition()) : nullptr;
  auto *position = compare ? llvm::dyn_cast<llvm::PHINode>(compare->getOperand(0)) : nullptr;
  if (!position || position->getParent() != loop.getHeader() || !loop.getLoopPreheader())
    return std::nullopt;
  auto *next = llvm::dyn_cast<llvm::BinaryOperator>(position->getIncomingValueForBlock(loop.getLoopLatch()));
  auto *begin = llvm::dyn_cast<llvm::ConstantInt>(position->getIncomingValueForBlock(loop.getLoopPreheader()));
  auto *end = llvm::dyn_cast<llvm::ConstantInt>(compare->getOperand(1));
  auto *step = next ? llvm::dyn_cast<llvm::ConstantInt>(next->getOperand(1)) : nullptr;
  if (!begin || !end || !step || step->isZero())
    return std::nullopt;
  return (end->getZExtValue() - begin->getZExtValue()) / step->getZExtValue();
}

static llvm::Metadata *hint(llvm::LLVMContext &context, llvm::StringRef name, unsigned value) {
  auto *number = llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value);
  return llvm::MDNode::get(context, {llvm::MDString::get(context, name), llvm::ConstantAsMetadata::get(number)});
}

static void setVectors(const llvm::Loop &loop, unsigned width, unsigned interleaved) {
  llvm::LLVMContext &context = loop.getHeader()->getContext();
  llvm::SmallVector<llvm::Metadata *> hints{
      nullptr, hint(context, "llvm.loop.vectorize.width", width),
      hint(context, "llvm.loop.interleave.count", interleaved),
      llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"))};
  llvm::MDNode *id = llvm::MDNode::getDistinct(context, hints);
  id->replaceOperandWith(0, id);
  loop.setLoopID(id);
}

static void orderSumsOf(const llvm::Loop &loop) {
  llvm::SmallVector<llvm::Instruction *> sums = findSums(loop);
  if (sums.empty())
    return;
  // A longer one in another place has its parts in the same order if its length is not a constant.
  uint64_t length = lengthOf(loop).value_or(64);
  if (length < 16 || !loop.isInnermost())
    for (llvm::Instruction *sum : sums)
      sum->setHasAllowReassoc(false);
  else
    setVectors(loop, length < 32 ? 8 : 16, length < 64 ? 1 : 2);
}

void orderSums(llvm::Module &module) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    for (llvm::Loop *loop : loops.getLoopsInPreorder())
      orderSumsOf(*loop);
  }
}

} // namespace par::cpu
