// Every op of the dialect on random shardings computes the same as on one device. Shapes, attributes, element types and
// shardings of operands and results are drawn; Propagate and Partition treat an op only by its rule. PAR_SHARDINGS=N
// draws N shardings of each kind of case on each mesh instead of a few (check-all-shardings.test).
#include "ShardedCase.h"

#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Phases/Partition/Passes.h"
#include "par/Phases/Propagate/Passes.h"
#include "par/Phases/Split/Passes.h"

using namespace mlir;
using namespace par;
using namespace par::test;

namespace {

constexpr unsigned seed = 11;

std::vector<NamedCase> allCases() {
  std::vector<NamedCase> all = differentiableCases();
  for (const auto &more : {compositeCases(), otherCases(), retypedCases()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// One case on one mesh.
class ShardedOp {
public:
  ShardedOp(Session &session, const MakeCase &make, ArrayRef<int64_t> sizes, unsigned round)
      : session(session),
        choose(seed + 64 * sizes.size() + 7 * sizes.front() + round, round % 4, 4 + 2 * sizes.front()),
        made(make(choose)), op(session, made, choose) {
    mesh = makeMesh(&session.context, sizes);
  }

  /// No input has a batch; operands and results of the step are constrained.
  void constrain() {
    auto step = op.module->lookupSymbol<StepOp>("eval");
    SmallVector<int64_t> batch(step.getBlock().getNumArguments(), -1);
    step.setBatchDimsAttr(Builder(&session.context).getDenseI64ArrayAttr(batch));
    constrainStep(*op.module, mesh, choose);
  }
  void differentiate() { differentiateStep(session, *op.module); }
  void split() {
    session.run(*op.module, [](OpPassManager &manager) { buildSplitPipeline(manager, {}); });
  }
  void propagate() {
    session.run(*op.module, [](OpPassManager &manager) { buildPropagatePipeline(manager, {}); });
  }
  void partition() {
    for (auto fragment : op.module->getOps<FragmentOp>())
      for (Operation &each : fragment.getBlock().without_terminator())
        isCut |= llvm::any_of(each.getResults(), [](Value value) { return !getSharding(value).isReplicated(); });
    session.run(*op.module, [](OpPassManager &manager) { buildPartitionPipeline(manager); });
  }
  /// Values inside of fragments lie anyhow, and are sums over whatever axes.
  void redeclare() {
    for (auto fragment : op.module->getOps<FragmentOp>())
      for (Operation &each : fragment.getBlock().without_terminator())
        for (Value result : each.getResults()) {
          auto type = cast<RankedTensorType>(result.getType());
          bool returned = llvm::is_contained(fragment.getTerminator()->getOperands(), result);
          if (!returned && choose.number(0, 3))
            setSharding(result, drawSharding(&session.context, type.getShape(), mesh, choose,
                                             !type.getElementType().isInteger(1)));
        }
    declared = text();
  }
  std::string text() {
    std::string all;
    llvm::raw_string_ostream(all) << made.text << "\n" << *op.module;
    return all;
  }

  Session &session;
  Chooser choose;
  OpCase made;
  OneOp op;
  MeshAttr mesh;
  std::string declared; ///< the module after redeclare
  bool isCut = false;   ///< something that it computes is
};

using Action = llvm::function_ref<void(ShardedOp &)>;

/// The failure of one draw of a case; empty: none.
std::string findFault(ShardedOp &sharded, const char *step, Action derive, Action distribute) {
  std::string text = sharded.made.text;
  std::string fault = test::findFault([&](const ::testing::TestPartResultArray &faults) {
    ASSERT_TRUE(sharded.op);
    sharded.constrain();
    derive(sharded);
    Outcome whole = sharded.op.evaluate(step);
    text = sharded.text();
    distribute(sharded);
    if (faults.size())
      return;
    Outcome parts = sharded.op.evaluate(step);
    expectSame(parts.outputs, whole.outputs);
    expectSame(parts.written, whole.written);
  });
  return fault.empty() ? fault : fault + "\n" + text + sharded.declared;
}

/// Every case of a list on one mesh, in `rounds` draws each: `distribute` brings the module from constraints
/// to shards.
void checkAll(ArrayRef<NamedCase> cases, ArrayRef<int64_t> mesh, unsigned rounds, const char *step, Action derive,
              Action distribute) {
  Session session;
  size_t cut = 0;
  for (auto &[name, make] : cases)
    for (unsigned round = 0; round < rounds; ++round) {
      ShardedOp sharded(session, make, mesh, round);
      std::string fault = findFault(sharded, step, derive, distribute);
      cut += sharded.isCut;
      if (fault.empty())
        continue;
      ADD_FAILURE() << name << ", round " << round << ": " << fault;
      break;
    }
  llvm::outs() << cases.size() << " kinds of cases, " << rounds << " shardings of each on " << listOf(mesh) << ": "
               << cases.size() * rounds << " cases, " << cut << " of them cut\n";
  // The others are scalars, or have dims of one element.
  EXPECT_GT(cut, cases.size() * rounds / 3);
}

class ShardedOps : public ::testing::TestWithParam<std::vector<int64_t>> {};

TEST_P(ShardedOps, EqualOneDevice) {
  checkAll(
      allCases(), GetParam(), countShardings(4), "eval", [](ShardedOp &) {},
      [](ShardedOp &op) { op.split(), op.propagate(), op.partition(); });
}

// Shardings that Propagate would not choose, results that are declared sums among them.
TEST_P(ShardedOps, EqualOneDeviceHoweverDeclared) {
  checkAll(
      allCases(), GetParam(), countShardings(4), "eval", [](ShardedOp &) {},
      [](ShardedOp &op) { op.split(), op.propagate(), op.redeclare(), op.partition(); });
}

TEST_P(ShardedOps, GradientsEqualOneDevice) {
  checkAll(
      differentiableCases(), GetParam(), countShardings(4), "train", [](ShardedOp &op) { op.differentiate(); },
      [](ShardedOp &op) { op.split(), op.propagate(), op.partition(); });
}

INSTANTIATE_TEST_SUITE_P(Meshes, ShardedOps, ::testing::ValuesIn(meshes), meshName);

// A new op cannot be forgotten above: all that have a rule stand in some fragment that is partitioned.
TEST(ShardedOpsCoverage, IsComplete) {
  Session session;
  llvm::StringSet<> seen;
  auto see = [&](ArrayRef<NamedCase> cases, bool derive) {
    for (auto &[name, make] : cases) {
      ShardedOp sharded(session, make, {2}, 0);
      ASSERT_TRUE(sharded.op);
      sharded.constrain();
      if (derive)
        sharded.differentiate();
      sharded.split();
      for (auto fragment : sharded.op.module->getOps<FragmentOp>())
        for (Operation &op : fragment.getBlock())
          seen.insert(op.getName().getStringRef());
    }
  };
  see(allCases(), false);
  see(differentiableCases(), true);
  // Marks of Train, which Split removes; sparse.test runs the last one after Partition.
  seen.insert("par.cotangent");
  seen.insert("par.collect");
  seen.insert("par.gradient");
  unsigned ops = 0;
  for (RegisteredOperationName name : session.context.getRegisteredOperations())
    if (name.hasInterface<ShardingRuleOpInterface>()) {
      EXPECT_TRUE(seen.contains(name.getStringRef())) << name.getStringRef().str() << " is not tested";
      ++ops;
    }
  llvm::outs() << ops << " ops\n";
}

} // namespace
