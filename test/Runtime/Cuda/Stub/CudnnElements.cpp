// Matmuls, elementwise operations, reductions and transposes of the cuDNN stub: the nodes of graphs of attention. Each
// operation reads and writes tensors of any strides, virtual ones too, in f32.
#include "Cudnn.h"
#include "par/kernels/LowPrecision.h"

#include <cmath>

namespace par::stub {

namespace {

constexpr int pointwiseKind = 0, pointwiseOperation = 13, matmulKind = 18, matmulOperation = 19, reductionKind = 21,
              reductionOperation = 22, reshapeOperation = 31;
constexpr int mode = 0, precision = 1, axisOf = 9, pwDescriptor = 750, pwX = 751, pwB = 752, pwY = 753, pwT = 758;
constexpr int matmulType = 1500, matmulA = 1520, matmulB = 1521, matmulC = 1522, matmulDescriptor = 1523;
constexpr int reduceOperator = 1600, reduceType = 1601, reduceX = 1610, reduceY = 1611, reduceDescriptor = 1612;
constexpr int reshapeX = 2200, reshapeY = 2201;
constexpr int typeMode = 14, typeOperator = 18;
constexpr int f32 = 0, f16 = 2, i32 = 4, bf16 = 9, boolean = 11;

using Dims = std::vector<int64_t>;

/// A tensor at its address. Booleans take a byte.
struct View {
  View(const DnnDescriptor &tensor, const std::map<int64_t, void *> &addressOf)
      : dims(tensor.all<int64_t>(dnnDims)), strides(tensor.all<int64_t>(dnnStrides)),
        type(tensor.one<int>(dnnDataType)), data(addressOf.at(tensor.one<int64_t>(dnnId))) {}

  /// From one element along a dim to the next; dims of size 1 stand for all.
  int64_t step(size_t dim) const { return dims[dim] == 1 ? 0 : strides[dim]; }

  int64_t place(const Dims &index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d)
      offset += index[d] * step(d);
    return offset;
  }
  float load(const Dims &index) const { return at(place(index)); }
  float at(int64_t offset) const {
    switch (type) {
    case bf16:
      return kernels::fromBF16(static_cast<const uint16_t *>(data)[offset]);
    case f16:
      return kernels::fromF16(static_cast<const uint16_t *>(data)[offset]);
    case i32:
      return static_cast<float>(static_cast<const int32_t *>(data)[offset]);
    case boolean:
      return static_cast<const uint8_t *>(data)[offset];
    default:
      return static_cast<const float *>(data)[offset];
    }
  }
  void store(const Dims &index, float value) const {
    int64_t at = place(index);
    switch (type) {
    case bf16:
      static_cast<uint16_t *>(data)[at] = kernels::toBF16(value);
      break;
    case f16:
      static_cast<uint16_t *>(data)[at] = kernels::toF16(value);
      break;
    case i32:
      static_cast<int32_t *>(data)[at] = static_cast<int32_t>(value);
      break;
    case boolean:
      static_cast<uint8_t *>(data)[at] = value != 0;
      break;
    default:
      static_cast<float *>(data)[at] = value;
    }
  }

  Dims dims, strides;
  int type;
  void *data;
};

template <typename Visit>
void each(const Dims &dims, Visit visit) {
  Dims index(dims.size());
  while (true) {
    visit(static_cast<const Dims &>(index));
    size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1])
      index[--d] = 0;
    if (d == 0)
      return;
  }
}

Dims dimsOf(const DnnDescriptor &operation, int tensor) { return operation.other(tensor).all<int64_t>(dnnDims); }

DnnAnswer shapesDiffer(const std::string &what) { return {dnnShapeMismatch, "shapes of " + what}; }

bool spreads(const Dims &from, const Dims &to) {
  bool fits = from.size() == to.size();
  for (size_t d = 0; fits && d < to.size(); ++d)
    fits = from[d] == to[d] || from[d] == 1;
  return fits;
}

