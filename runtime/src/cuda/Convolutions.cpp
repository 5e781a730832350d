#include "cuda/Convolutions.h"

#include "cuda/Agree.h"
#include "par/core/Failure.h"
#include "par/kernels/Builtins.h"

#include <algorithm>
#include <sstream>

namespace par::cuda {

using core::Failure;
using core::Message;
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

const Pass *passOfKernel(const format::Kernel &kernel) {
  return kernel.builtin ? passOf(kernel.symbol) : nullptr;
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

/// A convolution of the programs: all that its engine depends on, and where it is first met.
struct Use {
  const Pass *pass = nullptr;
  const kernels::BuiltinKernel *builtin = nullptr; ///< the form of it
  std::vector<uint64_t> imms;
  uint32_t alignment = 256;
  std::string kernel, node;
};

class Convolution final : public LibraryKernel {
public:
  Convolution(const Dnn &dnn, const Use &use);
  DnnChoice propose() const;
  void plan(const DnnChoice &choice) { planned.emplace(graph, choice); }
  uint64_t workspace() const override { return planned->workspace(); }
  void run(std::span<void *const> operands, void *memory, Stream stream) const override {
    planned->run(ids, operands, memory, stream);
  }

private:
  static constexpr std::array<int64_t, 3> ids{1, 2, 3};
  Use use;
  DnnGraph graph;
  std::optional<DnnPlan> planned;
};

Convolution::Convolution(const Dnn &dnn, const Use &use)
    : use(use), graph(dnn, "kernel \"" + use.kernel + "\" (" + use.node + ")") {
  Sizes sizes(use.imms);
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
    tensors.push_back(&graph.tensor({ids[i], typeOf(use.builtin->operands[i].type),
                                     sizes.dims(use.pass->sides[i]), {}, use.alignment},
                                    {use.pass->sides[i]}));
  DnnNode &operation = graph.operation(use.pass->kind, "the " + std::string(use.builtin->name));
  operation.set(use.pass->alpha, 1.0f).set(use.pass->beta, 0.0f).set(use.pass->convolution, windows);
  for (size_t i = 0; i < ids.size(); ++i)
    operation.set(use.pass->operands[i], *tensors[i]);
  operation.finalize();
  graph.finalize();
}

/// No engine that rounds f32 to TF32: products on cuBLASLt do not either. What is narrow already tensor cores
/// multiply as it is.
DnnChoice Convolution::propose() const {
  std::string why;
  bool narrow = use.builtin->operands[0].type != "f32";
  if (auto choice = graph.propose({convolutionWorkspace, narrow}, &why))
    return *choice;
  throw Failure::at("", Message::dnnNoEngine, use.kernel, use.node, graph.dnn.describe(),
                    core::grouped(convolutionWorkspace), why);
}

std::string keyOf(const kernels::BuiltinKernel &builtin, const std::vector<uint64_t> &imms) {
  std::string key(builtin.name);
  for (uint64_t imm : imms)
    key += "," + std::to_string(imm);
  return key;
}

/// The convolutions of some of a bundle's programs, by key.
std::map<std::string, Use> usesOf(const format::Bundle &bundle, std::span<const format::Program> programs) {
  std::map<std::string, Use> uses;
  for (const format::Program &program : programs)
    for (const format::Block &block : program.blocks)
      for (const format::Instruction &instruction : block.instructions) {
        if (instruction.op != format::Op::Kernel)
          continue;
        const format::Kernel &kernel = program.kernels[instruction.kernel];
        const Pass *pass = passOfKernel(kernel);
        if (!pass)
          continue;
        std::vector<uint64_t> imms;
        for (const format::Imm &imm : instruction.imms) {
          if (!imm.axis.empty())
            throw Failure::at("", Message::unsupportedInstruction, "kernel \"" + kernel.name + "\"",
                              kernel.symbol + " whose sizes depend on the rank");
          imms.push_back(static_cast<uint64_t>(imm.value));
        }
        const kernels::BuiltinKernel *builtin = kernels::findBuiltin(kernel.symbol);
        Use &use = uses[keyOf(*builtin, imms)];
        if (!use.pass)
          use = {pass, builtin, imms, 256, kernel.name,
                 instruction.provenance < 0 ? "no node"
                                            : bundle.provenance[static_cast<size_t>(instruction.provenance)]};
        use.alignment = std::min(use.alignment, alignmentOf(program, instruction));
      }
  return uses;
}

} // namespace

std::unique_ptr<LibraryKernel> makeConvolution(const Dnn &dnn, std::string_view builtin,
                                               const std::vector<uint64_t> &immediates, uint32_t alignment,
                                               const std::string &kernel, const std::string &node) {
  Use use{passOf(builtin), kernels::findBuiltin(builtin), immediates, alignment, kernel, node};
  auto made = std::make_unique<Convolution>(dnn, use);
  made->plan(made->propose());
  return made;
}

bool anyConvolution(const format::Bundle &bundle) {
  for (const format::Program &program : bundle.programs)
    if (std::any_of(program.kernels.begin(), program.kernels.end(), passOfKernel))
      return true;
  return false;
}

void agreeOnConvolutions(const Dnn &dnn, const core::DeviceOptions &options, comm::Control &control,
                         Kernels &kernels) {
  const std::map<std::string, Use> uses = usesOf(*options.bundle, options.bundle->programs);
  std::ostringstream proposal; // "KEY CHOICE" a line
  if (control.rank() == 0)
    for (const auto &[key, use] : uses)
      proposal << key << ' ' << Convolution(dnn, use).propose().text() << '\n';
  std::istringstream lines(control.broadcast("convolutions", proposal.str()));
  std::map<std::string, DnnChoice> choices;
  for (std::string key, choice; lines >> key >> choice;)
    choices[key] = DnnChoice::read(choice).value();
  for (const auto &[key, own] : usesOf(*options.bundle, {&options.program(), 1})) {
    // Alignments are those of all programs, as the choice was made for them.
    auto made = std::make_unique<Convolution>(dnn, uses.at(key));
    made->plan(choices.at(key));
    kernels.adopt(own.builtin->name, own.imms, std::move(made));
  }
}

} // namespace par::cuda
