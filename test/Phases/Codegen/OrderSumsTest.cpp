// A sum's order depends on its length, not on what else its loop computes.
#include "../../../lib/Phases/Codegen/CPU/OrderSums.h"
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

/// A loop over `length` elements of x that adds them up; with `more`, it also stores them, and keeps an
/// integer beside.
std::string sumLoop(unsigned length, bool more) {
  std::string work = "  %w = fmul float %v, 2.0\n";
  if (more)
    work = "  %w = fmul float %v, 2.0\n  %py = getelementptr float, ptr %y, i64 %i\n  store float %w, ptr %py\n"
           "  %h = mul i64 %i, 6364136223846793005\n  %pz = getelementptr i64, ptr %z, i64 %i\n"
           "  store i64 %h, ptr %pz\n";
  return "define float @f(ptr noalias %x, ptr noalias %y, ptr noalias %z) {\nentry:\n  br label %loop\nloop:\n"
         "  %i = phi i64 [0, %entry], [%j, %body]\n  %a = phi float [0.0, %entry], [%b, %body]\n"
         "  %c = icmp slt i64 %i, " +
         std::to_string(length) +
         "\n  br i1 %c, label %body, label %exit\nbody:\n"
         "  %px = getelementptr float, ptr %x, i64 %i\n  %v = load float, ptr %px\n" +
         work +
         "  %b = fadd reassoc contract float %a, %w\n  %j = add i64 %i, 1\n  br label %loop\n"
         "exit:\n  ret float %a\n}\n";
}

/// By the lanes of a vector, how many additions of floats the optimized function has.
std::map<unsigned, unsigned> countAdditions(const std::string &text) {
  mlir::MLIRContext loaded; // only the targets that prepareThreads registers are needed
  par::codegen::prepareThreads(loaded);
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
  EXPECT_TRUE(module) << error.getMessage().str() << "\n" << text;
  if (!module)
    return {};
  auto machine =
      par::codegen::createMachine("x86_64-unknown-linux-gnu", "x86-64-v3", "", {}, {}, llvm::CodeGenOptLevel::Default);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  module->getFunction("f")->addFnAttr("target-cpu", "x86-64-v3");
  par::cpu::orderSums(*module);
  par::codegen::optimize(*module, *machine);
  std::map<unsigned, unsigned> count;
  for (llvm::Instruction &instruction : llvm::instructions(*module->getFunction("f")))
    if (instruction.getOpcode() == llvm::Instruction::FAdd) {
      auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
      if (vector) // scalars are sums of the rest, unrolled or not
        ++count[vector->getNumElements()];
    }
  return count;
}

TEST(OrderSums, DependsOnTheLengthAlone) {
  for (unsigned length : {6u, 15u, 16u, 23u, 32u, 48u, 64u, 100u, 768u, 4096u})
    EXPECT_EQ(countAdditions(sumLoop(length, false)), countAdditions(sumLoop(length, true))) << length;
}

TEST(OrderSums, ShortSumsAreNotVectors) {
  EXPECT_TRUE(countAdditions(sumLoop(15, false)).empty());
  EXPECT_EQ(countAdditions(sumLoop(768, false)).count(16), 1u);
}

} // namespace
