// Convolutions.
#include "ImportWindows.h"

namespace par {
namespace {

using namespace mlir;

/// The result plus the bias of each channel, if the node has one that is not zero.
LogicalResult bindBiased(NodeImporter &importer, Value result) {
  auto type = cast<RankedTensorType>(result.getType());
  const StaticTensor *known = importer.known(2);
  if (!importer.has(2) || (known && known->splat() == 0.0))
    return importer.bind(result);
  FailureOr<Value> bias = importer.tensor(2);
  if (failed(bias))
    return failure();
  auto expected = type.clone(type.getDimSize(1));
  if (bias->getType() != expected)
    return importer.error() << "its bias is " << bias->getType() << ", expected " << expected;
  Value spread = buildBroadcast(importer.builder, importer.loc, *bias, {1}, type.getShape());
  return importer.bind(AddOp::create(importer.builder, importer.loc, result, spread));
}

struct Convolved {
  Value x, filter;
  RankedTensorType type, filterType;
  int64_t groups;
  ArrayRef<int64_t> window() { return filterType.getShape().drop_front(2); }
};

/// Operand and filter of one rank and type; the channels of a `transposed` one's operand are the filter's first dim.
FailureOr<Convolved> readConvolved(NodeImporter &importer, bool transposed) {
  FailureOr<Value> x = spatialOperand(importer), filter = importer.tensor(1);
  if (failed(x) || failed(filter))
    return failure();
  auto type = cast<RankedTensorType>(x->getType()), filterType = cast<RankedTensorType>(filter->getType());
  int64_t groups = importer.node.intAttribute("group", 1);
  if (filterType.getRank() != type.getRank() || filterType.getElementType() != type.getElementType() ||
      !isa<FloatType>(type.getElementType()))
    return importer.error() << "its operand is " << type << " and its filter " << filterType
                            << ", expected floats of one type and rank";
  int64_t channels = transposed ? filterType.getDimSize(0) : filterType.getDimSize(1) * groups;
  if (groups < 1 || filterType.getDimSize(0) % std::max<int64_t>(groups, 1) != 0 || channels != type.getDimSize(1))
    return importer.error() << "its filter is " << filterType << " in " << groups << " groups, its operand " << type;
  const onnx::Attribute *shape = importer.node.attribute("kernel_shape");
  if (shape && ArrayRef(shape->ints) != filterType.getShape().drop_front(2))
    return importer.error() << "its kernel_shape is not that of its filter, " << filterType;
  return Convolved{*x, *filter, type, filterType, groups};
}

LogicalResult importConv(NodeImporter &importer) {
  FailureOr<Convolved> operands = readConvolved(importer, false);
  if (failed(operands))
    return failure();
  ArrayRef<int64_t> lengths = operands->type.getShape().drop_front(2);
  FailureOr<Windows> windows = readWindows(importer, operands->window(), lengths);
  if (failed(windows))
    return failure();
  SmallVector<int64_t> shape{operands->type.getDimSize(0), operands->filterType.getDimSize(0)};
  llvm::append_range(shape, windows->counts(lengths));
  return bindBiased(importer, ConvolutionOp::create(importer.builder, importer.loc, operands->type.clone(shape),
                                                    operands->x, operands->filter, windows->strides, windows->low,
                                                    windows->high, windows->dilations, operands->groups));
}

/// Divides `total` elements to crop (negative: to append) into the pads before and after a dim.
void placePads(NodeImporter &importer, Windows &windows, int64_t dim, int64_t total) {
  bool upper = importer.node.stringAttribute("auto_pad", "NOTSET") == "SAME_UPPER";
  int64_t half = total < 0 ? 0 : total / 2;
  windows.low[dim] = upper ? half : std::max<int64_t>(total, 0) - half;
  windows.high[dim] = total - windows.low[dim];
}

/// The adjoint of a convolution from the result's shape to the operand's.
LogicalResult importConvTranspose(NodeImporter &importer) {
  FailureOr<Convolved> operands = readConvolved(importer, true);
  FailureOr<Windows> windows =
      failed(operands) ? FailureOr<Windows>(failure()) : readWindows(importer, operands->window());
  if (failed(windows))
    return failure();
  ArrayRef<int64_t> lengths = operands->type.getShape().drop_front(2);
  const onnx::Attribute *outputShape = importer.node.attribute("output_shape");
  const onnx::Attribute *extra = importer.node.attribute("output_padding");
  std::string_view pad = importer.node.stringAttribute("auto_pad", "NOTSET");
  if ((extra && extra->ints.size() != lengths.size()) || (outputShape && outputShape->ints.size() < lengths.size()))
    return importer.error() << "its output_padding or output_shape does not have " << lengths.size() << " entries";
  SmallVector<int64_t> shape{operands->type.getDimSize(0), operands->filterType.getDimSize(1) * operands->groups};
  for (int64_t dim = 0; dim < windows->rank(); ++dim) {
    int64_t more = extra ? extra->ints[dim] : 0;
    int64_t reached = windows->strides[dim] * (lengths[dim] - 1) + windows->span(dim), all = reached + more;
    if (outputShape)
      placePads(importer, *windows, dim, all - ArrayRef(outputShape->ints).take_back(lengths.size())[dim]);
    else if (pad == "SAME_UPPER" || pad == "SAME_LOWER")
      placePads(importer, *windows, dim, all - lengths[dim] * windows->strides[dim]);
    else if (pad == "VALID")
      windows->low[dim] = windows->high[dim] = 0;
    shape.push_back(all - windows->low[dim] - windows->high[dim]);
    if (shape.back() < 1 || shape.back() > INT32_MAX)
      return importer.error() << "its result would have " << shape.back() << " elements along spatial dim " << dim;
    // Elements that no window reaches are after the last window; the convolution's count must not include them.
    windows->high[dim] = reached - windows->low[dim] - shape.back();
  }
  return bindBiased(importer,
                    ConvolutionInputGradOp::create(importer.builder, importer.loc, operands->type.clone(shape),
                                                   operands->x, operands->filter, windows->strides, windows->low,
                                                   windows->high, windows->dilations, operands->groups));
}

} // namespace

void addConvolutionImports(ImportTable &table) {
  table["Conv"] = importConv;
  table["ConvTranspose"] = importConvTranspose;
}

} // namespace par
