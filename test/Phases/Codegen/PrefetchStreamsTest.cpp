// A loop asks for the lines of its streams that it comes to, each once.
#include "../../../lib/Phases/Codegen/CPU/PrefetchStreams.h"

#include "gtest/gtest.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SourceMgr.h"

namespace {

/// Rows of `rowBytes` bytes, `step` bytes a turn; in `body` %x, %row and %out are where they are in a row, %row in
/// every row.
std::string rows(int step, int rowBytes, const std::string &body) {
  std::string bytes = std::to_string(rowBytes);
  return "define void @f(ptr noalias %xs, ptr noalias %first, ptr noalias %outs) {\nentry:\n  br label %outer\nouter:\n"
         "  %i = phi i64 [0, %entry], [%i2, %next]\n  %at = mul nuw nsw i64 %i, " +
         bytes +
         "\n"
         "  %xrow = getelementptr i8, ptr %xs, i64 %at\n  %outrow = getelementptr i8, ptr %outs, i64 %at\n  br label "
         "%inner\ninner:\n"
         "  %j = phi i64 [0, %outer], [%j2, %inner]\n  %x = getelementptr i8, ptr %xrow, i64 %j\n"
         "  %row = getelementptr i8, ptr %first, i64 %j\n  %out = getelementptr i8, ptr %outrow, i64 %j\n" +
         body + "  %j2 = add nuw nsw i64 %j, " + std::to_string(step) + "\n  %end = icmp uge i64 %j2, " + bytes +
         "\n"
         "  br i1 %end, label %next, label %inner\nnext:\n  %i2 = add nuw nsw i64 %i, 1\n  %last = icmp eq i64 %i2, "
         "100\n"
         "  br i1 %last, label %exit, label %outer\nexit:\n  ret void\n}\n";
}

/// "read x + 4096" of each line that is asked for, in order.
std::vector<std::string> askedFor(const std::string &text) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
  EXPECT_TRUE(module) << error.getMessage().str() << "\n" << text;
  if (!module)
    return {};
  llvm::PassBuilder builder;
  llvm::FunctionAnalysisManager functions;
  builder.registerFunctionAnalyses(functions);
  llvm::Function &function = *module->getFunction("f");
  par::cpu::PrefetchStreams().run(function, functions);
  std::vector<std::string> found;
  for (llvm::Instruction &instruction : llvm::instructions(function))
    if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        call && call->getIntrinsicID() == llvm::Intrinsic::prefetch) {
      auto *coming = llvm::cast<llvm::GetElementPtrInst>(call->getArgOperand(0));
      auto *distance = llvm::cast<llvm::ConstantInt>(coming->getOperand(1));
      found.push_back((llvm::cast<llvm::ConstantInt>(call->getArgOperand(1))->isOne() ? "write " : "read ") +
                      coming->getPointerOperand()->getName().str() + " " + std::to_string(distance->getSExtValue()));
    }
  return found;
}

using Lines = std::vector<std::string>;
const char scale[] =
    "  %v = load <16 x float>, ptr %x\n  %w = fadd <16 x float> %v, %v\n  store <16 x float> %w, ptr %out\n";

TEST(PrefetchStreams, OfWhatIsReadAndWritten) {
  EXPECT_EQ(askedFor(rows(64, 4096, scale)), (Lines{"read x 4096", "write out 4096"}));
  EXPECT_EQ(askedFor(rows(256, 4096, scale)), (Lines{"read x 4096", "write out 4096"}));
}

// Two halves of a line, and the next line in the next iteration.
TEST(PrefetchStreams, EachLineOnce) {
  EXPECT_EQ(askedFor(rows(64, 4096,
                          "  %v = load <8 x float>, ptr %x\n  %half = getelementptr i8, ptr %x, i64 32\n"
                          "  %w = load <8 x float>, ptr %half\n")),
            (Lines{"read x 4096"}));
  EXPECT_EQ(askedFor(rows(128, 4096,
                          "  %v = load <16 x float>, ptr %x\n  %line = getelementptr i8, ptr %x, i64 64\n"
                          "  %w = load <16 x float>, ptr %line\n")),
            (Lines{"read x 4096", "read line 4096"}));
}

TEST(PrefetchStreams, NotOfWhatStaysInTheCache) {
  EXPECT_EQ(askedFor(rows(64, 4096, "  %v = load <16 x float>, ptr %row\n")), Lines{});
  EXPECT_EQ(askedFor(rows(64, 4096, "  %v = load <16 x float>, ptr %xrow\n")), Lines{});
  EXPECT_EQ(askedFor(rows(4, 4096, "  %v = load float, ptr %x\n")), Lines{}) << "a rest, element by element";
}

TEST(PrefetchStreams, ColumnsSomeTurnsAhead) {
  EXPECT_EQ(askedFor(rows(8192, 65536, "  %v = load <16 x float>, ptr %x\n")), (Lines{"read x 65536"}));
}

} // namespace
