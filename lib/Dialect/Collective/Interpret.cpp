#include "../TensorTypes.h"
#include "par/Base/Indexing.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Combine.h"
#include "par/Dialect/Interfaces/Interpretable.h"

#include <cmath>

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

using PerRank = SmallVector<SmallVector<Tensor>>;

/// The part of `source` along `dim` from `start`, of the given type.
Tensor cut(const Tensor &source, RankedTensorType type, int64_t dim, int64_t start) {
  SmallVector<int64_t> strides = getStrides(source.getShape());
  return pick(source, type, strides, start * strides[dim]);
}

/// Writes `part` into `whole` along `dim` at `start`.
void put(Tensor &whole, const Tensor &part, int64_t dim, int64_t start) {
  SmallVector<int64_t> starts(whole.getShape().size(), 0);
  starts[dim] = start;
  place(whole, part, starts);
}

/// Runs `act(i, group)` for every operand and group of the mesh.
template <typename Act>
PerRank forGroups(Operation *op, ArrayRef<SmallVector<Tensor>> operands, MeshAttr mesh, ArrayAttr axes, Act act) {
  PerRank results(operands.size(), SmallVector<Tensor>(op->getNumResults()));
  for (ArrayRef<int64_t> group : mesh.getGroups(getAxes(axes)))
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      act(i, group, results);
  return results;
}

Tensor reduceGroup(ArrayRef<SmallVector<Tensor>> operands, unsigned i, ArrayRef<int64_t> group, ReduceKind kind) {
  Tensor sum = operands[group.front()][i];
  for (int64_t rank : group.drop_front())
    combineInto(kind, sum, operands[rank][i]);
  return sum;
}

struct AllReduceInterpreter : InterpretableCollectiveInterface::ExternalModel<AllReduceInterpreter, AllReduceOp> {
  FailureOr<PerRank> interpretRanks(Operation *op, ArrayRef<SmallVector<Tensor>> operands, MeshAttr mesh) const {
    auto reduce = cast<AllReduceOp>(op);
    return forGroups(op, operands, mesh, reduce.getAxes(), [&](unsigned i, ArrayRef<int64_t> group, PerRank &results) {
      Tensor sum = reduceGroup(operands, i, group, reduce.getKind());
      for (int64_t rank : group)
        results[rank][i] = sum;
    });
  }
};

struct AllGatherInterpreter : InterpretableCollectiveInterface::ExternalModel<AllGatherInterpreter, AllGatherOp> {
  FailureOr<PerRank> interpretRanks(Operation *op, ArrayRef<SmallVector<Tensor>> operands, MeshAttr mesh) const {
    auto gather = cast<AllGatherOp>(op);
    return forGroups(op, operands, mesh, gather.getAxes(), [&](unsigned i, ArrayRef<int64_t> group, PerRank &results) {
      Tensor whole(resultType(op, i));
      int64_t dim = gather.getDims()[i];
      for (auto [member, rank] : llvm::enumerate(group))
        put(whole, operands[rank][i], dim, member * operands[rank][i].getShape()[dim]);
      for (int64_t rank : group)
        results[rank][i] = whole;
    });
  }
};

struct ReduceScatterInterpreter
    : InterpretableCollectiveInterface::ExternalModel<ReduceScatterInterpreter, ReduceScatterOp> {
  FailureOr<PerRank> interpretRanks(Operation *op, ArrayRef<SmallVector<Tensor>> operands, MeshAttr mesh) const {
    auto scatter = cast<ReduceScatterOp>(op);
    return forGroups(op, operands, mesh, scatter.getAxes(), [&](unsigned i, ArrayRef<int64_t> group, PerRank &results) {
      Tensor sum = reduceGroup(operands, i, group, scatter.getKind());
      int64_t dim = scatter.getDims()[i];
      for (auto [member, rank] : llvm::enumerate(group))
        results[rank][i] = cut(sum, resultType(op, i), dim, member * resultType(op, i).getDimSize(dim));
    });
  }
};

struct AllToAllInterpreter : InterpretableCollectiveInterface::ExternalModel<AllToAllInterpreter, AllToAllOp> {
  FailureOr<PerRank> interpretRanks(Operation *op, ArrayRef<SmallVector<Tensor>> operands, MeshAttr mesh) const {
    auto exchange = cast<AllToAllOp>(op);
    return forGroups(op, operands, mesh, exchange.getAxes(),
                     [&](unsigned i, ArrayRef<int64_t> group, PerRank &results) {
                       int64_t split = exchange.getSplitDims()[i], concat = exchange.getConcatDims()[i];
                       RankedTensorType type = resultType(op, i);
                       for (auto [member, rank] : llvm::enumerate(group)) {
                         Tensor whole(type);
                         for (auto [other, from] : llvm::enumerate(group)) {
                           SmallVector<int64_t> shape(operands[from][i].getShape());
                           shape[split] /= group.size();
                           Tensor part = cut(operands[from][i], type.clone(shape), split, member * shape[split]);
                           put(whole, part, concat, other * shape[concat]);
                         }
                         results[rank][i] = whole;
                       }
                     });
  }
};

struct AxisIndexInterpreter : InterpretableCollectiveInterface::ExternalModel<AxisIndexInterpreter, AxisIndexOp> {
  FailureOr<PerRank> interpretRanks(Operation *op, ArrayRef<SmallVector<Tensor>> operands, MeshAttr mesh) const {
    PerRank results;
    for (int64_t rank = 0, end = mesh.getRanks(); rank < end; ++rank)
      results.push_back(
          {Tensor::ofInts(resultType(op, 0), {mesh.getIndex(rank, getAxes(cast<AxisIndexOp>(op).getAxes()))})});
    return results;
  }
};

} // namespace

void registerCollectiveInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<AllReduceOp, AllReduceInterpreter>(*context);
    attachOnce<AllGatherOp, AllGatherInterpreter>(*context);
    attachOnce<ReduceScatterOp, ReduceScatterInterpreter>(*context);
    attachOnce<AllToAllOp, AllToAllInterpreter>(*context);
    attachOnce<AxisIndexOp, AxisIndexInterpreter>(*context);
  });
}

} // namespace par