DnnAnswer checkMatmul(const DnnDescriptor &d) {
  Dims a = dimsOf(d, matmulA), b = dimsOf(d, matmulB), c = dimsOf(d, matmulC);
  if (a.size() != 4 || b.size() != 4 || c.size() != 4)
    return {dnnNotSupported, "products of other ranks than 4"};
  // Heads of b may be shared by those of a.
  bool fits =
      a[0] == c[0] && a[1] == c[1] && a[2] == c[2] && b[0] == a[0] && a[1] % b[1] == 0 && a[3] == b[2] && b[3] == c[3];
  return fits ? DnnAnswer{} : shapesDiffer("a product");
}

std::function<void()> multiply(const DnnDescriptor &d, const std::map<int64_t, void *> &addressOf) {
  View a(d.other(matmulA), addressOf), b(d.other(matmulB), addressOf), c(d.other(matmulC), addressOf);
  return [a, b, c] {
    int64_t shared = a.dims[1] / b.dims[1];
    each(c.dims, [&](const Dims &at) {
      float sum = 0;
      int64_t left = a.place({at[0], at[1], at[2], 0}), right = b.place({at[0], at[1] / shared, 0, at[3]});
      for (int64_t k = 0; k < a.dims[3]; ++k)
        sum += a.at(left + k * a.step(3)) * b.at(right + k * b.step(2));
      c.store(at, sum);
    });
  };
}

DnnAnswer checkPointwise(const DnnDescriptor &d) {
  Dims y = dimsOf(d, pwY);
  for (int tensor : {pwX, pwB, pwT})
    if (d.has(tensor) && !spreads(dimsOf(d, tensor), y))
      return shapesDiffer("pointwise " + std::to_string(d.other(pwDescriptor).one<int>(mode)));
  int what = d.other(pwDescriptor).one<int>(mode);
  bool unary = what == 13 || what == 15 || what == 501, selects = what == 601;
  if (d.has(pwB) == unary || d.has(pwT) != selects || (what == 501) != d.other(pwDescriptor).has(axisOf))
    return {dnnBadParam, "operands of pointwise " + std::to_string(what)};
  if (selects && d.other(pwT).one<int>(dnnDataType) != boolean)
    return {dnnBadParam, "a condition that is not boolean"};
  return {};
}

float combine(int what, float x, float b, float t) {
  switch (what) {
  case 0:
    return x + b;
  case 1:
    return x * b;
  case 6:
    return x / b;
  case 9:
    return x - b;
  case 13:
    return std::exp(x);
  case 15:
    return std::log(x);
  case 303:
    return x >= b;
  case 601:
    return t != 0 ? x : b;
  default:
    return NAN;
  }
}

std::function<void()> elements(const DnnDescriptor &d, const std::map<int64_t, void *> &addressOf) {
  const DnnDescriptor &descriptor = d.other(pwDescriptor);
  int what = descriptor.one<int>(mode);
  View x(d.other(pwX), addressOf), y(d.other(pwY), addressOf), b = d.has(pwB) ? View(d.other(pwB), addressOf) : x,
                                                               t = d.has(pwT) ? View(d.other(pwT), addressOf) : x;
  auto axis = descriptor.has(axisOf) ? static_cast<size_t>(descriptor.one<int64_t>(axisOf)) : 0;
  return [=] {
    each(y.dims, [&](const Dims &at) {
      y.store(at, what == 501 ? static_cast<float>(at[axis]) : combine(what, x.load(at), b.load(at), t.load(at)));
    });
  };
}

/// Sums and maxima; where x has more heads than y, heads are groups of neighbours.
std::function<void()> reduce(const DnnDescriptor &d, const std::map<int64_t, void *> &addressOf) {
  bool adds = d.other(reduceDescriptor).one<int>(reduceOperator) == 0;
  View x(d.other(reduceX), addressOf), y(d.other(reduceY), addressOf);
  return [=] {
    Dims dense(y.dims.size(), 1);
    for (size_t i = dense.size() - 1; i-- > 0;)
      dense[i] = dense[i + 1] * y.dims[i + 1];
    std::vector<float> sums(static_cast<size_t>(dense[0] * y.dims[0]), adds ? 0.0f : -INFINITY);
    auto cell = [&](const Dims &at) -> float & {
      int64_t offset = 0;
      for (size_t i = 0; i < at.size(); ++i)
        offset += at[i] * y.dims[i] / x.dims[i] * dense[i];
      return sums[static_cast<size_t>(offset)];
    };
    each(x.dims, [&](const Dims &at) {
      float &sum = cell(at), value = x.load(at);
      sum = adds ? sum + value : std::fmax(sum, value);
    });
    size_t next = 0;
    each(y.dims, [&](const Dims &at) { y.store(at, sums[next++]); });
  };
}

