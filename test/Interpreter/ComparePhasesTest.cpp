// Messages about two modules that do not compute the same.
#include "par/Interpreter/Interpreter.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace par;

namespace {

class ComparePhases : public ::testing::Test {
protected:
  ComparePhases() {
    DialectRegistry registry;
    registerDialect(registry);
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
    context->printOpOnDiagnostic(false);
    context->getDiagEngine().registerHandler([&](Diagnostic &diagnostic) { said += diagnostic.str() + "\n"; });
  }

  OwningOpRef<ModuleOp> parse(const std::string &text) {
    auto module = parseSourceString<ModuleOp>(text, context.get());
    EXPECT_TRUE(module) << said;
    return module;
  }

  /// The messages of the comparison; empty if the modules agree.
  std::string compare(const std::string &before, const std::string &after) {
    auto first = parse(before), second = parse(after);
    bool same = succeeded(interp::comparePhases(*first, *second, /*seed=*/3));
    EXPECT_EQ(same, said.empty());
    return said;
  }

  std::unique_ptr<MLIRContext> context;
  std::string said;
};

const char *const negates = R"(
  par.variable @w parameter : tensor<2xf32>
  par.step @e(%x: tensor<2xf32>) -> tensor<2xf32> attributes {inputs = ["x"], outputs = ["y"]} {
    %w = par.read @w : tensor<2xf32>
    %0 = par.negate %x : tensor<2xf32>
    %1 = par.multiply %0, %w : tensor<2xf32>
    par.write %1 to @w : tensor<2xf32>
    par.return %0 : tensor<2xf32>
  })";

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

TEST_F(ComparePhases, EqualModulesAgree) { EXPECT_EQ(compare(negates, negates), ""); }

TEST_F(ComparePhases, ADifferenceInTheLastDigitsIsAllowed) {
  EXPECT_EQ(compare(negates, replaced(negates, "%0 = par.negate %x : tensor<2xf32>",
                                      "%three = par.constant dense<-0.75> : tensor<2xf32>\n"
                                      "%a = par.divide %x, %three : tensor<2xf32>\n"
                                      "%m = par.constant dense<0.75> : tensor<2xf32>\n"
                                      "%0 = par.multiply %a, %m : tensor<2xf32>")),
            "");
}

TEST_F(ComparePhases, AnotherOutputIsTold) {
  std::string text = compare(negates, replaced(negates, "par.negate", "par.exp"));
  EXPECT_NE(text.find("output \"y\" differs by "), std::string::npos) << text;
  EXPECT_NE(text.find(" after the phase"), std::string::npos) << text;
}

TEST_F(ComparePhases, AnotherWrittenVariableIsTold) {
  std::string text = compare(negates, replaced(negates, "par.multiply %0, %w", "par.multiply %x, %w"));
  EXPECT_NE(text.find("variable \"w\" differs by "), std::string::npos) << text;
}

TEST_F(ComparePhases, AnotherShapeIsTold) {
  std::string text = compare(negates, R"(
    par.variable @w parameter : tensor<2xf32>
    par.step @e(%x: tensor<2xf32>) -> tensor<1xf32> attributes {inputs = ["x"], outputs = ["y"]} {
      %0 = par.slice %x [0] to [1] by [1] : tensor<2xf32> to tensor<1xf32>
      par.return %0 : tensor<1xf32>
    })");
  EXPECT_NE(text.find("output \"y\" was 'tensor<2xf32>', is 'tensor<1xf32>'"), std::string::npos) << text;
}

TEST_F(ComparePhases, WhatIsGoneIsTold) {
  std::string write = "par.write %1 to @w : tensor<2xf32>";
  EXPECT_NE(compare(negates, replaced(negates, write, "")).find("variable \"w\" is gone after the phase"),
            std::string::npos);
  said.clear();
  EXPECT_NE(compare(negates, "").find("is gone after the phase"), std::string::npos);
}

TEST_F(ComparePhases, GradientsAreCompared) {
  std::string before = replaced(negates, "par.write %1", "%g = par.gradient %1 of @w : tensor<2xf32>\npar.write %1");
  std::string after = replaced(before, "par.gradient %1", "par.gradient %0");
  EXPECT_NE(compare(before, after).find("gradient of \"w\" differs by "), std::string::npos) << said;
}

TEST_F(ComparePhases, NanIsWarnedOf) {
  std::string nan = replaced(negates, "%0 = par.negate %x",
                             "%n = par.constant dense<-1.0> : tensor<2xf32>\n"
                             "%0 = par.log %n");
  auto first = parse(nan), second = parse(nan);
  EXPECT_TRUE(succeeded(interp::comparePhases(*first, *second, /*seed=*/3)));
  EXPECT_NE(said.find("output \"y\" is NaN on these inputs, which proves little"), std::string::npos) << said;
}

TEST_F(ComparePhases, InputsMustFitTheStep) {
  auto module = parse(negates);
  auto step = module->lookupSymbol<StepOp>("e");
  EXPECT_TRUE(failed(interp::runStep(step, {}, {})));
  EXPECT_NE(said.find("input \"x\" has no value"), std::string::npos) << said;
  interp::Named inputs;
  inputs["x"] = interp::Tensor(RankedTensorType::get({3}, Float32Type::get(context.get())));
  EXPECT_TRUE(failed(interp::runStep(step, {}, inputs)));
  EXPECT_NE(said.find("input \"x\" is 'tensor<3xf32>', the step takes 'tensor<2xf32>'"), std::string::npos) << said;
}

TEST_F(ComparePhases, LabelsStayBelowTheClassesAndSomeAreIgnored) {
  auto module = parse(R"(
    par.step @e(%ids: tensor<64xi64>, %y: tensor<64xi64>) -> tensor<64xf32>
        attributes {inputs = ["ids", "labels"], outputs = ["t"]} {
      %t = par.constant dense<0.5> : tensor<5x3xf32>
      %z = par.gather %t, %ids dim 0 : tensor<5x3xf32>, tensor<64xi64> to tensor<64x3xf32>
      %l, %lse = par.cross_entropy %z, %y ignore -7
          : (tensor<64x3xf32>, tensor<64xi64>) -> (tensor<64xf32>, tensor<64xf32>)
      par.return %l : tensor<64xf32>
    })");
  interp::Named inputs = interp::makeInputs(module->lookupSymbol<StepOp>("e"), /*seed=*/1);
  bool ignored = false;
  for (int64_t label : inputs["labels"].ints()) {
    EXPECT_TRUE((label >= 0 && label < 3) || label == -7) << label;
    ignored |= label == -7;
  }
  EXPECT_TRUE(ignored);
  for (int64_t id : inputs["ids"].ints())
    EXPECT_TRUE(id >= 0 && id < 5) << id;
}

} // namespace
