#include "par/Base/RankGrid.h"
#include "par/Base/TypeSize.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Collective.h"
#include "par/Dialect/Interfaces/Timed.h"
#include "par/Dialect/StageGroups.h"

using namespace mlir;

namespace par {

RankGroup widestGroup(StageOp stage, ArrayRef<StringAttr> axes, const Hardware &hardware) {
  MeshAttr mesh = stage.getMesh();
  SmallVector<unsigned> chosen;
  for (auto [index, name] : llvm::enumerate(mesh.getNames()))
    if (llvm::is_contained(axes, name))
      chosen.push_back(index);
  if (std::optional<RankGrid> grid = RankGrid::find(mesh.getSizes(), stage.getRanks()))
    if (std::optional<RankGroup> group = grid->groupOf(chosen, hardware))
      return *group;
  RankGroup widest; // of one member, until the first
  for (SmallVector<int64_t> &members : mesh.getGroups(axes)) {
    for (int64_t &member : members)
      member = stage.getRanks()[member];
    RankGroup group = hardware.groupOf(members);
    if (group.members > widest.members || group.isWiderThan(widest))
      widest = group;
  }
  return widest;
}

/// The stage of a fragment's or a program's op.
static StageOp stageOf(Operation *op) {
  if (auto fragment = op->getParentOfType<FragmentOp>())
    return SymbolTable::lookupNearestSymbolFrom<StageOp>(fragment, fragment.getStageAttr());
  auto program = op->getParentOfType<ProgramOp>();
  return program ? SymbolTable::lookupNearestSymbolFrom<StageOp>(program->getParentOp(), program.getFirstStage())
                 : StageOp();
}

namespace {

template <typename Op, format::CollKind kind>
struct CollectiveTime : TimedOpInterface::ExternalModel<CollectiveTime<Op, kind>, Op> {
  Cost getTime(Operation *op, const CostTable &costs) const {
    StageOp stage = stageOf(op);
    if (!stage)
      return {costs.launch()};
    RankGroup group = widestGroup(stage, getAxes(cast<Op>(op).getAxes()), costs.hardware());
    // In the sense of the instruction's n: of a shard, of an exchange what goes to one member.
    bool scatters = kind == format::CollKind::ReduceScatter;
    int64_t bytes = getByteSize(scatters ? ValueRange(op->getResults()) : ValueRange(op->getOperands()));
    return costs.collective(kind, kind == format::CollKind::AllToAll ? bytes / group.members : bytes, group);
  }
};

} // namespace

void registerCollectiveTimes(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    using enum format::CollKind;
    attachOnce<AllReduceOp, CollectiveTime<AllReduceOp, AllReduce>>(*context);
    attachOnce<AllGatherOp, CollectiveTime<AllGatherOp, AllGather>>(*context);
    attachOnce<ReduceScatterOp, CollectiveTime<ReduceScatterOp, ReduceScatter>>(*context);
    attachOnce<AllToAllOp, CollectiveTime<AllToAllOp, AllToAll>>(*context);
  });
}

} // namespace par
