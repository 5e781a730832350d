#include "KeepMasks.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

namespace par::cpu {

static bool isMinOrMax(llvm::Intrinsic::ID id) {
  switch (id) {
  case llvm::Intrinsic::maximum:
  case llvm::Intrinsic::minimum:
  case llvm::Intrinsic::maxnum:
  case llvm::Intrinsic::minnum:
  case llvm::Intrinsic::smax:
  case llvm::Intrinsic::smin:
  case llvm::Intrinsic::umax:
  case llvm::Intrinsic::umin:
    return true;
  default:
    return false;
  }
}

static bool isMasked(llvm::Value *value) {
  auto *select = llvm::dyn_cast<llvm::SelectInst>(value);
  return select && select->hasOneUse() &&
         (llvm::isa<llvm::Constant>(select->getTrueValue()) || llvm::isa<llvm::Constant>(select->getFalseValue()));
}

void keepMasks(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (!call || !isMinOrMax(call->getIntrinsicID()))
        continue;
      for (unsigned i = 0; i < 2; ++i)
        if (isMasked(call->getArgOperand(i)))
          call->setArgOperand(i, llvm::IRBuilder<>(call).CreateFreeze(call->getArgOperand(i)));
    }
}

} // namespace par::cpu