DnnAnswer checkReduction(const DnnDescriptor &d) {
  Dims x = dimsOf(d, reduceX), y = dimsOf(d, reduceY);
  bool fits = x.size() == y.size();
  for (size_t i = 0; fits && i < x.size(); ++i)
    fits = x[i] % y[i] == 0;
  int what = d.other(reduceDescriptor).one<int>(reduceOperator);
  return !fits                    ? shapesDiffer("a reduction")
         : what == 0 || what == 3 ? DnnAnswer{}
                                  : DnnAnswer{dnnNotSupported, "means"};
}

/// A reshape of the last two dims: strides read x in place.
DnnAnswer checkReshape(const DnnDescriptor &d) {
  Dims x = dimsOf(d, reshapeX), y = dimsOf(d, reshapeY), steps = d.other(reshapeX).all<int64_t>(dnnStrides);
  bool fits = x.size() == 4 && y.size() == 4;
  if (fits) {
    std::swap(x[2], x[3]);
    std::swap(steps[2], steps[3]);
    fits = x == y && steps == d.other(reshapeY).all<int64_t>(dnnStrides);
  }
  return fits ? DnnAnswer{} : shapesDiffer("a transpose");
}

std::function<void()> transpose(const DnnDescriptor &d, const std::map<int64_t, void *> &addressOf) {
  View x(d.other(reshapeX), addressOf), y(d.other(reshapeY), addressOf);
  return [=] { each(y.dims, [&](const Dims &at) { y.store(at, x.load({at[0], at[1], at[3], at[2]})); }); };
}

const bool elementsRegistered = [] {
  auto &kinds = dnnKinds();
  kinds[pointwiseKind] = {"pointwise", {{mode, typeMode}, {precision, typeDataType}, {axisOf, typeInt64, false}}, {}};
  kinds[pointwiseOperation] = {"pointwise operation",
                               {{pwDescriptor, typeDescriptor},
                                {pwX, typeDescriptor},
                                {pwB, typeDescriptor, false},
                                {pwY, typeDescriptor},
                                {pwT, typeDescriptor, false}},
                               checkPointwise};
  kinds[matmulKind] = {"matmul", {{matmulType, typeDataType}}, {}};
  kinds[matmulOperation] = {"matmul operation",
                            {{matmulA, typeDescriptor},
                             {matmulB, typeDescriptor},
                             {matmulC, typeDescriptor},
                             {matmulDescriptor, typeDescriptor}},
                            checkMatmul};
  kinds[reductionKind] = {"reduction", {{reduceOperator, typeOperator}, {reduceType, typeDataType}}, {}};
  kinds[reductionOperation] = {
      "reduction operation",
      {{reduceX, typeDescriptor}, {reduceY, typeDescriptor}, {reduceDescriptor, typeDescriptor}},
      checkReduction};
  kinds[reshapeOperation] = {"reshape", {{reshapeX, typeDescriptor}, {reshapeY, typeDescriptor}}, checkReshape};
  dnnOperations()[pointwiseOperation] = {{pwX, pwB, pwT, pwY}, elements};
  dnnOperations()[matmulOperation] = {{matmulA, matmulB, matmulC}, multiply};
  dnnOperations()[reductionOperation] = {{reduceX, reduceY}, reduce};
  dnnOperations()[reshapeOperation] = {{reshapeX, reshapeY}, transpose};
  return true;
}();

} // namespace

} // namespace par::stub
