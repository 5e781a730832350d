#include "cuda/Attention.h"

#include "cuda/Agree.h"
#include "cuda/AttentionGraph.h"
#include "par/core/Failure.h"

#include <algorithm>
#include <sstream>

namespace par::cuda {

using core::Failure;
using core::Message;

namespace {

bool isAttention(const format::Kernel &kernel) {
  return kernel.builtin && AttentionGraph::isBuiltin(kernel.symbol);
}

/// An attention of the programs: all that its engine depends on, and where it is first met.
struct Use {
  std::string builtin, kernel, node;
  std::vector<uint64_t> imms;
  uint32_t alignment = 256;

  std::unique_ptr<AttentionGraph> build(const Dnn &dnn) const {
    return std::make_unique<AttentionGraph>(dnn, "kernel \"" + kernel + "\" (" + node + ")", builtin, imms,
                                            alignment);
  }
};

/// Products of bf16 and f16 are exact in f32, also on tensor cores.
DnnChoice propose(const Dnn &dnn, const Use &use) {
  std::string why;
  if (auto choice = use.build(dnn)->getGraph().propose({attentionWorkspace, true}, &why))
    return *choice;
  throw Failure::at("", Message::dnnNoEngine, use.kernel, use.node, dnn.describe(),
                    core::grouped(attentionWorkspace), why);
}

/// The attentions of some of a bundle's programs, by builtin and immediates.
std::map<std::string, Use> usesOf(const format::Bundle &bundle, std::span<const format::Program> programs) {
  std::map<std::string, Use> uses;
  for (const format::Program &program : programs)
    for (const format::Block &block : program.blocks)
      for (const format::Instruction &instruction : block.instructions) {
        if (instruction.op != format::Op::Kernel || !isAttention(program.kernels[instruction.kernel]))
          continue;
        const format::Kernel &kernel = program.kernels[instruction.kernel];
        Use use{kernel.symbol, kernel.name, "no node", {}, alignmentOf(program, instruction)};
        if (instruction.provenance >= 0)
          use.node = bundle.provenance[static_cast<size_t>(instruction.provenance)];
        std::string key = kernel.symbol;
        for (const format::Imm &imm : instruction.imms) {
          if (!imm.axis.empty())
            throw Failure::at("", Message::unsupportedInstruction, "kernel \"" + kernel.name + "\"",
                              kernel.symbol + " whose sizes depend on the rank");
          use.imms.push_back(static_cast<uint64_t>(imm.value));
          key += "," + std::to_string(imm.value);
        }
        Use &known = uses.try_emplace(key, use).first->second;
        known.alignment = std::min(known.alignment, use.alignment);
      }
  return uses;
}

} // namespace

std::unique_ptr<LibraryKernel> makeAttention(const Dnn &dnn, std::string_view builtin,
                                             const std::vector<uint64_t> &immediates, uint32_t alignment,
                                             const std::string &kernel, const std::string &node) {
  Use use{std::string(builtin), kernel, node, immediates, alignment};
  std::unique_ptr<AttentionGraph> made = use.build(dnn);
  made->plan(propose(dnn, use));
  return made;
}

bool anyAttention(const format::Bundle &bundle) {
  return std::any_of(bundle.programs.begin(), bundle.programs.end(), [](const format::Program &program) {
    return std::any_of(program.kernels.begin(), program.kernels.end(), isAttention);
  });
}

void agreeOnAttentions(const Dnn &dnn, const core::DeviceOptions &options, comm::Control &control,
                       Kernels &kernels) {
  const std::map<std::string, Use> uses = usesOf(*options.bundle, options.bundle->programs);
  std::ostringstream proposal; // "KEY CHOICE" a line
  if (control.rank() == 0)
    for (const auto &[key, use] : uses)
      proposal << key << ' ' << propose(dnn, use).text() << '\n';
  std::istringstream lines(control.broadcast("attentions", proposal.str()));
  std::map<std::string, DnnChoice> choices;
  for (std::string key, choice; lines >> key >> choice;)
    choices[key] = DnnChoice::read(choice).value();
  for (const auto &[key, own] : usesOf(*options.bundle, {&options.program(), 1})) {
    // Alignments are those of all programs, as the choice was made for them.
    std::unique_ptr<AttentionGraph> made = uses.at(key).build(dnn);
    made->plan(choices.at(key));
    kernels.adopt(own.builtin, own.imms, std::move(made));
  }
}

} // namespace par::cuda
