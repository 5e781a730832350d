#include "par/Dialect/ExchangeSides.h"
#include "par/Phases/Partition/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_NESTTRANSFERSPASS
#include "par/Phases/Partition/Passes.h.inc"

namespace {

/// One transfer between stages of different meshes.
class Nesting {
public:
  Nesting(TransferOp transfer, MeshAttr here, MeshAttr there)
      : type(getTensorType(transfer.getType())), here(here), there(there), to(transfer.getType().getSharding()) {}

  /// How the sender has to have it.
  ShardingAttr run(ShardingAttr from) {
    for (int64_t dim = 0; dim < from.getRank(); ++dim)
      while (!nests(dim, from.getAxes(dim)))
        from = from.withDim(dim, from.getAxes(dim).drop_back());
    while (std::optional<ShardingAttr> finer = cut(from))
      from = *finer;
    return from;
  }

private:
  bool nests(int64_t dim, ArrayRef<StringAttr> axes) {
    return Exchange::nests(type.getDimSize(dim), here.getSize(axes), there.getSize(to.getAxes(dim)));
  }

  /// With one more axis on a dim of which the receivers have smaller shards, if that nests too.
  std::optional<ShardingAttr> cut(ShardingAttr from) {
    for (StringAttr axis : here.getNames())
      for (int64_t dim = 0; dim < from.getRank() && !from.uses(axis); ++dim) {
        SmallVector<StringAttr> axes(from.getAxes(dim));
        axes.push_back(axis);
        if (there.getSize(to.getAxes(dim)) % here.getSize(axes) == 0 && nests(dim, axes))
          return from.withDim(dim, axes);
      }
    return std::nullopt;
  }

  RankedTensorType type;
  MeshAttr here, there;
  ShardingAttr to;
};

struct NestTransfersPass : impl::NestTransfersPassBase<NestTransfersPass> {
  void runOnOperation() override {
    getOperation().walk([](TransferOp transfer) {
      DistType from = transfer.getOperand().getType(), to = transfer.getType();
      MeshAttr here = getMesh(transfer, from.getStage()), there = getMesh(transfer, to.getStage());
      if (here == there)
        return;
      ShardingAttr nested = Nesting(transfer, here, there).run(from.getSharding());
      if (nested == from.getSharding())
        return;
      OpBuilder builder(transfer);
      transfer.setOperand(
          ReshardOp::create(builder, transfer.getLoc(), from.withSharding(nested), transfer.getOperand()));
    });
  }
};

} // namespace

} // namespace par
