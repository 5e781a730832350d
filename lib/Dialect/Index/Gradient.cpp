#include "par/Interfaces/Differentiable.h"

#include "par/Dialect/Par.h"

using namespace mlir;

namespace par {
namespace {

/// Ops that pick and ops that add are each other's adjoints; nothing flows back to indices.
template <typename Pick, typename Add>
struct PickGradient : DifferentiableOpInterface::ExternalModel<PickGradient<Pick, Add>, Pick> {
  FailureOr<SmallVector<Value>> differentiate(Operation *op, OpBuilder &builder,
                                              ArrayRef<Value> cotangents) const {
    auto pick = cast<Pick>(op);
    int64_t dim = pick.getDim(), size = cast<RankedTensorType>(pick.getOperand().getType()).getDimSize(dim);
    return SmallVector<Value>{
        Add::create(builder, op->getLoc(), cotangents.front(), pick.getIndices(), dim, size), Value()};
  }
};

template <typename Add, typename Pick>
struct AddGradient : DifferentiableOpInterface::ExternalModel<AddGradient<Add, Pick>, Add> {
  FailureOr<SmallVector<Value>> differentiate(Operation *op, OpBuilder &builder,
                                              ArrayRef<Value> cotangents) const {
    auto add = cast<Add>(op);
    return SmallVector<Value>{
        Pick::create(builder, op->getLoc(), cotangents.front(), add.getIndices(), add.getDim()), Value()};
  }
};

} // namespace

void registerIndexGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    GatherOp::attachInterface<PickGradient<GatherOp, ScatterAddOp>>(*context);
    TakeOp::attachInterface<PickGradient<TakeOp, PutAddOp>>(*context);
    ScatterAddOp::attachInterface<AddGradient<ScatterAddOp, GatherOp>>(*context);
    PutAddOp::attachInterface<AddGradient<PutAddOp, TakeOp>>(*context);
  });
}

} // namespace par
