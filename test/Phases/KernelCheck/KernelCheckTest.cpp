// Errors for wrong generated code: another kernel's code, and edited code.
#include "par/Phases/KernelCheck/KernelCheck.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace par;

namespace {

struct Checked {
  std::string errors;
  KernelCheckCounts counts;
};

class KernelCheckTest : public ::testing::Test {
protected:
  KernelCheckTest() {
    DialectRegistry registry;
    registerDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    setenv("PAR_PTXAS", "", 1);
  }
  ~KernelCheckTest() override { unsetenv("PAR_PTXAS"); }

  OwningOpRef<ModuleOp> parse(const std::string &text) { return parseSourceString<ModuleOp>(text, &context); }

  CompiledKernels compile(const std::string &text, const std::string &device = "cpu") {
    CodegenOptions options;
    options.device = device;
    options.keepIR = device == "cuda";
    FailureOr<CompiledKernels> compiled = compileKernels(*parse(text), options);
    EXPECT_TRUE(succeeded(compiled));
    return succeeded(compiled) ? std::move(*compiled) : CompiledKernels();
  }

  Checked check(const std::string &text, const CompiledKernels &compiled, int64_t most = 1 << 20) {
    Checked checked;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      checked.errors += diagnostic.str() + "\n";
      return success();
    });
    KernelCheckOptions options;
    options.maxElements = most;
    EXPECT_EQ(succeeded(checkKernels(*parse(text), compiled, options, checked.counts)), checked.errors.empty());
    return checked;
  }

  MLIRContext context;
};

testing::AssertionResult has(const std::string &text, const std::string &part) {
  if (text.find(part) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not hold \"" << part << "\"";
}

/// @k of one operand and result of `size` numbers.
std::string kernel(const std::string &op, int size, const std::string &attributes = "") {
  std::string type = "tensor<" + std::to_string(size) + "xf32>";
  return "par.kernel @k(%a: " + type + ") -> " + type + " attributes {implementation = \"generated\"" + attributes +
         "} {\n" + "%0 = par." + op + " : " + type + "\npar.return %0 : " + type + "\n}\n";
}

TEST_F(KernelCheckTest, SaysHowMuchItHasCompared) {
  Checked checked = check(kernel("tanh %a", 6), compile(kernel("tanh %a", 6)));
  EXPECT_EQ(checked.errors, "");
  EXPECT_EQ(checked.counts.kernels, 1u);
  EXPECT_EQ(checked.counts.elements, 4 * 6u); // of two draws, each at two places
  EXPECT_EQ(check(kernel("tanh %a", 6), compile(kernel("tanh %a", 6)), /*most=*/5).counts.addressesOnly, 1u);
}

TEST_F(KernelCheckTest, AnotherValue) {
  EXPECT_TRUE(
      has(check(kernel("reverse %a dims [0]", 3), compile(kernel("add %a, %a", 3))).errors, "kernel @k computes "));
  std::string errors = check(kernel("reverse %a dims [0]", 3), compile(kernel("negate %a", 3))).errors;
  EXPECT_TRUE(has(errors, " for element [0] of result 0 ('tensor<3xf32>'), the interpreter "));
  EXPECT_TRUE(has(errors, "; they may be "));
}

// An empty reduction gives the identity of its type: the smallest i32 is -2^31.
TEST_F(KernelCheckTest, NothingToCombineInAnyIntegerType) {
  for (std::string type : {"i1", "i8", "i16", "i32", "i64"})
    for (std::string kind : {"max", "min", "and", "or", "product", "sum"}) {
      std::string four = "tensor<4x" + type + ">", ints = "tensor<2xi64>", none = "tensor<0x4x" + type + ">";
      std::string text = "par.kernel @k(%a: tensor<2x" + type + ">, %e: " + none + ") -> (" + four + ", " + four +
                         ", " + "tensor<2x" + type + ">) attributes {implementation = \"generated\"} {\n" +
                         "%i = par.constant dense<[0, 2]> : " + ints + "\n" + "%0 = par.scatter_reduce " + kind +
                         " %a, %i dim 0 size 4 : tensor<2x" + type + ">, " + ints + " to " + four +
                         "\n%1 = par.reduce " + kind + " %e dims [0] : " + none + " to " + four +
                         "\n%2 = par.cumulative " + kind + " %a dim 0 {exclusive = true} : tensor<2x" + type + ">\n" +
                         "par.return %0, %1, %2 : " + four + ", " + four + ", tensor<2x" + type + ">\n}\n";
      EXPECT_EQ(check(text, compile(text)).errors, "") << kind << " of " << type;
    }
}

// The code reads four numbers where the operand has two.
TEST_F(KernelCheckTest, ReadsAndWritesOutside) {
  CompiledKernels compiled = compile(kernel("tanh %a", 4));
  for (OperandInfo &operand : compiled.kernels[0].operands)
    operand.bytes = 8;
  EXPECT_TRUE(has(check(kernel("tanh %a", 2), compiled).errors,
                  "kernel @k reads operand 0 (tensor<2xf32>, 8 bytes) at byte 8"));
  compiled.kernels[0].operands[0].bytes = 16;
  EXPECT_TRUE(has(check(kernel("tanh %a", 2), compiled).errors,
                  "the code of kernel @k has 16 bytes of operand 0, its type 'tensor<2xf32>' has 8"));
}

TEST_F(KernelCheckTest, WritesWhatItMayOnlyRead) {
  CompiledKernels compiled = compile(kernel("tanh %a", 4));
  compiled.kernels[0].operands[1].access = OperandAccess::Read;
  EXPECT_TRUE(has(check(kernel("tanh %a", 4), compiled).errors,
                  "kernel @k writes operand 1 (tensor<4xf32>, 16 bytes) at byte 0, which it may only read"));
}

TEST_F(KernelCheckTest, MeaningThatIsAnError) {
  std::string text = R"(
    par.kernel @k(%a: tensor<4xf32>) -> tensor<1xf32> attributes {implementation = "generated"} {
      %i = par.constant dense<9> : tensor<1xi64>
      %0 = par.gather %a, %i dim 0 : tensor<4xf32>, tensor<1xi64> to tensor<1xf32>
      par.return %0 : tensor<1xf32>
    })";
  EXPECT_TRUE(has(check(text, compile(text)).errors,
                  "kernel @k cannot be checked: the interpreter fails even with zeros as integers: "
                  "index 9 is out of range [0, 4)"));
}

