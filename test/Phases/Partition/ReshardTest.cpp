// A value that lies one way on a mesh and is brought to lie another way is the same value: random shardings,
// meshes and sizes, sums among them, padding poisoned. PAR_RESHARDS=N draws N of them on each mesh.
#include "par/Phases/Partition/Reshard.h"

#include "../Train/OneOp.h"
#include "par/Interpreter/Interpreter.h"

#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace par;
using namespace par::test;

namespace {

using Sizes = std::vector<int64_t>;

/// Axes in random order, each over some dim, summed over, or neither.
ShardingAttr drawSharding(MLIRContext *context, int64_t rank, MeshAttr mesh, Chooser &choose) {
  ShardingAttr sharding = ShardingAttr::getReplicated(context, rank);
  SmallVector<StringAttr> unreduced, axes(mesh.getNames());
  for (size_t i = axes.size(); i > 1; --i)
    std::swap(axes[i - 1], axes[choose.number(0, i - 1)]);
  for (StringAttr axis : axes) {
    int64_t place = choose.number(0, rank + 1);
    if (place == rank)
      unreduced.push_back(axis);
    if (place >= rank)
      continue;
    SmallVector<StringAttr> longer(sharding.getAxes(place));
    longer.push_back(axis);
    sharding = sharding.withDim(place, longer);
  }
  return sharding.withUnreduced(unreduced);
}

/// One change of layout, built and run on all ranks.
class Change {
public:
  Change(Session &session, const Sizes &sizes, Chooser &choose) : session(session) {
    SmallVector<StringAttr> names;
    for (size_t i = 0; i < sizes.size(); ++i)
      names.push_back(StringAttr::get(&session.context, std::string(1, 'a' + i)));
    mesh = MeshAttr::get(&session.context, names, sizes);
    Sizes shape;
    for (int64_t rank = choose.number(1, 3); rank > 0; --rank)
      shape.push_back(choose.number(1, 13));
    global = RankedTensorType::get(shape, Builder(&session.context).getF64Type());
    from = drawSharding(&session.context, shape.size(), mesh, choose);
    to = drawSharding(&session.context, shape.size(), mesh, choose);
    whole = drawTensor(global, {shape, -1, 1}, choose, 0);
  }

  std::string text() const {
    std::string text;
    llvm::raw_string_ostream(text) << global << " on " << mesh << " from " << from << " to " << to << "\n" << *module;
    return text;
  }

  void build(ReshardPaths &paths) {
    Location loc = UnknownLoc::get(&session.context);
    module = ModuleOp::create(loc);
    OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
    StageOp::create(builder, loc, "s0", mesh, llvm::to_vector(llvm::seq<int64_t>(0, mesh.getRanks())));
    Type inner = from.getLocalType(global, mesh), outer = to.getLocalType(global, mesh);
    fragment =
        FragmentOp::create(builder, loc, "f", builder.getFunctionType({inner}, {outer}), "s0", FragmentKind::reduce);
    fragment.setLocal(true);
    builder.setInsertionPointToEnd(&fragment.getBlock());
    ReturnOp::create(builder, loc, buildReshard(builder, loc, fragment.getArgument(0), global, from, to, mesh, paths));
    ASSERT_TRUE(succeeded(verify(*module))) << text();
  }

  void run() {
    SmallVector<interp::RankValues> values(mesh.getRanks());
    for (auto [known, shard] : llvm::zip(values, interp::distribute(whole, from, mesh)))
      known[fragment.getArgument(0)] = shard;
    ASSERT_TRUE(succeeded(interp::runBlock(fragment.getBlock(), values, mesh))) << text();
    SmallVector<Tensor> shards;
    for (interp::RankValues &known : values)
      shards.push_back(known.lookup(fragment.getTerminator()->getOperand(0)));
    FailureOr<Tensor> joined = interp::collect(fragment, shards, global, to, mesh);
    ASSERT_TRUE(succeeded(joined)) << text();
    for (auto [found, expected] : llvm::zip(joined->floats(), whole.floats()))
      ASSERT_NEAR(found, expected, 1e-12) << text();
  }

  /// Every group is in the mesh's order; how many collectives there are.
  unsigned countCollectives() {
    unsigned count = 0;
    for (Operation &op : fragment.getBlock())
      if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp>(op)) {
        SmallVector<StringAttr> axes = getAxes(op.getAttrOfType<ArrayAttr>("axes"));
        EXPECT_TRUE(llvm::is_sorted(axes, [](auto a, auto b) { return a.getValue() < b.getValue(); })) << text();
        ++count;
      }
    return count;
  }

private:
  Session &session;
  MeshAttr mesh;
  RankedTensorType global;
  ShardingAttr from, to;
  Tensor whole;
  OwningOpRef<ModuleOp> module;
  FragmentOp fragment;
};

class Reshards : public ::testing::TestWithParam<Sizes> {};

TEST_P(Reshards, KeepTheValue) {
  Session session;
  ReshardPaths paths(llvm::cantFail(Hardware::find("h100-sxm")));
  std::set<unsigned> counts;
  for (unsigned round = 0, end = drawsOf("PAR_RESHARDS", 150); round < end; ++round) {
    Chooser choose(1000 * GetParam().size() + GetParam().front() + 17 * round, round % 4, 4);
    Change change(session, GetParam(), choose);
    change.build(paths);
    change.run();
    counts.insert(change.countCollectives());
    if (HasFatalFailure())
      return;
  }
  EXPECT_GE(counts.size(), GetParam().size() + 1); // none to several
}

INSTANTIATE_TEST_SUITE_P(Meshes, Reshards,
                         ::testing::Values(Sizes{2}, Sizes{4}, Sizes{2, 2}, Sizes{3, 2}, Sizes{2, 2, 2},
                                           Sizes{2, 3, 2}),
                         [](const ::testing::TestParamInfo<Sizes> &info) {
                           std::string name = "of";
                           for (int64_t size : info.param)
                             name += "_" + std::to_string(size);
                           return name;
                         });

} // namespace
