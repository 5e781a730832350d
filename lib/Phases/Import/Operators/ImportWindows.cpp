#include "ImportWindows.h"

namespace par {

using namespace mlir;

/// A list attribute with one entry a dim; all `otherwise` if the node has none.
static FailureOr<SmallVector<int64_t>> readList(NodeImporter &importer, StringRef name, size_t count, int64_t otherwise,
                                                int64_t least) {
  const onnx::Attribute *found = importer.node.attribute(std::string_view(name));
  if (!found)
    return SmallVector<int64_t>(count, otherwise);
  if (found->ints.size() != count)
    return importer.error() << "its " << name << " has " << found->ints.size() << " entries, expected " << count;
  for (int64_t value : found->ints)
    if (value < least || value > INT32_MAX)
      return importer.error() << "its " << name << " has the entry " << value << ", expected at least " << least;
  return SmallVector<int64_t>(found->ints.begin(), found->ints.end());
}

FailureOr<Windows> readWindows(NodeImporter &importer, ArrayRef<int64_t> size) {
  size_t rank = size.size();
  for (int64_t length : size)
    if (length < 1 || length > INT32_MAX)
      return importer.error() << "its window has a dim of " << length << ", expected at least 1";
  FailureOr<SmallVector<int64_t>> strides = readList(importer, "strides", rank, 1, 1),
                                  dilations = readList(importer, "dilations", rank, 1, 1),
                                  pads = readList(importer, "pads", 2 * rank, 0, INT32_MIN);
  if (failed(strides) || failed(dilations) || failed(pads))
    return failure();
  auto copy = [](ArrayRef<int64_t> values) { return SmallVector<int64_t, 3>(values); };
  return Windows{copy(size), copy(*strides), copy(ArrayRef(*pads).take_front(rank)),
                 copy(ArrayRef(*pads).drop_front(rank)), copy(*dilations)};
}

/// Pads for as many windows as strides fit into the operand.
static void padToSame(Windows &windows, int64_t dim, int64_t length, bool upper) {
  int64_t count = (length + windows.strides[dim] - 1) / windows.strides[dim];
  int64_t total = std::max<int64_t>((count - 1) * windows.strides[dim] + windows.span(dim) - length, 0);
  windows.low[dim] = upper ? total / 2 : total - total / 2;
  windows.high[dim] = total - windows.low[dim];
}

/// If a window is larger than the input by less than a stride, one window of the input's size, as in PyTorch.
static bool cutToLength(Windows &windows, int64_t dim, int64_t length) {
  int64_t padded = windows.low[dim] + length + windows.high[dim], beyond = windows.span(dim) - padded;
  if (beyond <= 0 || beyond >= windows.strides[dim] || padded < 1)
    return false;
  windows.size[dim] = llvm::divideCeil(padded, windows.dilations[dim]);
  windows.high[dim] -= padded - windows.span(dim);
  return true;
}

/// Pads for one more window if the last does not reach the end, unless it would begin in the padding.
static void padToCeiling(Windows &windows, int64_t dim, int64_t length) {
  if (cutToLength(windows, dim, length))
    return;
  int64_t count = windows.count(dim, length), stride = windows.strides[dim];
  int64_t covered = (count - 1) * stride + windows.span(dim), padded = windows.low[dim] + length + windows.high[dim];
  if (count < 1 || covered >= padded || count * stride >= windows.low[dim] + length)
    return;
  windows.high[dim] += covered + stride - padded;
}

FailureOr<Windows> readWindows(NodeImporter &importer, ArrayRef<int64_t> size, ArrayRef<int64_t> lengths) {
  FailureOr<Windows> windows = size.size() == lengths.size()
                                   ? readWindows(importer, size)
                                   : FailureOr<Windows>(importer.error() << "its window has " << size.size()
                                                                         << " dims, its operand " << lengths.size());
  if (failed(windows))
    return failure();
  std::string_view pad = importer.node.stringAttribute("auto_pad", "NOTSET");
  if (pad != "NOTSET" && pad != "VALID" && pad != "SAME_UPPER" && pad != "SAME_LOWER" && !pad.empty())
    return importer.error() << "its auto_pad is \"" << StringRef(pad) << "\"";
  for (int64_t dim = 0; dim < windows->rank(); ++dim) {
    if (pad == "SAME_UPPER" || pad == "SAME_LOWER")
      padToSame(*windows, dim, lengths[dim], pad == "SAME_UPPER");
    else if (pad == "VALID")
      windows->low[dim] = windows->high[dim] = 0;
    if (importer.node.intAttribute("ceil_mode", 0) != 0)
      padToCeiling(*windows, dim, lengths[dim]);
    if (windows->count(dim, lengths[dim]) < 1)
      return importer.error() << "no window of " << windows->span(dim) << " elements fits spatial dim " << dim << " of "
                              << lengths[dim];
  }
  return windows;
}

FailureOr<Value> spatialOperand(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  if (type.getRank() < 3)
    return importer.error() << "its operand is " << type << ", expected a batch, channels and spatial dims";
  return x;
}

} // namespace par
