#include "par/Dialect/Interfaces/Cost.h"
#include "../TensorTypes.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Windows.h"

using namespace mlir;

namespace par {
namespace {

/// Not fusable: a library call of its own.
template <typename Op>
struct ConvolutionCost : CostOpInterface::ExternalModel<ConvolutionCost<Op>, Op> {
  /// One multiplication and one addition for every output, input channel of its group and element of the window.
  int64_t getFlops(Operation *op) const {
    ConvolutionSides sides = sidesOf(cast<Op>(op));
    RankedTensorType filter = typeOf(sides.filter);
    return 2 * typeOf(sides.output).getNumElements() *
           (filter.getNumElements() / std::max<int64_t>(filter.getDimSize(0), 1));
  }
  bool isFusable(Operation *) const { return false; }
};

/// Moves elements; a reduction of the windows computes them at its reads.
struct PatchesCost : CostOpInterface::ExternalModel<PatchesCost, PatchesOp> {
  int64_t getFlops(Operation *) const { return 0; }
  bool isFusable(Operation *) const { return true; }
};

struct FoldPatchesCost : CostOpInterface::ExternalModel<FoldPatchesCost, FoldPatchesOp> {
  int64_t getFlops(Operation *op) const { return typeOf(op->getOperand(0)).getNumElements(); }
  bool isFusable(Operation *) const { return false; }
};

template <typename Op, int passes>
struct PoolCost : CostOpInterface::ExternalModel<PoolCost<Op, passes>, Op> {
  int64_t getFlops(Operation *op) const {
    auto pool = cast<Op>(op);
    int64_t windows = typeOf(passes == 1 ? op->getResult(0) : op->getOperand(0)).getNumElements();
    return passes * windows * Windows::of(pool, pool.getWindow()).elements();
  }
  bool isFusable(Operation *) const { return false; }
};

} // namespace

void registerWindowCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ConvolutionOp, ConvolutionCost<ConvolutionOp>>(*context);
    attachOnce<ConvolutionInputGradOp, ConvolutionCost<ConvolutionInputGradOp>>(*context);
    attachOnce<ConvolutionFilterGradOp, ConvolutionCost<ConvolutionFilterGradOp>>(*context);
    attachOnce<PatchesOp, PatchesCost>(*context);
    attachOnce<FoldPatchesOp, FoldPatchesCost>(*context);
    attachOnce<MaxPoolOp, PoolCost<MaxPoolOp, 1>>(*context);
    attachOnce<MaxPoolGradOp, PoolCost<MaxPoolGradOp, 2>>(*context);
  });
}

} // namespace par
