// Convolutions with channels last by oneDNN, with the ops after them as its post-ops.
#include "LastConvolution.h"

#include "Magnitude.h"
#include "NanWatch.h"
#include "Scratch.h"
#include "par/format/SignalsHeld.h"
#include "par/kernels/DnnEngine.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>

namespace par::kernels {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;

double realAt(const uint64_t *imm, size_t index) { return std::bit_cast<double>(imm[index]); }

Desc any(const Dims &dims) { return {dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any}; }

Desc rowMajor(const Dims &dims) {
  Dims strides(dims.size(), 1);
  for (size_t dim = dims.size() - 1; dim > 0; --dim)
    strides[dim - 1] = strides[dim] * dims[dim];
  return {dims, dnnl::memory::data_type::f32, strides};
}

/// [N, C, x...] in memory as [N, x..., C].
Desc channelsLast(const Dims &dims) {
  Dims strides(dims.size(), dims[1]);
  strides[1] = 1;
  for (size_t dim = dims.size() - 1; dim > 2; --dim)
    strides[dim - 1] = strides[dim] * dims[dim];
  strides[0] = strides[2] * dims[2];
  return {dims, dnnl::memory::data_type::f32, strides};
}

} // namespace

LastOperands::LastOperands(void *const *ptr, const uint64_t *imm, ResidualPlace place)
    : x(static_cast<const float *>(ptr[0])), w(static_cast<const float *>(ptr[1])), y(static_cast<float *>(ptr[2])) {
  void *const *next = ptr + 3;
  for (auto [index, operand] : {std::pair(HasScale, &scale), {HasBias, &bias}})
    if (imm[index])
      *operand = static_cast<const float *>(*next++);
  if (imm[HasResidual])
    residual = place == ResidualPlace::Result ? y : static_cast<const float *>(*next);
}

LastConvolution::LastConvolution(const uint64_t *imm, ConvolutionWay way)
    : sizes(imm), hasBias(imm[HasBias]), hasResidual(imm[HasResidual]), low(realAt(imm, Low)), high(realAt(imm, High)) {
  auto n = int64_t(sizes.n), groups = int64_t(sizes.groups), c = int64_t(sizes.c), o = int64_t(sizes.o);
  input = channelsLast(sizes.spatial({n, groups * c}, sizes.in));
  output = channelsLast(sizes.spatial({n, o}, sizes.out));
  filter = rowMajor(sizes.spatial(groups == 1 ? Dims{o, c} : Dims{groups, o / groups, c}, sizes.window));
  bias = hasBias ? rowMajor({o}) : Desc();
  if (way == ConvolutionWay::Fastest && isFasterTransformed())
    primitive = describe(dnnl::algorithm::convolution_winograd, Layout::Any);
  transformed = bool(primitive);
  if (!transformed)
    primitive = describeDirect();
  convolution = dnnl::convolution_forward(primitive);
  packs = dnnl::reorder({engine(), filter, engine(), primitive.weights_desc()});
  if (input != primitive.src_desc())
    enters = dnnl::reorder({engine(), input, engine(), primitive.src_desc()});
  if (output != primitive.dst_desc())
    leaves = dnnl::reorder({engine(), primitive.dst_desc(), engine(), output});
}

/// 3 x 3 elements side by side, so many channels that the multiplications saved outweigh the transforms, and so many
/// places that they outweigh a filter that is up to four times as large. With 48 channels the library takes 0.5 to 0.9
/// of the direct time, with 32 up to 1; with 512 channels 0.6 for 14 x 14 places, 1.4 for twice 7 x 7, and for eight
/// times 7 x 7 it gains less than it costs to pack the filter.
bool LastConvolution::isFasterTransformed() const {
  constexpr uint64_t minChannels = 48, minPlaces = 512;
  auto isAll = [](const Dims &dims, int64_t value) {
    return std::all_of(dims.begin(), dims.end(), [&](int64_t dim) { return dim == value; });
  };
  Dims window = sizes.spatial({}, sizes.window);
  return window.size() == 2 && isAll(window, 3) && isAll(sizes.spatial({}, sizes.stride), 1) &&
         isAll(sizes.spatial({}, sizes.dilation), 1) && sizes.groups == 1 &&
         std::min(sizes.c, sizes.o) >= minChannels && sizes.n * sizes.out[1] * sizes.out[2] >= minPlaces;
}

float LastConvolution::transformableBelow(const float *packed) const {
  constexpr float room = 0x1p108f;
  float factor = std::max(1.0f, largestMagnitude(packed, packedSize()));
  return std::isfinite(factor) ? room / factor / float(sizes.c) : 0.0f;
}

LastConvolution::Forward LastConvolution::describeDirect() const {
  constexpr auto direct = dnnl::algorithm::convolution_direct;
  Forward last = describe(direct, Layout::ChannelsLast);
  std::string_view name = last.impl_info_str();
  return name.find("gemm") == 0 || name.find("ref") == 0 ? describe(direct, Layout::Any) : last;
}

