#ifndef PAR_TEST_CODEGEN_EMULATEDKERNELS_H
#define PAR_TEST_CODEGEN_EMULATEDKERNELS_H

#include "../../lib/Codegen/CPU/NativeCode.h"
#include "EmulatedGpu.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

/// Makes of a kernel's LLVM IR for a GPU an object for this machine, in which an intrinsic is a call of a
/// table that who loads it fills.
namespace emulated_gpu {

/// Which entry of Calls stands for an intrinsic; -1 for others.
inline int callOf(llvm::StringRef intrinsic) {
  static constexpr llvm::StringRef names[] = {
      "llvm.nvvm.read.ptx.sreg.tid.x", "llvm.nvvm.read.ptx.sreg.ctaid.x", "llvm.nvvm.bar.warp.sync",
      "llvm.nvvm.barrier.cta.sync.aligned.all", "llvm.nvvm.shfl.sync.bfly.i32"};
  for (auto [number, name] : llvm::enumerate(names))
    if (intrinsic == name)
      return number;
  return -1;
}

/// Replaces intrinsics; returns the name of one that is not known here.
inline std::string replaceIntrinsics(llvm::Function &kernel, llvm::GlobalVariable *table) {
  llvm::SmallVector<llvm::CallInst *> calls;
  for (llvm::Instruction &instruction : llvm::instructions(kernel))
    if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
      if (call->getCalledFunction() && call->getCalledFunction()->getName().starts_with("llvm.nvvm."))
        calls.push_back(call);
  for (llvm::CallInst *call : calls) {
    int number = callOf(call->getCalledFunction()->getName());
    if (number < 0)
      return call->getCalledFunction()->getName().str();
    llvm::IRBuilder<> builder(call);
    llvm::Type *pointer = builder.getPtrTy();
    llvm::Value *place = builder.CreateConstGEP1_32(pointer, table, number);
    llvm::SmallVector<llvm::Value *> arguments;
    if (number == 4)
      arguments = {call->getArgOperand(1), call->getArgOperand(2)};
    llvm::SmallVector<llvm::Type *> types;
    for (llvm::Value *argument : arguments)
      types.push_back(argument->getType());
    auto *type = llvm::FunctionType::get(call->getType(), types, false);
    call->replaceAllUsesWith(builder.CreateCall(type, builder.CreateLoad(pointer, place), arguments));
    call->eraseFromParent();
  }
  return "";
}

/// `SYMBOL(ptr *, i64 *)` that calls the kernel with what the arrays hold; `SYMBOL.calls`, the table;
/// `SYMBOL.shared`.
inline llvm::FailureOr<std::string> compileForHost(const std::string &ir, const std::string &symbol,
                                                   std::string &error) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(ir, diagnostic, context);
  if (!module) {
    error = diagnostic.getMessage().str();
    return mlir::failure();
  }
  llvm::Type *pointer = llvm::PointerType::get(context, 0), *i64 = llvm::Type::getInt64Ty(context);
  auto *tableType = llvm::ArrayType::get(pointer, 5);
  auto *table = new llvm::GlobalVariable(*module, tableType, false, llvm::GlobalValue::ExternalLinkage,
                                         llvm::ConstantAggregateZero::get(tableType), symbol + ".calls");
  llvm::Function *kernel = module->getFunction(symbol);
  kernel->setName(symbol + ".threads");
  kernel->setCallingConv(llvm::CallingConv::C);
  kernel->setLinkage(llvm::GlobalValue::InternalLinkage);
  for (llvm::GlobalVariable &global : module->globals())
    if (global.getAddressSpace() == 3) {
      global.setLinkage(llvm::GlobalValue::ExternalLinkage);
      global.setInitializer(llvm::Constant::getNullValue(global.getValueType()));
    }
  if (std::string unknown = replaceIntrinsics(*kernel, table); !unknown.empty()) {
    error = "no emulation of " + unknown;
    return mlir::failure();
  }
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer}, false);
  auto *entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, *module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", entry));
  llvm::SmallVector<llvm::Value *> arguments;
  unsigned next[2] = {0, 0};
  for (llvm::Argument &argument : kernel->args()) {
    bool immediate = !argument.getType()->isPointerTy();
    llvm::Type *element = immediate ? i64 : pointer;
    arguments.push_back(builder.CreateLoad(
        element, builder.CreateConstGEP1_32(element, entry->getArg(immediate), next[immediate]++)));
  }
  builder.CreateCall(kernel, arguments);
  builder.CreateRetVoid();
  return par::cpu::emitObject(*module, "x86-64-v3");
}

} // namespace emulated_gpu

#endif
