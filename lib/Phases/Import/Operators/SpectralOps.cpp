// Fourier transforms as matmuls with a constant matrix, and windows.
#include "Operands.h"

#include <cmath>
#include <numbers>

namespace par {
namespace {

using namespace mlir;

/// A known scalar input, or an error with a way out.
FailureOr<int64_t> scalarOf(NodeImporter &importer, size_t i, StringRef name) {
  const StaticTensor *known = importer.known(i);
  if (!known || known->getElements() != 1)
    return importer.error() << "its " << name
                            << " depends on data, which an ahead-of-time program cannot hold; export it "
                               "as a constant";
  return known->intAt(0);
}

/// Constants computed from the known integer input i, as floats of `element`'s type.
FailureOr<Value> constant(NodeImporter &importer, size_t i, ArrayRef<int64_t> shape, std::vector<double> values,
                          Type element) {
  FailureOr<Value> value =
      importer.knownAs(i, StaticTensor::ofFloats(onnx::ElementType::F64, shape, std::move(values)));
  return failed(value) ? value : FailureOr<Value>(buildConvert(importer.builder, importer.loc, *value, element));
}

/// One direction of a transform along a dim.
struct Transform {
  int64_t length = 0; ///< elements in the full spectrum, and samples
  bool inverse = false, onesided = false;

