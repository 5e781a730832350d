#include "ConvolutionGraph.h"

#include "par/kernels/Builtins.h"

#include <algorithm>
#include <array>

namespace par::cuda {

using dnn::Attribute;
using dnn::Kind;
using dnn::Type;

namespace {

/// One operation of the graph API, and which operand of the builtin is which of its tensors.
struct Pass {
  std::string_view builtin; ///< its form in f32
  Kind kind;
  Attribute alpha, beta, convolution;
  std::array<Attribute, 3> operands;
  std::array<char, 3> sides; ///< of each operand: x, w or y, or their cotangents
};

constexpr Pass passes[] = {
    {"convolution",
     Kind::ConvolutionForward,
     Attribute::ForwardAlpha,
     Attribute::ForwardBeta,
     Attribute::ForwardConvolution,
     {Attribute::ForwardX, Attribute::ForwardW, Attribute::ForwardY},
     {'x', 'w', 'y'}},
    {"convolution_input_grad",
     Kind::ConvolutionInputGrad,
     Attribute::InputGradAlpha,
     Attribute::InputGradBeta,
     Attribute::InputGradConvolution,
     {Attribute::InputGradDy, Attribute::InputGradW, Attribute::InputGradDx},
     {'y', 'w', 'x'}},
    {"convolution_filter_grad",
     Kind::ConvolutionFilterGrad,
     Attribute::FilterGradAlpha,
     Attribute::FilterGradBeta,
     Attribute::FilterGradConvolution,
     {Attribute::FilterGradX, Attribute::FilterGradDy, Attribute::FilterGradDw},
     {'x', 'y', 'w'}},
};

const Pass *passOf(std::string_view builtin) {
  auto found = std::find_if(std::begin(passes), std::end(passes),
                            [&](const Pass &pass) { return pass.builtin == kernels::formInF32(builtin); });
  return found == std::end(passes) ? nullptr : found;
}

int typeOf(std::string_view word) {
  return word == "bf16" ? dnn::dataBF16 : word == "f16" ? dnn::dataF16 : dnn::dataF32;
}

/// The immediates of the builtin, by name, and the tensors that they describe.
struct Sizes {
  explicit Sizes(const std::vector<uint64_t> &imms) : imm(imms.begin(), imms.end()) {
    // The library knows two spatial dims and three.
    bool formal = imm[4] == 1 && imm[7] == 1 && imm[10] == 1 && imm[16] == 0 && imm[19] == 0;
    first = formal ? 1 : 0;
  }
  std::vector<int64_t> spatial(size_t begin, std::vector<int64_t> dims = {}) const {
    for (size_t dim = first; dim < 3; ++dim)
      dims.push_back(imm[begin + dim]);
    return dims;
  }
  std::vector<int64_t> dims(char side) const {
    int64_t n = imm[0], groups = imm[1], c = imm[2], o = imm[3];
    return side == 'x' ? spatial(4, {n, groups * c}) : side == 'w' ? spatial(7, {o, c}) : spatial(10, {n, o});
  }
  std::vector<int64_t> strides() const { return spatial(13); }
  std::vector<int64_t> low() const { return spatial(16); }
  std::vector<int64_t> high() const { return spatial(19); }
  std::vector<int64_t> dilations() const { return spatial(22); }

  std::vector<int64_t> imm;
  size_t first = 0;
};

constexpr std::array<int64_t, 3> ids{1, 2, 3};

} // namespace

bool ConvolutionGraph::isBuiltin(std::string_view builtin) { return passOf(builtin) && kernels::findBuiltin(builtin); }

/// No engine that rounds f32 to TF32: matmuls on cuBLASLt do not either. bf16/f16 operands need no conversion for
/// tensor cores.
ConvolutionGraph::ConvolutionGraph(const Dnn &dnn, const GraphUse &use)
    : GraphKernel(dnn, use, {convolutionWorkspace, kernels::findBuiltin(use.builtin)->operands[0].type != "f32"}) {
  const Pass &pass = *passOf(use.builtin);
  const kernels::BuiltinKernel &builtin = *kernels::findBuiltin(use.builtin);
  Sizes sizes(use.immediates);
  DnnNode &windows = graph.node(Kind::Convolution, "the windows");
  windows.set(Attribute::ConvolutionComputeType, Type::DataType, dnn::dataF32)
      .set(Attribute::ConvolutionMode, Type::ConvolutionMode, dnn::crossCorrelation)
      .set(Attribute::ConvolutionSpatialDims, static_cast<int64_t>(sizes.strides().size()))
      .set(Attribute::ConvolutionStrides, sizes.strides())
      .set(Attribute::ConvolutionDilations, sizes.dilations())
      .set(Attribute::ConvolutionPrePaddings, sizes.low())
      .set(Attribute::ConvolutionPostPaddings, sizes.high())
      .finalize();
  std::vector<const DnnNode *> tensors;
  for (size_t i = 0; i < ids.size(); ++i)
    tensors.push_back(&graph.tensor(
        {ids[i], typeOf(builtin.operands[i].type), sizes.dims(pass.sides[i]), {}, use.alignment}, {pass.sides[i]}));
  DnnNode &operation = graph.operation(pass.kind, "the " + std::string(builtin.name));
  operation.set(pass.alpha, 1.0f).set(pass.beta, 0.0f).set(pass.convolution, windows);
  for (size_t i = 0; i < ids.size(); ++i)
    operation.set(pass.operands[i], *tensors[i]);
  operation.finalize();
  graph.finalize();
}

void ConvolutionGraph::run(std::span<void *const> operands, void *memory, Stream stream) const {
  planned->run(ids, operands, memory, stream);
}

} // namespace par::cuda
