// Convolutions and their gradients by oneDNN, on plain [N, C, ...] tensors.
#include "ConvolutionSizes.h"
#include "FilterBlocks.h"
#include "Scratch.h"
#include "par/format/SignalsHeld.h"
#include "par/kernels/Builtins.h"
#include "par/kernels/DnnEngine.h"

#include <dnnl.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace par::kernels {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;

enum class Pass : uint64_t { Forward, InputGrad, FilterGrad };

/// One of a convolution's tensors: as the program has it, and as the library wants it.
struct Side {
  int argument = 0; ///< DNNL_ARG_...
  Desc plain, wanted;
  dnnl::reorder reorder; ///< from one to the other, in the direction of the pass
  size_t offset = 0;     ///< in the scratch, where the two differ

  bool differs() const { return plain != wanted; }
};

/// A convolution that is ready to run: two tensors in, one out.
struct Prepared {
  Side lhs, rhs, result;
  std::optional<FilterBlocks> blocks; ///< of a result that comes back by our own hand
  bool isGapped = false; ///< a filter's gradient of which GappedWindows has the best: there is nothing to run
  Desc scratchpad;
  dnnl::primitive primitive;
  size_t scratchpadOffset = 0, bytes = 0;

  void run(void *const *ptr) const;
};

void Prepared::run(void *const *ptr) const {
  std::byte *memory = threadScratch(bytes);
  format::SignalsHeld held;
  dnnl::stream stream(engine());
  std::unordered_map<int, dnnl::memory> arguments;
  auto plain = [&](const Side &side, void *data) { return dnnl::memory(side.plain, engine(), data); };
  auto wanted = [&](const Side &side) { return dnnl::memory(side.wanted, engine(), memory + side.offset); };
  for (auto [side, data] : {std::pair(&lhs, ptr[0]), {&rhs, ptr[1]}}) {
    dnnl::memory given = plain(*side, data);
    if (side->differs()) {
      dnnl::memory own = wanted(*side);
      dnnl::reorder(side->reorder).execute(stream, given, own);
      given = own;
    }
    arguments.emplace(side->argument, given);
  }
  dnnl::memory to = plain(result, ptr[2]);
  arguments.emplace(result.argument, result.differs() ? wanted(result) : to);
  arguments.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(scratchpad, engine(), memory + scratchpadOffset));
  primitive.execute(stream, arguments);
  if (result.differs() && !blocks) {
    dnnl::memory own = wanted(result);
    dnnl::reorder(result.reorder).execute(stream, own, to);
  }
  stream.wait();
  if (blocks)
    blocks->unpack(reinterpret_cast<const float *>(memory + result.offset), static_cast<float *>(ptr[2]));
}

