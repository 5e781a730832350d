// Ranks agree on the engines of a bundle's graphs: rank 0 has them by its file, by timing or by cuDNN's heuristic, and
// tells the others.
#include "ShareGraphTuning.h"

#include "Autotune.h"
#include "cuda/dnn/LibraryGraphs.h"
#include "par/kernels/Builtins.h"
#include "par/kernels/CudaBuiltins.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <sstream>

namespace par::cuda {

using core::Failure;
using core::Message;

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

/// Uses in some of a bundle's programs, by key, each at its first occurrence.
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

/// Bytes of a builtin's operands, those that are there, and at last of the workspace.
std::vector<uint64_t> bytesOf(const GraphUse &use, uint64_t workspace) {
  const kernels::BuiltinKernel &builtin = *kernels::findBuiltin(use.builtin);
  std::vector<uint64_t> bytes;
  for (size_t i = 0; i < builtin.operands.size(); ++i)
    if (kernels::isPresent(builtin.operands[i], use.immediates))
      bytes.push_back(kernels::operandElements(builtin, i, use.immediates) *
                      kernels::typeBytes(builtin.operands[i].type));
  bytes.push_back(workspace);
  return bytes;
}

/// The fastest of the engines that are proposed for a use.
TunedGraph fastest(const SharedTuning &of, const Dnn &dnn, const GraphUse &use, Autotune &trial) {
  std::unique_ptr<GraphKernel> kernel = makeGraphKernel(dnn, use);
  std::vector<DnnChoice> choices = kernel->propose(of.options.tuning.times ? kernel->ways() : 1);
  if (choices.size() == 1)
    return {choices.front(), 0};
  std::vector<std::unique_ptr<GraphKernel>> planned;
  std::vector<Autotune::Way> ways;
  uint64_t workspace = 0;
  for (const DnnChoice &choice : choices) {
    planned.push_back(makeGraphKernel(dnn, use));
    planned.back()->plan(choice);
    workspace = std::max(workspace, planned.back()->workspace());
  }
  std::vector<uint64_t> bytes = bytesOf(use, workspace);
  for (const auto &one : planned)
    ways.push_back(
        [&](void *const *operands) { one->run({operands, bytes.size() - 1}, operands[bytes.size() - 1], of.stream); });
  Autotune::Fastest found = trial.fastest(bytes, ways);
  return {choices[found.way], found.microseconds};
}

/// Rank 0's choice. Returns a remark if engines were timed.
std::string decide(const SharedTuning &of, const Dnn &dnn, const std::map<std::string, GraphUse> &uses) {
  const core::Tuning &tuning = of.options.tuning;
  TuningFile &file = of.decided.file;
  file.of = {of.gpu.name(), "", of.options.bundle->manifest.bundleHash};
  file.dnn = dnn.describe();
  std::string why; // the remark on matmuls says it, if there are any
  TuningFile before = recall(tuning, file.of, why);
  TunedGraphs kept = before.dnn == file.dnn ? before.graphs : TunedGraphs{};
  Autotune trial(of.gpu, of.stream, of.lent);
  size_t fresh = 0, timed = 0;
  for (const auto &[key, use] : uses) {
    auto known = kept.find(key);
    fresh += known == kept.end();
    TunedGraph &graph = file.graphs[key] = known != kept.end() ? known->second : fastest(of, dnn, use, trial);
    timed += known == kept.end() && graph.microseconds > 0;
  }
  of.decided.fresh += fresh;
  std::string many = std::to_string(uses.size()) + (uses.size() == 1 ? " graph" : " graphs");
  std::string reason = anyGemm(*of.options.bundle) ? "" : why;
  if (timed == 0)
    return reason.empty() ? "" : "tuning  " + reason + "engines chosen again";
  return "tuning  " + reason + many + " of " + file.dnn + ": engines of " + std::to_string(timed) + " timed";
}

} // namespace

bool anyGraph(const format::Bundle &bundle) {
  return std::any_of(bundle.programs.begin(), bundle.programs.end(), [](const format::Program &program) {
    return std::any_of(program.kernels.begin(), program.kernels.end(), isGraph);
  });
}

void shareGraphTuning(const SharedTuning &of, const Dnn &dnn, Kernels &kernels, std::string &remark) {
  const std::map<std::string, GraphUse> uses = usesOf(*of.options.bundle, of.options.bundle->programs);
  std::ostringstream decision; // "KEY CHOICE" a line
  if (of.control.rank() == 0) {
    remark = decide(of, dnn, uses);
    for (const auto &[key, graph] : of.decided.file.graphs)
      decision << key << ' ' << graph.choice.text() << '\n';
  }
  std::istringstream lines(of.control.broadcast("graphs", decision.str()));
  std::map<std::string, DnnChoice> choices;
  for (std::string key, choice; lines >> key >> choice;)
    choices[key] = DnnChoice::read(choice).value();
  for (const auto &[key, own] : usesOf(*of.options.bundle, {&of.options.program(), 1})) {
    // Alignments are those of all programs, as the choice was made for them.
    std::unique_ptr<GraphKernel> made = makeGraphKernel(dnn, uses.at(key));
    made->plan(choices.at(key));
    kernels.adopt(own.builtin, own.immediates, std::move(made));
  }
}

} // namespace par::cuda
