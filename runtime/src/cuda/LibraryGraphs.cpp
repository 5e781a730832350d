#include "cuda/LibraryGraphs.h"

#include "cuda/Agree.h"
#include "cuda/AttentionGraph.h"
#include "cuda/ConvolutionGraph.h"
#include "par/core/Failure.h"

#include <algorithm>
#include <sstream>

namespace par::cuda {

using core::Failure;
using core::Message;

DnnChoice GraphKernel::propose() const {
  std::string why;
  if (auto choice = graph.propose(limits, &why))
    return *choice;
  throw Failure::at("", Message::dnnNoEngine, use.kernel, use.node, graph.dnn.describe(),
                    core::grouped(limits.workspace), why);
}

bool isGraphBuiltin(std::string_view builtin) {
  return ConvolutionGraph::isBuiltin(builtin) || AttentionGraph::isBuiltin(builtin);
}

std::unique_ptr<GraphKernel> makeGraphKernel(const Dnn &dnn, const GraphUse &use) {
  if (ConvolutionGraph::isBuiltin(use.builtin))
    return std::make_unique<ConvolutionGraph>(dnn, use);
  return std::make_unique<AttentionGraph>(dnn, use);
}

namespace {

bool isGraph(const format::Kernel &kernel) { return kernel.builtin && isGraphBuiltin(kernel.symbol); }

GraphUse useOf(const format::Bundle &bundle, const format::Program &program, const format::Instruction &instruction) {
  const format::Kernel &kernel = program.kernels[instruction.kernel];
  GraphUse use{kernel.symbol, kernel.name, "no node", {}, alignmentOf(program, instruction)};
  if (instruction.provenance >= 0)
    use.node = bundle.provenance[static_cast<size_t>(instruction.provenance)];
  for (const format::Imm &imm : instruction.imms) {
    if (!imm.axis.empty())
      throw Failure::at("", Message::unsupportedInstruction, "kernel \"" + kernel.name + "\"",
                        kernel.symbol + " whose sizes depend on the rank");
    use.immediates.push_back(static_cast<uint64_t>(imm.value));
  }
  return use;
}

std::string keyOf(const GraphUse &use) {
  std::string key = use.builtin;
  for (uint64_t imm : use.immediates)
    key += "," + std::to_string(imm);
  return key;
}

/// Those of some of a bundle's programs, by key, each where it is first met.
std::map<std::string, GraphUse> usesOf(const format::Bundle &bundle, std::span<const format::Program> programs) {
  std::map<std::string, GraphUse> uses;
  for (const format::Program &program : programs)
    for (const format::Block &block : program.blocks)
      for (const format::Instruction &instruction : block.instructions) {
        if (instruction.op != format::Op::Kernel || !isGraph(program.kernels[instruction.kernel]))
          continue;
        GraphUse use = useOf(bundle, program, instruction);
        GraphUse &known = uses.try_emplace(keyOf(use), use).first->second;
        known.alignment = std::min(known.alignment, use.alignment);
      }
  return uses;
}

} // namespace

bool anyGraph(const format::Bundle &bundle) {
  return std::any_of(bundle.programs.begin(), bundle.programs.end(), [](const format::Program &program) {
    return std::any_of(program.kernels.begin(), program.kernels.end(), isGraph);
  });
}

void agreeOnGraphs(const Dnn &dnn, const core::DeviceOptions &options, comm::Control &control, Kernels &kernels) {
  const std::map<std::string, GraphUse> uses = usesOf(*options.bundle, options.bundle->programs);
  std::ostringstream proposal; // "KEY CHOICE" a line
  if (control.rank() == 0)
    for (const auto &[key, use] : uses)
      proposal << key << ' ' << makeGraphKernel(dnn, use)->propose().text() << '\n';
  std::istringstream lines(control.broadcast("graphs", proposal.str()));
  std::map<std::string, DnnChoice> choices;
  for (std::string key, choice; lines >> key >> choice;)
    choices[key] = DnnChoice::read(choice).value();
  for (const auto &[key, own] : usesOf(*options.bundle, {&options.program(), 1})) {
    // Alignments are those of all programs, as the choice was made for them.
    std::unique_ptr<GraphKernel> made = makeGraphKernel(dnn, uses.at(key));
    made->plan(choices.at(key));
    kernels.adopt(own.builtin, own.immediates, std::move(made));
  }
}

} // namespace par::cuda
