// Masked maxima and minima are vectorized.
#include "../../../lib/Phases/Codegen/CPU/KeepMasks.h"
#include "../../../lib/Phases/Codegen/Optimize.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"

namespace {

/// A loop over `combine(a, select(mask[i], x[i], otherwise))`.
std::string maskedLoop(const std::string &combine, const std::string &type, const std::string &otherwise) {
  std::string name = "@llvm." + combine + "." + (type == "float" ? "f32" : type == "double" ? "f64" : type);
  return "define " + type +
         " @f(ptr noalias %m, ptr noalias %x) {\nentry:\n  br label %loop\nloop:\n"
         "  %i = phi i64 [0, %entry], [%j, %loop]\n"
         "  %a = phi " +
         type + " [" + otherwise +
         ", %entry], [%b, %loop]\n"
         "  %pm = getelementptr i8, ptr %m, i64 %i\n  %byte = load i8, ptr %pm\n  %c = trunc i8 %byte to i1\n"
         "  %px = getelementptr " +
         type + ", ptr %x, i64 %i\n  %v = load " + type +
         ", ptr %px\n"
         "  %s = select i1 %c, " +
         type + " %v, " + type + " " + otherwise +
         "\n"
         "  %b = call " +
         type + " " + name + "(" + type + " %a, " + type +
         " %s)\n"
         "  %j = add i64 %i, 1\n  %end = icmp eq i64 %j, 25129\n  br i1 %end, label %exit, label %loop\n"
         "exit:\n  ret " +
         type + " %b\n}\ndeclare " + type + " " + name + "(" + type + ", " + type + ")\n";
}

/// Whether the loop, optimized, loads vectors.
bool isVectorized(const std::string &text) {
  mlir::MLIRContext loaded; // only the targets that prepareThreads registers are needed
  par::codegen::prepareThreads(loaded);
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
  EXPECT_TRUE(module) << error.getMessage().str() << "\n" << text;
  if (!module)
    return false;
  auto machine =
      par::codegen::createMachine("x86_64-unknown-linux-gnu", "x86-64-v3", "", {}, {}, llvm::CodeGenOptLevel::Default);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  module->getFunction("f")->addFnAttr("target-cpu", "x86-64-v3");
  par::cpu::keepMasks(*module);
  par::codegen::optimize(*module, *machine);
  return llvm::any_of(llvm::instructions(*module->getFunction("f")), [](llvm::Instruction &instruction) {
    return llvm::isa<llvm::LoadInst>(instruction) && instruction.getType()->isVectorTy();
  });
}

} // namespace

TEST(KeepMasks, LargestAndSmallestAreVectorized) {
  EXPECT_TRUE(isVectorized(maskedLoop("maximum", "float", "0xFFF0000000000000")));
  EXPECT_TRUE(isVectorized(maskedLoop("minimum", "float", "0x7FF0000000000000")));
  EXPECT_TRUE(isVectorized(maskedLoop("maximum", "double", "0xFFF0000000000000")));
  EXPECT_TRUE(isVectorized(maskedLoop("smax", "i32", "-2147483648")));
  EXPECT_TRUE(isVectorized(maskedLoop("umin", "i64", "-1")));
}
