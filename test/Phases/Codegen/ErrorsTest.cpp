// Codegen's errors.
#include "LoadedKernels.h"

#include "mlir/IR/Diagnostics.h"

#include "../../../lib/Phases/Codegen/CPU/NativeCode.h"

using namespace mlir;

namespace {

/// The errors of compiling `text`, joined.
std::string errorsOf(const std::string &text, const par::CodegenOptions &options = {}) {
  DialectRegistry registry;
  par::registerDialect(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  std::string errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    return success();
  });
  EXPECT_TRUE(failed(par::compileKernels(*module, options)));
  return errors;
}

testing::AssertionResult has(const std::string &text, const std::string &part) {
  if (text.find(part) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not hold \"" << part << "\"";
}

TEST(CodegenErrors, OpWithoutLowering) {
  EXPECT_TRUE(has(errorsOf(R"(
    par.kernel @part(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
      %0 = par.constrain %a <[{"dp"}]> : tensor<4xf32>
      par.return %0 : tensor<4xf32>
    })"),
                  "in kernel @part has no lowering: not supported yet"));
}

TEST(CodegenErrors, ResultOverWhatIsReadLater) {
  EXPECT_TRUE(has(errorsOf(R"(
    par.kernel @turn(%a: tensor<4x4xf32>) -> tensor<4x4xf32>
        attributes {implementation = "generated", tied = array<i64: 0>} {
      %0 = par.transpose %a [1, 0] : tensor<4x4xf32> to tensor<4x4xf32>
      par.return %0 : tensor<4x4xf32>
    })"),
                  "kernel @turn: result 0 cannot take over argument 0, which is read after parts of the "
                  "result are stored"));
}

TEST(CodegenErrors, UnknownIsa) {
  par::CodegenOptions options;
  for (const char *isa : {"pdp-11", "pentium"}) { // the second has 32 bits
    options.isa = isa;
    EXPECT_TRUE(has(errorsOf(R"(
      par.kernel @k(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
        %0 = par.negate %a : tensor<4xf32>
        par.return %0 : tensor<4xf32>
      })",
                             options),
                    std::string("no x86-64 processor or level is called ") + isa));
  }
}

TEST(CodegenErrors, NoFolderForTheLinker) {
  const char *before = getenv("TMPDIR");
  std::string saved = before ? before : "";
  setenv("TMPDIR", "/proc/none", 1);
  std::string errors = errorsOf(R"(
    par.kernel @k(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
      %0 = par.floor %a : tensor<4xf32>
      par.return %0 : tensor<4xf32>
    })");
  before ? setenv("TMPDIR", saved.c_str(), 1) : unsetenv("TMPDIR");
  EXPECT_TRUE(has(errors, "cannot link kernels: cannot write ")) << errors;
}

TEST(CodegenErrors, ObjectThatIsNone) {
  std::string error;
  EXPECT_TRUE(failed(par::cpu::linkObjects({"no object"}, error)));
  EXPECT_TRUE(has(error, "unknown directive"));
}

} // namespace