/// Empty if the library has no such algorithm for the shape and what follows it.
LastConvolution::Forward LastConvolution::describe(dnnl::algorithm algorithm, Layout layout) const {
  dnnl::post_ops after;
  if (hasResidual)
    after.append_sum(1.0f);
  // The library's own limits stand for infinite ones, which it would multiply.
  constexpr double most = std::numeric_limits<float>::max();
  if (low == 0 && std::isinf(high))
    after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
  else if (isBounded())
    after.append_eltwise(1.0f, dnnl::algorithm::eltwise_clip, float(std::clamp(low, -most, most)),
                         float(std::clamp(high, -most, most)));
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(after);
  Dims stride = sizes.spatial({}, sizes.stride), left = sizes.spatial({}, sizes.low),
       right = sizes.spatial({}, sizes.high), dilation = sizes.spatial({}, sizes.dilation);
  for (int64_t &gap : dilation)
    --gap; // the library counts the elements between
  bool isLast = layout == Layout::ChannelsLast;
  Desc from = isLast ? input : any(input.dims()), to = isLast ? output : any(output.dims()), by = any(filter.dims());
  auto kind = dnnl::prop_kind::forward_inference;
  using Description = dnnl::convolution_forward::desc;
  auto description = hasBias ? Description(kind, algorithm, from, by, bias, to, stride, dilation, left, right)
                             : Description(kind, algorithm, from, by, to, stride, dilation, left, right);
  return {description, attributes, engine(), /*allow_empty=*/algorithm != dnnl::algorithm::convolution_direct};
}

std::string LastConvolution::describePacked() const {
  const dnnl_version_t *version = dnnl_version();
  std::string text = std::string(primitive.impl_info_str()) + " " + version->hash;
  for (const Desc &desc : {filter, primitive.weights_desc()}) // a plain structure that the library fills as a whole
    text.append(reinterpret_cast<const char *>(&desc.data), sizeof desc.data);
  return text;
}

void LastConvolution::pack(const float *given, const float *scale, float *to) const {
  format::SignalsHeld held;
  dnnl::stream stream(engine());
  std::vector<float> scaled;
  if (scale) {
    size_t size = filter.get_size() / sizeof(float), each = size / sizes.o;
    scaled.assign(given, given + size);
    for (size_t i = 0; i < size; ++i)
      scaled[i] *= scale[i / each];
    given = scaled.data();
  }
  dnnl::memory from(filter, engine(), const_cast<float *>(given)), result(primitive.weights_desc(), engine(), to);
  dnnl::reorder(packs).execute(stream, from, result);
  stream.wait();
}

static dnnl::memory memoryOf(const Desc &desc, void *data = DNNL_MEMORY_NONE) {
  return dnnl::memory(desc, engine(), data);
}

LastCall::LastCall(const LastConvolution &convolution, const float *packed)
    : of(convolution), limit(of.isTransformed() ? of.transformableBelow(packed) : 0),
      own(padded(of.primitive.scratchpad_desc().get_size())),
      in(of.enters ? padded(of.primitive.src_desc().get_size()) : 0),
      scratchBytes(own + in + (of.leaves ? of.primitive.dst_desc().get_size() : 0)), stream(engine()),
      x(memoryOf(of.input)), y(memoryOf(of.output)), from(of.enters ? memoryOf(of.primitive.src_desc()) : x),
      to(of.leaves ? memoryOf(of.primitive.dst_desc()) : y), scratchpad(memoryOf(of.primitive.scratchpad_desc())) {
  arguments = {{DNNL_ARG_SRC, from},
               {DNNL_ARG_WEIGHTS, memoryOf(of.primitive.weights_desc(), const_cast<float *>(packed))},
               {DNNL_ARG_DST, to},
               {DNNL_ARG_SCRATCHPAD, scratchpad}};
  if (of.hasBias)
    arguments.emplace(DNNL_ARG_BIAS, bias = memoryOf(of.bias));
}

bool LastCall::convolve() {
  if (!of.isBounded()) {
    of.convolution.execute(stream, arguments);
    return false;
  }
  NanWatch watch;
  of.convolution.execute(stream, arguments);
  return watch.mayHaveMetOne();
}

bool LastCall::mayCompute(const LastOperands &operands) const {
  if (of.isTransformed() && !(largestMagnitude(operands.x, of.input.get_size() / sizeof(float)) < limit))
    return false;
  bool mayHide = of.isBounded() && operands.residual == operands.y;
  return !mayHide || std::isfinite(largestMagnitude(operands.residual, of.outputSize()));
}

LastCall::Outcome LastCall::run(const LastOperands &operands) {
  if (!mayCompute(operands))
    return Outcome::Refused;
  std::byte *scratch = threadScratch(scratchBytes);
  format::SignalsHeld held;
  x.set_data_handle(const_cast<float *>(operands.x));
  y.set_data_handle(operands.y);
  scratchpad.set_data_handle(scratch);
  if (of.hasBias)
    bias.set_data_handle(const_cast<float *>(operands.bias));
  if (of.hasResidual && operands.residual != operands.y) // the sum's first term lies where its result will
    std::memcpy(operands.y, operands.residual, of.output.get_size());
  if (of.enters) {
    from.set_data_handle(scratch + own);
    dnnl::reorder(of.enters).execute(stream, x, from);
  }
  if (of.leaves) {
    to.set_data_handle(scratch + own + in);
    if (of.hasResidual)
      dnnl::reorder({engine(), of.output, engine(), of.primitive.dst_desc()}).execute(stream, y, to);
  }
  bool metNan = convolve();
  if (of.leaves)
    dnnl::reorder(of.leaves).execute(stream, to, y);
  stream.wait();
  return metNan ? Outcome::MetNan : Outcome::Written;
}

const LastConvolution &lastConvolutionFor(const uint64_t *imm, ConvolutionWay way) {
  static std::mutex mutex;
  using Key = std::pair<ConvolutionWay, std::vector<uint64_t>>;
  static std::map<Key, std::unique_ptr<LastConvolution>> known;
  Key key{way, {imm, imm + High + 1}};
  std::lock_guard lock(mutex);
  auto [place, isNew] = known.try_emplace(std::move(key));
  if (isNew)
    place->second = std::make_unique<LastConvolution>(place->first.second.data(), way);
  return *place->second;
}

} // namespace par::kernels
