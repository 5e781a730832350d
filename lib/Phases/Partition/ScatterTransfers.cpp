// Transfers in parts (Narayanan et al. 2021, section 4.1): ranks of a stage that hold a value alike, as those of a
// tensor axis, send a part of it each over their own links, and the next stage gathers it over its faster ones.
#include "par/Base/PlanPlace.h"
#include "par/Phases/Partition/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_SCATTERTRANSFERSPASS
#include "par/Phases/Partition/Passes.h.inc"

/// The first dim whose shards the axis divides.
static std::optional<int64_t> findDim(DistType type, MeshAttr mesh, StringAttr axis) {
  ShardingAttr sharding = type.getSharding();
  for (auto [dim, size] : llvm::enumerate(type.getTensor().getShape())) {
    SmallVector<StringAttr> axes(sharding.getAxes(dim));
    axes.push_back(axis);
    if (int64_t shards = mesh.getSize(axes); size >= shards && size % shards == 0)
      return dim;
  }
  return std::nullopt;
}

/// Axes of several ranks that do not shard the value.
static SmallVector<StringAttr> freeAxes(DistType type, MeshAttr mesh) {
  return llvm::filter_to_vector(
      mesh.getNames(), [&](StringAttr axis) { return mesh.getSize(axis) > 1 && !type.getSharding().uses(axis); });
}

/// The sharding of the value over all axes that can shard it.
static ShardingAttr scattered(DistType type, MeshAttr mesh) {
  for (StringAttr axis : freeAxes(type, mesh))
    if (std::optional<int64_t> dim = findDim(type, mesh, axis)) {
      SmallVector<StringAttr> axes(type.getSharding().getAxes(*dim));
      axes.push_back(axis);
      type = type.withSharding(type.getSharding().withDim(*dim, axes));
    }
  return type.getSharding();
}

/// The value in this sharding: before it was gathered, if it was received so.
static Value shard(OpBuilder &builder, Location loc, Value value, DistType type) {
  auto gathered = value.getDefiningOp<ReshardOp>();
  if (gathered && gathered.getOperand().getType() == type)
    return gathered.getOperand();
  return ReshardOp::create(builder, loc, type, value);
}

static void scatter(TransferOp transfer, ShardingAttr sharding) {
  OpBuilder builder(transfer);
  Location loc = transfer.getLoc();
  DistType from = transfer.getOperand().getType(), to = transfer.getType();
  Value part = shard(builder, loc, transfer.getOperand(), from.withSharding(sharding));
  Value sent = TransferOp::create(builder, loc, to.withSharding(sharding), part);
  transfer.replaceAllUsesWith(ReshardOp::create(builder, loc, to, sent).getResult());
  transfer.erase();
}

namespace {
struct ScatterTransfersPass : impl::ScatterTransfersPassBase<ScatterTransfersPass> {
  using Base::Base;

  /// Says why the largest value cannot be sent in parts.
  void refuse(TransferOp transfer) {
    InFlightDiagnostic error = emitError(placeInPlan(&getContext(), said))
                               << "pipeline.scatter_gather: nothing can be sent in parts: ";
    if (!transfer) {
      error << "no value of a microbatch crosses between stages of equal meshes";
      return;
    }
    DistType type = transfer.getOperand().getType();
    MeshAttr mesh = getMesh(transfer, type.getStage());
    SmallVector<StringAttr> axes = freeAxes(type, mesh);
    if (axes.empty())
      error << type.getTensor() << ", which leaves stage " << type.getStage()
            << ", is sharded over all axes of several ranks there already";
    else
      error << "the " << mesh.getSize(axes.front()) << " ranks of axis " << axes.front()
            << " divide no dim of the shards of " << type.getTensor() << ", which leaves stage " << type.getStage();
  }

  void runOnOperation() override {
    SmallVector<TransferOp> transfers;
    getOperation().walk([&](TransferOp transfer) {
      DistType from = transfer.getOperand().getType(), to = transfer.getType();
      bool alike = getMesh(transfer, from.getStage()) == getMesh(transfer, to.getStage());
      if (alike && from.getSharding() == to.getSharding() && transfer->getParentOfType<LoopOp>())
        transfers.push_back(transfer);
    });
    TransferOp largest;
    bool any = false;
    for (TransferOp transfer : transfers) {
      DistType type = transfer.getOperand().getType();
      if (!largest || type.getTensor().getNumElements() > largest.getType().getTensor().getNumElements())
        largest = transfer;
      ShardingAttr sharding = scattered(type, getMesh(transfer, type.getStage()));
      if (sharding == type.getSharding())
        continue;
      any = true;
      if (largest == transfer)
        largest = {};
      scatter(transfer, sharding);
    }
    if (any)
      return;
    refuse(largest);
    signalPassFailure();
  }
};
} // namespace

} // namespace par
