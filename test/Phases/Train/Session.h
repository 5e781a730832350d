// A context with the dialect, and how tensors are compared.
#pragma once

#include "par/Interpreter/Interpreter.h"
#include "par/Phases/Train/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace par::test {

using interp::Named;
using interp::Outcome;
using interp::Tensor;

/// Errors in the IR fail the test.
struct Session {
  Session() {
    mlir::DialectRegistry registry;
    registerDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
    context.getDiagEngine().registerHandler([](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
        ADD_FAILURE() << diagnostic.str();
      return mlir::success();
    });
  }
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text.str();
    return module;
  }
  mlir::RankedTensorType parseType(llvm::StringRef text) {
    return llvm::cast<mlir::RankedTensorType>(mlir::parseType(text, &context));
  }
  void run(mlir::ModuleOp module, llvm::function_ref<void(mlir::OpPassManager &)> addPasses) {
    mlir::PassManager manager(&context);
    addPasses(manager);
    EXPECT_TRUE(mlir::succeeded(manager.run(module)));
  }
  /// Runs passes, in order.
  void run(mlir::ModuleOp module, llvm::ArrayRef<std::unique_ptr<mlir::Pass> (*)()> passes) {
    run(module, [&](mlir::OpPassManager &manager) {
      for (auto create : passes)
        manager.addPass(create());
    });
  }
  mlir::MLIRContext context;
};

/// Runs a step; empty if it fails.
inline Outcome evaluate(mlir::ModuleOp module, llvm::StringRef step, const Named &variables, const Named &inputs) {
  auto outcome = interp::runStep(module.lookupSymbol<StepOp>(step), variables, inputs);
  EXPECT_TRUE(mlir::succeeded(outcome));
  return mlir::succeeded(outcome) ? *outcome : Outcome();
}

/// Expects equal shapes and elements within `bound` of the largest.
inline void expectClose(const Tensor &actual, const Tensor &expected, double bound, llvm::StringRef what) {
  ASSERT_EQ(actual.getShape(), expected.getShape()) << what.str();
  double largest = 1e-3;
  for (double value : expected.floats())
    largest = std::max(largest, std::abs(value));
  for (int64_t i = 0; i < expected.getSize(); ++i)
    EXPECT_NEAR(actual.floats()[i], expected.floats()[i], bound * largest) << what.str() << ", element " << i;
}

} // namespace par::test