  bool givesReal() const { return inverse && onesided; }
  int64_t inputs() const { return givesReal() ? length / 2 + 1 : length; }
  int64_t outputs() const { return onesided && !inverse ? length / 2 + 1 : length; }
  int64_t parts() const { return givesReal() ? 1 : 2; }
  /// Entry (n, c, k, p) is the factor of part c (real, imaginary) of input n in part p of output k: (re, im) times
  /// e^(-+2 pi i n k / N). A real result counts the conjugate half of the spectrum twice.
  std::vector<double> matrix(int64_t components) const;
};

std::vector<double> Transform::matrix(int64_t components) const {
  std::vector<double> entries;
  for (int64_t n = 0; n < inputs(); ++n)
    for (int64_t c = 0; c < components; ++c)
      for (int64_t k = 0; k < outputs(); ++k)
        for (int64_t p = 0; p < parts(); ++p) {
          double angle = 2 * std::numbers::pi * double((n * k) % length) / double(length) * (inverse ? 1 : -1);
          double entry = c == p ? std::cos(angle) : p == 1 ? std::sin(angle) : -std::sin(angle);
          bool twice = givesReal() && n > 0 && 2 * n != length;
          entries.push_back(entry * (twice ? 2 : 1) / (inverse ? double(length) : 1));
        }
  return entries;
}

/// The first `size` elements along a dim, padded with zeros if there are fewer.
Value fit(NodeImporter &importer, Value x, int64_t dim, int64_t size) {
  auto type = cast<RankedTensorType>(x.getType());
  int64_t have = type.getDimSize(dim);
  if (have >= size)
    return importer.slice(x, dim, 0, size);
  SmallVector<int64_t> low(type.getRank(), 0), high(low);
  high[dim] = size - have;
  return PadOp::create(importer.builder, importer.loc, x, low, high,
                       importer.builder.getZeroAttr(type.getElementType()));
}

/// (.., n at dim, .., components) to (.., outputs at dim, .., parts).
FailureOr<Value> transform(NodeImporter &importer, Value x, int64_t dim, const Transform &shape) {
  auto type = cast<RankedTensorType>(x.getType());
  int64_t last = type.getRank() - 1, components = type.getDimSize(last);
  if (shape.length < 1 || dim >= last || components < 1 || components > 2 || (shape.givesReal() && components != 2))
    return importer.error() << "transforms dim " << dim << " of " << type << " to length " << shape.length
                            << ", expected a last dim of one or two parts and another dim";
  // The first condition keeps the product of the second within 64 bits.
  if (shape.length > foldLimit || shape.inputs() * components * shape.outputs() * shape.parts() > foldLimit)
    return importer.unsupported("a length of " + Twine(shape.length));
  FailureOr<Value> matrix = constant(importer, 0, {shape.inputs(), components, shape.outputs(), shape.parts()},
                                     shape.matrix(components), type.getElementType());
  if (failed(matrix))
    return failure();
  Value fitted = fit(importer, x, dim, shape.inputs());
  Value product = buildDot(importer.builder, importer.loc, fitted, *matrix, {dim, last}, {0, 1});
  // The matmul's outputs are its last dims; they belong to `dim`.
  SmallVector<int64_t> order = dimRange(0, dim);
  order.push_back(last - 1);
  llvm::append_range(order, dimRange(dim, last - 1));
  order.push_back(last);
  return importer.transpose(product, order);
}

LogicalResult importDft(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  bool old = importer.opset() < 20;
  int64_t axis = old ? importer.node.intAttribute("axis", 1) : -2;
  if (importer.has(2)) {
    FailureOr<int64_t> given = scalarOf(importer, 2, "axis");
    if (failed(given))
      return failure();
    axis = *given;
  }
  FailureOr<int64_t> dim = normalizeDim(axis, type.getRank());
  if (failed(dim))
    return importer.error() << "its axis is " << axis << ", the operand has rank " << type.getRank();
  Transform shape{0, importer.node.intAttribute("inverse", 0) != 0, importer.node.intAttribute("onesided", 0) != 0};
  int64_t size = type.getDimSize(*dim);
  shape.length = shape.givesReal() ? 2 * (size - 1) : size;
  if (importer.has(1)) {
    FailureOr<int64_t> given = scalarOf(importer, 1, "dft_length");
    if (failed(given))
      return failure();
    shape.length = *given;
  }
  FailureOr<Value> result = transform(importer, *x, *dim, shape);
  return failed(result) ? failure() : importer.bind(*result);
}

/// Frames of the signal, each times the window and transformed.
LogicalResult importStft(NodeImporter &importer) {
  FailureOr<Value> given = importer.tensor(0);
  FailureOr<int64_t> step = scalarOf(importer, 1, "frame_step");
  if (failed(given) || failed(step))
    return failure();
  auto type = cast<RankedTensorType>(given->getType());
  int64_t length = 0;
  Value window;
  if (importer.has(2)) {
    FailureOr<Value> value = importer.tensor(2);
    if (failed(value))
      return failure();
    window = *value;
    length = cast<RankedTensorType>(window.getType()).getNumElements();
  }
  if (importer.has(3)) {
    FailureOr<int64_t> frame = scalarOf(importer, 3, "frame_length");
    if (failed(frame))
      return failure();
    length = *frame;
  }
  int64_t samples = type.getRank() == 3 ? type.getDimSize(1) : 0;
  if (length < 1 || length > samples || *step < 1 ||
      (window && cast<RankedTensorType>(window.getType()).getShape() != ArrayRef(length)))
    return importer.error() << "takes frames of " << length << " every " << *step << " of " << type;
  OpBuilder &builder = importer.builder;
  auto indices = RankedTensorType::get({1 + (samples - length) / *step, length}, builder.getI64Type());
  Term frame = termOf(importer, IotaOp::create(builder, importer.loc, indices, 0));
  Term at = frame * double(*step) + frame.with(IotaOp::create(builder, importer.loc, indices, 1));
  Term frames = frame.with(GatherOp::create(builder, importer.loc, *given, at, 1));
  if (window)
    frames = frames * frames.with(window).broadcast({2}, frames.getShape());
  Transform shape{length, false, importer.node.intAttribute("onesided", 1) != 0};
  FailureOr<Value> result = transform(importer, frames, 2, shape);
  return failed(result) ? failure() : importer.bind(*result);
}

/// c0 + c1 cos(2 pi n / N) + c2 cos(4 pi n / N), with N reduced by one for a symmetric window.
LogicalResult importWindow(NodeImporter &importer, double c0, double c1, double c2) {
  FailureOr<int64_t> size = scalarOf(importer, 0, "size");
  if (failed(size))
    return failure();
  Type element = importer.builder.getF32Type();
  if (importer.node.attribute("output_datatype")) {
    FailureOr<Type> asked = importer.elementType("output_datatype");
    if (failed(asked))
      return failure();
    element = *asked;
  }
  if (*size < 0 || *size > foldLimit)
    return importer.error() << "its size is " << *size;
  double period = importer.node.intAttribute("periodic", 1) != 0 ? double(*size) : double(*size - 1);
  std::vector<double> values;
  for (int64_t n = 0; n < *size; ++n) {
    double angle = 2 * std::numbers::pi * double(n) / period;
    values.push_back(c0 + c1 * std::cos(angle) + c2 * std::cos(2 * angle));
  }
  FailureOr<Value> result = constant(importer, 0, {*size}, std::move(values), element);
  return failed(result) ? failure() : importer.bind(*result);
}

LogicalResult importHann(NodeImporter &importer) { return importWindow(importer, 0.5, -0.5, 0); }
LogicalResult importHamming(NodeImporter &importer) { return importWindow(importer, 25.0 / 46, -21.0 / 46, 0); }
LogicalResult importBlackman(NodeImporter &importer) { return importWindow(importer, 0.42, -0.5, 0.08); }

/// Triangles over the spectrum's bins, evenly spaced on the mel scale, as the standard has them: a band rises
/// from the bin of its lower edge to that of its middle and falls to that of its upper edge.
std::vector<double> melWeights(int64_t bands, int64_t length, ArrayRef<int64_t> edges) {
  int64_t bins = length / 2 + 1;
  std::vector<double> weights(bins * bands);
  auto at = [&](int64_t bin, int64_t band) -> double & {
    return weights[std::clamp<int64_t>(bin, 0, bins - 1) * bands + band];
  };
  for (int64_t band = 0; band < bands; ++band) {
    int64_t low = edges[band], middle = edges[band + 1], high = edges[band + 2];
    for (int64_t bin = low; bin <= middle; ++bin)
      at(bin, band) = middle == low ? 1 : double(bin - low) / double(middle - low);
    for (int64_t bin = middle; bin < high; ++bin)
      at(bin, band) = double(high - bin) / double(high - middle);
  }
  return weights;
}

LogicalResult importMelWeightMatrix(NodeImporter &importer) {
  double numbers[5];
  for (auto [i, number] : llvm::enumerate(numbers)) {
    const StaticTensor *known = importer.known(i);
    if (!known || known->getElements() != 1)
      return importer.error() << "its input " << i << " depends on data, which an ahead-of-time program cannot hold";
    number = known->floatAt(0);
  }
  auto [bands, length, rate, lowest, highest] = numbers;
  bool fits = bands >= 1 && bands <= 4096 && length >= 1 && length <= (1 << 20) && rate > 0 && lowest >= 0 &&
              lowest <= highest && highest <= rate && bands * (length / 2 + 1) <= double(foldLimit);
  if (!fits)
    return importer.error() << "makes " << bands << " bands from " << lowest << " to " << highest
                            << " Hz of a spectrum of " << length << " samples at " << rate << " Hz";
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double step = (mel(highest) - mel(lowest)) / (bands + 2);
  SmallVector<int64_t> edges;
  for (int64_t i = 0; i < int64_t(bands) + 2; ++i) {
    double hertz = 700 * (std::pow(10, (mel(lowest) + double(i) * step) / 2595) - 1);
    edges.push_back(int64_t(std::floor((length + 1) * hertz / rate)));
  }
  FailureOr<Type> element = importer.node.attribute("output_datatype") ? importer.elementType("output_datatype")
                                                                       : FailureOr<Type>(importer.builder.getF32Type());
  if (failed(element))
    return failure();
  FailureOr<Value> matrix = importer.constant(*element, {int64_t(length) / 2 + 1, int64_t(bands)},
                                              melWeights(int64_t(bands), int64_t(length), edges), "weights");
  return failed(matrix) ? failure() : importer.bind(*matrix);
}

} // namespace

void addSpectralImports(ImportTable &table) {
  table["MelWeightMatrix"] = importMelWeightMatrix;
  table["DFT"] = importDft;
  table["STFT"] = importStft;
  table["HannWindow"] = importHann;
  table["HammingWindow"] = importHamming;
  table["BlackmanWindow"] = importBlackman;
}

} // namespace par
