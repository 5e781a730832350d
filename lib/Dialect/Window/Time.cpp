#include "../TensorTypes.h"
#include "par/Base/TypeSize.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Timed.h"
#include "par/Dialect/Windows.h"

using namespace mlir;

namespace par {
namespace {

template <typename Op, ConvolutionPass pass>
struct ConvolutionTime : TimedOpInterface::ExternalModel<ConvolutionTime<Op, pass>, Op> {
  Cost getTime(Operation *op, const CostTable &costs) const {
    ConvolutionSides sides = sidesOf(cast<Op>(op));
    RankedTensorType input = typeOf(sides.input), filter = typeOf(sides.filter), output = typeOf(sides.output);
    auto spatial = [](RankedTensorType type) {
      int64_t product = 1;
      for (int64_t size : type.getShape().drop_front(2))
        product *= size;
      return product;
    };
    ConvolutionShape shape{formatOf(input), pass};
    shape.images = input.getDimSize(0);
    shape.channels = filter.getDimSize(1);
    shape.groups = input.getDimSize(1) / std::max<int64_t>(shape.channels, 1);
    shape.outputs = filter.getDimSize(0);
    shape.window = spatial(filter);
    shape.positions = spatial(output);
    return costs.convolution(shape, getByteSize(op->getOperands()) + getByteSize(op->getResults()));
  }
};

} // namespace

void registerWindowTimes(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    using enum ConvolutionPass;
    attachOnce<ConvolutionOp, ConvolutionTime<ConvolutionOp, Forward>>(*context);
    attachOnce<ConvolutionInputGradOp, ConvolutionTime<ConvolutionInputGradOp, Data>>(*context);
    attachOnce<ConvolutionFilterGradOp, ConvolutionTime<ConvolutionFilterGradOp, Weights>>(*context);
  });
}

} // namespace par
