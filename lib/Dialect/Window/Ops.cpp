#include "../TensorTypes.h"
#include "par/Dialect/Windows.h"

using namespace mlir;

namespace par {

int64_t Windows::elements() const {
  int64_t count = 1;
  for (int64_t length : size)
    count *= length;
  return count;
}

int64_t Windows::count(int64_t dim, int64_t length) const {
  int64_t room = length + low[dim] + high[dim] - span(dim);
  return room < 0 ? 0 : room / strides[dim] + 1;
}

SmallVector<int64_t> Windows::counts(ArrayRef<int64_t> lengths) const {
  SmallVector<int64_t> all;
  for (auto [dim, length] : llvm::enumerate(lengths))
    all.push_back(count(dim, length));
  return all;
}

bool Windows::isInside(int64_t dim, int64_t length) const {
  return position(dim, 0, 0) >= 0 && position(dim, count(dim, length) - 1, size[dim] - 1) < length;
}

/// Every list has one entry a spatial dim, and windows can slide.
static LogicalResult verifyLists(Operation *op, const Windows &windows, int64_t rank) {
  for (auto [name, list] : {std::pair("window", &windows.size),
                            {"strides", &windows.strides},
                            {"low", &windows.low},
                            {"high", &windows.high},
                            {"dilations", &windows.dilations}})
    if (int64_t(list->size()) != rank)
      return op->emitOpError() << name << " has " << list->size() << " entries for " << rank << " spatial dims";
  for (auto [name, list] :
       {std::pair("window", &windows.size), {"strides", &windows.strides}, {"dilations", &windows.dilations}})
    for (int64_t value : *list)
      if (value < 1)
        return op->emitOpError() << name << " has the entry " << value << ", expected at least 1";
  return success();
}

/// Checks that the number of windows over `lengths` is `expected`.
static LogicalResult verifyCounts(Operation *op, const Windows &windows, ArrayRef<int64_t> lengths,
                                  ArrayRef<int64_t> expected) {
  for (int64_t dim = 0; dim < windows.rank(); ++dim)
    if (int64_t count = windows.count(dim, lengths[dim]); count != expected[dim] || count < 1)
      return op->emitOpError() << count << " windows of " << windows.size[dim] << " fit spatial dim " << dim << " of "
                               << lengths[dim] << " elements, its type says " << expected[dim];
  return success();
}

/// [N, C, s...] by [O, C / groups, k...] gives [N, O, x...].
template <typename Op>
static LogicalResult verifyConvolution(Op op) {
  ConvolutionSides sides = sidesOf(op);
  ArrayRef<int64_t> input = shapeOf(sides.input), filter = shapeOf(sides.filter), output = shapeOf(sides.output);
  int64_t groups = op.getGroups();
  if (input.size() < 3 || input.size() != filter.size() || input.size() != output.size())
    return op.emitOpError() << "ranks are " << input.size() << ", " << filter.size() << " and " << output.size()
                            << ", expected equal ones of at least 3";
  Windows windows = Windows::of(op, filter.drop_front(2));
  if (failed(verifyLists(op, windows, input.size() - 2)))
    return failure();
  if (groups < 1 || input[0] != output[0] || filter[0] != output[1] || filter[1] * groups != input[1] ||
      output[1] % groups != 0)
    return op.emitOpError() << "a filter of " << filter[0] << " x " << filter[1] << " channels in " << groups
                            << " groups does not take " << input[0] << " x " << input[1] << " to " << output[0] << " x "
                            << output[1];
  return verifyCounts(op, windows, input.drop_front(2), output.drop_front(2));
}

LogicalResult ConvolutionOp::verify() { return verifyConvolution(*this); }
LogicalResult ConvolutionInputGradOp::verify() { return verifyConvolution(*this); }
LogicalResult ConvolutionFilterGradOp::verify() { return verifyConvolution(*this); }

/// Leading dims are equal, and the trailing dims of `output` are the numbers of windows over those of `input`.
static LogicalResult verifyPool(Operation *op, const Windows &windows, ArrayRef<int64_t> input,
                                ArrayRef<int64_t> output) {
  int64_t rank = windows.rank(), leading = int64_t(input.size()) - rank;
  if (leading < 0 || output.size() != input.size() || input.take_front(leading) != output.take_front(leading))
    return op->emitOpError() << "leading dims differ";
  if (failed(verifyLists(op, windows, rank)))
    return failure();
  return verifyCounts(op, windows, input.drop_front(leading), output.drop_front(leading));
}

/// As verifyPool, but `output` ends in the window's own dims.
static LogicalResult verifyPatches(Operation *op, const Windows &windows, Value input, Value output) {
  ArrayRef<int64_t> patches = shapeOf(output);
  if (patches.size() < size_t(windows.rank()) || patches.take_back(windows.rank()) != ArrayRef<int64_t>(windows.size))
    return op->emitOpError() << output.getType() << " does not end in its window";
  if (getElementTypeOrSelf(input.getType()) != getElementTypeOrSelf(output.getType()))
    return op->emitOpError() << "element types differ";
  return verifyPool(op, windows, shapeOf(input), patches.drop_back(windows.rank()));
}

LogicalResult PatchesOp::verify() {
  if (getValue().getType() != getElementTypeOrSelf(getOperand().getType()))
    return emitOpError() << "pads with " << getValue() << ", its operand is " << getOperand().getType();
  return verifyPatches(*this, Windows::of(*this, getWindow()), getOperand(), getResult());
}

LogicalResult FoldPatchesOp::verify() {
  ArrayRef<int64_t> patches = shapeOf(getOperand());
  if (patches.size() < getStrides().size())
    return emitOpError() << "has " << getStrides().size() << " strides for " << getOperand().getType();
  return verifyPatches(*this, Windows::of(*this, patches.take_back(getStrides().size())), getResult(), getOperand());
}

LogicalResult MaxPoolOp::verify() {
  if (getElementTypeOrSelf(getOperand().getType()) != getElementTypeOrSelf(getResult().getType()))
    return emitOpError() << "element types differ";
  return verifyPool(*this, Windows::of(*this, getWindow()), shapeOf(getOperand()), shapeOf(getResult()));
}

LogicalResult MaxPoolGradOp::verify() {
  return verifyPool(*this, Windows::of(*this, getWindow()), shapeOf(getOperand()), shapeOf(getCotangent()));
}

} // namespace par
