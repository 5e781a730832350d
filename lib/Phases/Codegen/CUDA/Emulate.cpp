// Compiles a GPU kernel's LLVM IR to an object for this machine, in which intrinsics are calls through a table.
#include "par/Phases/Codegen/Emulation.h"

#include "../CPU/NativeCode.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace par {
namespace {

/// Shuffles are the last of EmulatedCalls, whose order this is.
constexpr StringRef intrinsics[] = {"llvm.nvvm.read.ptx.sreg.tid.x", "llvm.nvvm.read.ptx.sreg.ctaid.x",
                                    "llvm.nvvm.bar.warp.sync", "llvm.nvvm.barrier.cta.sync.aligned.all",
                                    "llvm.nvvm.shfl.sync.bfly.i32"};
constexpr unsigned exchange = 4;

/// AVX-512 would only lengthen the vectors of one thread.
std::string isaOfThreads() { return getHostIsa() == "x86-64-v4" ? "x86-64-v3" : getHostIsa(); }

/// Replaces intrinsics; returns the name of one that is not known here.
std::string replaceIntrinsics(llvm::Function &kernel, llvm::GlobalVariable *table) {
  SmallVector<llvm::CallInst *> calls;
  for (llvm::Instruction &instruction : llvm::instructions(kernel))
    if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
      if (call->getCalledFunction() && call->getCalledFunction()->getName().starts_with("llvm.nvvm."))
        calls.push_back(call);
  for (llvm::CallInst *call : calls) {
    const StringRef *known = llvm::find(intrinsics, call->getCalledFunction()->getName());
    if (known == std::end(intrinsics))
      return call->getCalledFunction()->getName().str();
    unsigned number = known - std::begin(intrinsics);
    llvm::IRBuilder<> builder(call);
    llvm::Type *pointer = builder.getPtrTy();
    llvm::Value *place = builder.CreateConstGEP1_32(pointer, table, number);
    SmallVector<llvm::Value *> arguments;
    if (number == exchange)
      arguments = {call->getArgOperand(1), call->getArgOperand(2)};
    SmallVector<llvm::Type *> types;
    for (llvm::Value *argument : arguments)
      types.push_back(argument->getType());
    auto *type = llvm::FunctionType::get(call->getType(), types, false);
    call->replaceAllUsesWith(builder.CreateCall(type, builder.CreateLoad(pointer, place), arguments));
    call->eraseFromParent();
  }
  return "";
}

/// Exports a block's shared memory and its size.
void exportShared(llvm::Module &module) {
  SmallVector<llvm::GlobalVariable *> shared;
  for (llvm::GlobalVariable &global : module.globals())
    if (global.getAddressSpace() == 3)
      shared.push_back(&global);
  llvm::Type *i64 = llvm::Type::getInt64Ty(module.getContext());
  for (llvm::GlobalVariable *global : shared) {
    global->setLinkage(llvm::GlobalValue::ExternalLinkage);
    global->setInitializer(llvm::Constant::getNullValue(global->getValueType()));
    uint64_t bytes = module.getDataLayout().getTypeAllocSize(global->getValueType());
    new llvm::GlobalVariable(module, i64, true, llvm::GlobalValue::ExternalLinkage, llvm::ConstantInt::get(i64, bytes),
                             global->getName() + ".bytes");
  }
}

/// Adds SYMBOL, which calls the kernel with the elements of the arrays.
void addEntry(llvm::Function &kernel, StringRef symbol) {
  llvm::Module &module = *kernel.getParent();
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *pointer = llvm::PointerType::get(context, 0), *i64 = llvm::Type::getInt64Ty(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer}, false);
  auto *entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", entry));
  SmallVector<llvm::Value *> arguments;
  unsigned next[2] = {0, 0};
  for (llvm::Argument &argument : kernel.args()) {
    bool immediate = !argument.getType()->isPointerTy();
    llvm::Type *element = immediate ? i64 : pointer;
    arguments.push_back(
        builder.CreateLoad(element, builder.CreateConstGEP1_32(element, entry->getArg(immediate), next[immediate]++)));
  }
  builder.CreateCall(&kernel, arguments);
  builder.CreateRetVoid();
}

FailureOr<std::string> compileForHost(StringRef ir, StringRef symbol, std::string &error) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(ir, diagnostic, context);
  if (!module) {
    error = diagnostic.getMessage().str();
    return failure();
  }
  auto *tableType = llvm::ArrayType::get(llvm::PointerType::get(context, 0), std::size(intrinsics));
  auto *table = new llvm::GlobalVariable(*module, tableType, false, llvm::GlobalValue::ExternalLinkage,
                                         llvm::ConstantAggregateZero::get(tableType), symbol + ".calls");
  llvm::Function *kernel = module->getFunction(symbol);
  kernel->setName(symbol + ".threads");
  kernel->setCallingConv(llvm::CallingConv::C);
  kernel->setLinkage(llvm::GlobalValue::InternalLinkage);
  exportShared(*module);
  if (std::string unknown = replaceIntrinsics(*kernel, table); !unknown.empty()) {
    error = "no emulation of " + unknown;
    return failure();
  }
  addEntry(*kernel, symbol);
  return cpu::emitObject(*module, isaOfThreads());
}

} // namespace

FailureOr<std::string> emulateKernels(const llvm::StringMap<std::string> &ir, std::string &error) {
  std::vector<std::string> objects;
  for (const auto &kernel : ir) {
    FailureOr<std::string> object = compileForHost(kernel.second, kernel.first(), error);
    if (failed(object))
      return failure();
    objects.push_back(std::move(*object));
  }
  FailureOr<std::string> support = cpu::compileSupport(isaOfThreads());
  if (failed(support)) {
    error = "LLVM makes no code for " + isaOfThreads();
    return failure();
  }
  objects.push_back(std::move(*support));
  return cpu::linkObjects(objects, error);
}

} // namespace par