TEST_F(KernelCheckTest, MissingCode) {
  CompiledKernels compiled = compile(kernel("tanh %a", 4));
  compiled.kernels[0].symbol = "nothing";
  EXPECT_TRUE(has(check(kernel("tanh %a", 4), compiled).errors, "the code of kernel @k has no symbol nothing"));
  compiled.object = "no object";
  EXPECT_TRUE(has(check(kernel("tanh %a", 4), compiled).errors, "cannot load the kernels that were compiled: "));
}

// For a GPU the LLVM IR is run: `with` is inserted before its only return.
TEST_F(KernelCheckTest, EmulatedThreads) {
  auto edited = [&](const std::string &with, const std::string &declared) {
    CompiledKernels compiled = compile(kernel("tanh %a", 4), "cuda");
    for (auto &ir : compiled.ir) {
      size_t end = ir.second.rfind("ret void");
      ir.second.insert(end, with + "\n  ");
      // The optimiser's attributes are wrong for the edited function: that it returns, and its reads.
      size_t facts = ir.second.find("attributes #0 = {");
      ir.second.replace(facts, ir.second.find('}', facts) - facts, "attributes #0 = { nounwind ");
      ir.second += declared + "\n";
    }
    return check(kernel("tanh %a", 4), compiled).errors;
  };
  EXPECT_EQ(edited("", ""), "");
  EXPECT_TRUE(has(edited("call void @llvm.trap()", "declare void @llvm.trap()"), "kernel @k ends with signal 4"));
  EXPECT_TRUE(has(edited("%w = load volatile i8, ptr inttoptr (i64 4096 to ptr)", ""),
                  "kernel @k reads memory that is of no operand"));
  EXPECT_TRUE(has(
      edited("%w = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()", "declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()"),
      "cannot run kernels of a GPU here: no emulation of llvm.nvvm.read.ptx.sreg.nctaid.x"));
  // Every second thread waits for the others.
  EXPECT_TRUE(has(
      edited("%w = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  %v = trunc i32 %w to i1\n"
             "  br i1 %v, label %one, label %other\none:\n  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
             "  br label %other\nother:",
             "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)"),
      "kernel @k has threads that wait for ever"));
  // 256 threads at least are more than a tenth of this.
  EXPECT_EQ(check(kernel("tanh %a", 400), compile(kernel("tanh %a", 400), "cuda"), /*most=*/1000).counts.notRun, 1u);
}

} // namespace
