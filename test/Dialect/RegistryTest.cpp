// Every op of the dialect has all concerns: no op can be added without them and their tests.
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Dialect/Interfaces/Interpretable.h"
#include "par/Dialect/Interfaces/Lowerable.h"
#include "par/Dialect/Interfaces/ShardingRule.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace par;

namespace {

struct Registry : testing::Test {
  Registry() {
    DialectRegistry registry;
    registerDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<ParDialect>();
    ops = context.getRegisteredOperationsByDialect("par");
  }

  MLIRContext context;
  ArrayRef<RegisteredOperationName> ops;
};

/// The CHECK lines of the room's round-trip tests.
std::string roundTrips() {
  std::string checks;
  std::error_code failure;
  for (llvm::sys::fs::directory_iterator file(PAR_SOURCE_DIR "/test/Dialect", failure), end; file != end;
       file.increment(failure)) {
    if (!StringRef(file->path()).ends_with("round-trip.mlir"))
      continue;
    auto text = llvm::MemoryBuffer::getFile(file->path());
    EXPECT_TRUE(text) << file->path();
    for (StringRef rest = (*text)->getBuffer(); !rest.empty();) {
      auto [line, more] = rest.split('\n');
      if (line.contains("CHECK"))
        checks += (line + "\n").str();
      rest = more;
    }
  }
  return checks;
}

bool names(StringRef text, StringRef op) {
  for (size_t at = text.find(op); at != StringRef::npos; at = text.find(op, at + 1)) {
    char next = at + op.size() < text.size() ? text[at + op.size()] : ' ';
    if (!llvm::isAlnum(next) && next != '_')
      return true;
  }
  return false;
}

} // namespace

TEST_F(Registry, EveryOpHasARoundTrip) {
  std::string checks = roundTrips();
  for (RegisteredOperationName op : ops)
    EXPECT_TRUE(names(checks, op.getStringRef()))
        << op.getStringRef().str() << " is in no CHECK line of test/Dialect/*-round-trip.mlir";
}

// An op with a rule is a tensor op: it is interpreted, has a cost unless it only marks a value, and is lowered or
// decomposed.
TEST_F(Registry, EveryTensorOpHasItsConcerns) {
  constexpr StringRef markers[] = {"par.constrain", "par.collect", "par.cotangent", "par.gradient"};
  for (RegisteredOperationName op : ops) {
    std::string name = op.getStringRef().str();
    if (name == "par.done") // of programs, where nothing is sharded or lowered any more; passes values on
      continue;
    bool isMarker = llvm::is_contained(markers, op.getStringRef());
    bool isTensorOp = op.hasInterface<ShardingRuleOpInterface>();
    EXPECT_EQ(op.hasInterface<InterpretableOpInterface>(), isTensorOp) << name;
    EXPECT_EQ(op.hasInterface<CostOpInterface>(), isTensorOp && !isMarker) << name;
    bool emitted = op.hasInterface<LowerableOpInterface>() || op.hasInterface<DecomposableOpInterface>();
    EXPECT_EQ(emitted, isTensorOp && !isMarker) << name;
  }
}

namespace {
struct FreeSgd : CostOpInterface::ExternalModel<FreeSgd, SgdOp> {
  int64_t getFlops(Operation *) const { return 0; }
  bool isFusable(Operation *) const { return true; }
};
struct LoopCost : CostOpInterface::ExternalModel<LoopCost, LoopOp> {
  int64_t getFlops(Operation *) const { return 0; }
  bool isFusable(Operation *) const { return true; }
};
} // namespace

// With two models MLIR keeps the first and drops the second; the same one may come again with another registry.
TEST_F(Registry, ASecondModelEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((attachOnce<SgdOp, FreeSgd>(context)),
               "par.sgd has two models of par::CostOpInterface: it is listed twice");
  attachOnce<LoopOp, LoopCost>(context);
  attachOnce<LoopOp, LoopCost>(context);
}
