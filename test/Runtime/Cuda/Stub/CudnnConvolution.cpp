// Convolutions of the stub of cuDNN: shapes are held against the formula, and the CPU's builtins compute.
#include "Cudnn.h"
#include "par/kernels/Builtins.h"

namespace par::stub {

namespace {

constexpr int convolutionKind = 1;
constexpr int computeType = 100, convolutionMode = 101, dilations = 102, strides = 103, post = 104, pre = 105,
              spatial = 106;
constexpr int typeFloat = 4, typeConvolutionMode = 7;

/// Attributes of one of the three operations, in the order of cudnn_graph.h, and which tensor is which.
struct Pass {
  int kind, first;
  const char *name, *builtin;
  int x, w, y;               ///< attributes: input, filter, output or their cotangents
  std::vector<int> operands; ///< of the builtin, in order

  int alpha() const { return first; }
  int beta() const { return first + 1; }
  int convolution() const { return first + 2; }
};

const Pass passes[] = {
    {10, 700, "convolution forward", "convolution", 704, 703, 705, {704, 703, 705}},
    {12, 706, "convolution backward data", "convolution_input_grad", 710, 709, 711, {711, 709, 710}},
    {11, 712, "convolution backward filter", "convolution_filter_grad", 716, 715, 717, {716, 717, 715}},
};

DnnAnswer checkConvolution(const DnnDescriptor &d) {
  auto dims = static_cast<size_t>(d.one<int64_t>(spatial));
  for (int attribute : {dilations, strides, post, pre})
    if (d.all<int64_t>(attribute).size() != dims)
      return {dnnBadParam, "attribute " + std::to_string(attribute) + " has not one element a spatial dim"};
  if (d.one<int>(computeType) != 0 || d.one<int>(convolutionMode) != 1)
    return {dnnNotSupported, "only cross-correlations in f32"};
  return {};
}

/// The builtin's form for tensors of one type; nothing for others: the library has no engine for narrow operands and an
/// f32 result.
const kernels::BuiltinKernel *formOf(const Pass &pass, const DnnDescriptor &d) {
  constexpr int f32 = 0, f16 = 2, bf16 = 9;
  int type = d.other(pass.x).one<int>(dnnDataType);
  for (int tensor : {pass.w, pass.y})
    if (d.other(tensor).one<int>(dnnDataType) != type)
      return nullptr;
  std::string name = pass.builtin;
  return type == f32    ? kernels::findBuiltin(name)
         : type == bf16 ? kernels::findBuiltin(name + "_bf16")
         : type == f16  ? kernels::findBuiltin(name + "_f16")
                        : nullptr;
}

DnnAnswer checkShapes(const Pass &pass, const DnnDescriptor &d) {
  const DnnDescriptor &c = d.other(pass.convolution());
  auto x = d.other(pass.x).all<int64_t>(dnnDims), w = d.other(pass.w).all<int64_t>(dnnDims),
       y = d.other(pass.y).all<int64_t>(dnnDims);
  auto dims = static_cast<size_t>(c.one<int64_t>(spatial));
  if (dims < 2 || dims > 3)
    return {dnnNotSupported, "convolutions of " + std::to_string(dims) + " spatial dims"};
  if (x.size() != dims + 2 || w.size() != dims + 2 || y.size() != dims + 2)
    return {dnnShapeMismatch, "tensors of other ranks than the convolution"};
  if (x[0] != y[0] || w[0] != y[1] || x[1] % w[1] != 0 || y[1] % (x[1] / w[1]) != 0)
    return {dnnShapeMismatch, "channels do not fit"};
  for (size_t i = 0; i < dims; ++i) {
    int64_t room = x[i + 2] + c.all<int64_t>(pre)[i] + c.all<int64_t>(post)[i] -
                   ((w[i + 2] - 1) * c.all<int64_t>(dilations)[i] + 1);
    int64_t windows = room < 0 ? 0 : room / c.all<int64_t>(strides)[i] + 1;
    if (windows != y[i + 2] || windows == 0)
      return {dnnShapeMismatch, "spatial dim " + std::to_string(i) + " of y is " + std::to_string(y[i + 2]) +
                                    ", expected " + std::to_string(windows)};
  }
  if (d.one<float>(pass.alpha()) != 1 || d.one<float>(pass.beta()) != 0)
    return {dnnNotSupported, "alpha and beta other than 1 and 0"};
  for (int tensor : {pass.x, pass.w, pass.y}) {
    auto sizes = d.other(tensor).all<int64_t>(dnnDims), steps = d.other(tensor).all<int64_t>(dnnStrides);
    int64_t dense = 1;
    for (size_t i = sizes.size(); i-- > 0; dense *= sizes[i])
      if (steps[i] != dense)
        return {dnnNotSupported, "tensors that are not dense"};
  }
  return formOf(pass, d) ? DnnAnswer{} : DnnAnswer{dnnNotSupported, "operands of these types"};
}

/// The builtin's immediates, read off the descriptors.
std::vector<uint64_t> immediatesOf(const Pass &pass, const DnnDescriptor &d) {
  const DnnDescriptor &c = d.other(pass.convolution());
  auto x = d.other(pass.x).all<int64_t>(dnnDims), w = d.other(pass.w).all<int64_t>(dnnDims),
       y = d.other(pass.y).all<int64_t>(dnnDims);
  std::vector<int64_t> sizes{x[0], x[1] / w[1], w[1], w[0]};
  auto add = [&](const std::vector<int64_t> &values, size_t from, int64_t formal) {
    sizes.insert(sizes.end(), 3 - (values.size() - from), formal);
    sizes.insert(sizes.end(), values.begin() + static_cast<long>(from), values.end());
  };
  add(x, 2, 1), add(w, 2, 1), add(y, 2, 1);
  add(c.all<int64_t>(strides), 0, 1), add(c.all<int64_t>(pre), 0, 0), add(c.all<int64_t>(post), 0, 0);
  add(c.all<int64_t>(dilations), 0, 1);
  return {sizes.begin(), sizes.end()};
}

std::function<void()> workOf(const Pass &pass, const DnnDescriptor &d, const std::map<int64_t, void *> &addressOf) {
  std::vector<void *> pointers;
  for (int operand : pass.operands)
    pointers.push_back(addressOf.at(d.other(operand).one<int64_t>(dnnId)));
  const kernels::BuiltinKernel &form = *formOf(pass, d);
  return [function = kernels::builtinFunction(form.name), &form, pointers, immediates = immediatesOf(pass, d)] {
    function(pointers.data(), immediates.data(), 0, kernels::builtinTiles(form, immediates));
  };
}

const bool convolutionsRegistered = [] {
  dnnKinds()[convolutionKind] = {"convolution",
                                 {{computeType, typeDataType},
                                  {convolutionMode, typeConvolutionMode},
                                  {dilations, typeInt64},
                                  {strides, typeInt64},
                                  {post, typeInt64},
                                  {pre, typeInt64},
                                  {spatial, typeInt64}},
                                 checkConvolution};
  for (const Pass &pass : passes) {
    dnnKinds()[pass.kind] = {pass.name,
                             {{pass.alpha(), typeFloat},
                              {pass.beta(), typeFloat},
                              {pass.convolution(), typeDescriptor},
                              {pass.x, typeDescriptor},
                              {pass.w, typeDescriptor},
                              {pass.y, typeDescriptor}},
                             [&](const DnnDescriptor &d) { return checkShapes(pass, d); }};
    dnnOperations()[pass.kind] = {
        {pass.x, pass.w, pass.y},
        [&](const DnnDescriptor &d, const std::map<int64_t, void *> &addressOf) { return workOf(pass, d, addressOf); }};
  }
  return true;
}();

} // namespace

} // namespace par::stub