/// Descriptors of the operation, in the layouts that the library likes best.
struct Operation {
  explicit Operation(const ConvolutionSizes &sizes) {
    auto n = int64_t(sizes.n), groups = int64_t(sizes.groups), c = int64_t(sizes.c), o = int64_t(sizes.o);
    input = sizes.spatial({n, groups * c}, sizes.in);
    filter = sizes.spatial(groups == 1 ? Dims{o, c} : Dims{groups, o / groups, c}, sizes.window);
    output = sizes.spatial({n, o}, sizes.out);
    stride = sizes.spatial({}, sizes.stride);
    low = sizes.spatial({}, sizes.low);
    high = sizes.spatial({}, sizes.high);
    dilation = sizes.spatial({}, sizes.dilation);
    for (int64_t &gap : dilation)
      --gap; // the library counts the elements between
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  static Desc any(const Dims &dims) { return {dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any}; }
  static Desc plain(const Dims &dims) {
    Dims strides(dims.size(), 1);
    for (size_t dim = dims.size() - 1; dim > 0; --dim)
      strides[dim - 1] = strides[dim] * dims[dim];
    return {dims, dnnl::memory::data_type::f32, strides};
  }

  dnnl::convolution_forward::primitive_desc forward() const {
    dnnl::convolution_forward::desc description(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
                                                any(input), any(filter), any(output), stride, dilation, low, high);
    return {description, attributes, engine()};
  }
  dnnl::convolution_backward_data::primitive_desc inputGrad() const {
    dnnl::convolution_backward_data::desc description(dnnl::algorithm::convolution_direct, any(input), any(filter),
                                                      any(output), stride, dilation, low, high);
    return {description, attributes, engine(), forward()};
  }
  dnnl::convolution_backward_weights::primitive_desc filterGrad() const {
    dnnl::convolution_backward_weights::desc description(dnnl::algorithm::convolution_direct, any(input), any(filter),
                                                         any(output), stride, dilation, low, high);
    return {description, attributes, engine(), forward()};
  }

  Dims input, filter, output, stride, low, high, dilation;
  dnnl::primitive_attr attributes;
};

/// Reorders where layouts differ, and places in the scratch.
void finish(Prepared &prepared, const Desc &scratchpad) {
  prepared.scratchpad = scratchpad;
  auto place = [&](size_t bytes) {
    size_t offset = prepared.bytes;
    prepared.bytes += padded(bytes);
    return offset;
  };
  for (Side *side : {&prepared.lhs, &prepared.rhs, &prepared.result})
    if (side->differs()) {
      bool out = side == &prepared.result;
      const Desc &from = out ? side->wanted : side->plain, &to = out ? side->plain : side->wanted;
      side->reorder = dnnl::reorder(dnnl::reorder::primitive_desc(engine(), from, engine(), to));
      side->offset = place(side->wanted.get_size());
    }
  prepared.scratchpadOffset = place(scratchpad.get_size());
}

std::unique_ptr<Prepared> prepare(Pass pass, const ConvolutionSizes &sizes) {
  Operation operation(sizes);
  Desc input = Operation::plain(operation.input), filter = Operation::plain(operation.filter),
       output = Operation::plain(operation.output);
  auto prepared = std::make_unique<Prepared>();
  switch (pass) {
  case Pass::Forward: {
    auto chosen = operation.forward();
    prepared->lhs = {DNNL_ARG_SRC, input, chosen.src_desc(), {}};
    prepared->rhs = {DNNL_ARG_WEIGHTS, filter, chosen.weights_desc(), {}};
    prepared->result = {DNNL_ARG_DST, output, chosen.dst_desc(), {}};
    prepared->primitive = dnnl::convolution_forward(chosen);
    finish(*prepared, chosen.scratchpad_desc());
    break;
  }
  case Pass::InputGrad: {
    auto chosen = operation.inputGrad();
    prepared->lhs = {DNNL_ARG_DIFF_DST, output, chosen.diff_dst_desc(), {}};
    prepared->rhs = {DNNL_ARG_WEIGHTS, filter, chosen.weights_desc(), {}};
    prepared->result = {DNNL_ARG_DIFF_SRC, input, chosen.diff_src_desc(), {}};
    prepared->primitive = dnnl::convolution_backward_data(chosen);
    finish(*prepared, chosen.scratchpad_desc());
    break;
  }
  case Pass::FilterGrad: {
    auto chosen = operation.filterGrad();
    prepared->isGapped =
        sizes.hasGaps() && std::string_view(chosen.impl_info_str()).find("gemm") != std::string_view::npos;
    if (prepared->isGapped)
      break;
    prepared->lhs = {DNNL_ARG_SRC, input, chosen.src_desc(), {}};
    prepared->rhs = {DNNL_ARG_DIFF_DST, output, chosen.diff_dst_desc(), {}};
    prepared->result = {DNNL_ARG_DIFF_WEIGHTS, filter, chosen.diff_weights_desc(), {}};
    prepared->primitive = dnnl::convolution_backward_weights(chosen);
    finish(*prepared, chosen.scratchpad_desc());
    if (sizes.groups == 1 && prepared->result.differs())
      prepared->blocks = FilterBlocks::read(prepared->result.wanted);
    break;
  }
  }
  return prepared;
}

/// Each shape is prepared when it is met first.
const Prepared &preparedFor(Pass pass, const uint64_t *imm) {
  static std::mutex mutex;
  static std::map<std::vector<uint64_t>, std::unique_ptr<Prepared>> known;
  std::vector<uint64_t> key(imm, imm + convolutionImmediateCount);
  key.push_back(static_cast<uint64_t>(pass));
  std::lock_guard lock(mutex);
  std::unique_ptr<Prepared> &place = known[key];
  if (!place)
    place = prepare(pass, ConvolutionSizes(imm));
  return *place;
}

/// Two tensors in, one out: a convolution or gradient as a matmul, and for some channels if a group has one channel.
using OfMatmul = void (ConvolutionMatmul::*)(const float *, const float *, float *) const;
using OfChannels = void (DepthwiseConvolution::*)(const float *, const float *, float *, int64_t, int64_t) const;

/// Tiles are groups. The library's work is one piece, done with tile 0: its own threads are those of the thread that
/// runs the step, to which the pool gives the first tiles.
void compute(Pass pass, OfMatmul ofProduct, OfChannels ofChannels, void *const *ptr, const uint64_t *imm,
             uint32_t tile0, uint32_t tile1) {
  ConvolutionSizes sizes(imm);
  auto *lhs = static_cast<const float *>(ptr[0]), *rhs = static_cast<const float *>(ptr[1]);
  auto *result = static_cast<float *>(ptr[2]);
  if (sizes.isDepthwise())
    return (sizes.depthwise().*ofChannels)(lhs, rhs, result, tile0, tile1);
  if (tile0 != 0)
    return;
  if (sizes.isProduct())
    return (sizes.product().*ofProduct)(lhs, rhs, result);
  const Prepared &prepared = preparedFor(pass, imm);
  if (prepared.isGapped)
    return sizes.gapped().filterGrad(lhs, rhs, result);
  prepared.run(ptr);
}

} // namespace

void convolution(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  compute(Pass::Forward, &ConvolutionMatmul::forward, &DepthwiseConvolution::forward, ptr, imm, tile0, tile1);
}

void convolutionInputGrad(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  compute(Pass::InputGrad, &ConvolutionMatmul::inputGrad, &DepthwiseConvolution::inputGrad, ptr, imm, tile0, tile1);
}

void convolutionFilterGrad(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  compute(Pass::FilterGrad, &ConvolutionMatmul::filterGrad, &DepthwiseConvolution::filterGrad, ptr, imm, tile0, tile1);
}

} // namespace par::kernels
