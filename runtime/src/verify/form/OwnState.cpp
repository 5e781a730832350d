// V1: an update takes its own parameter's state. The manifest says of each state tensor of which parameter it is. An
// instruction that writes a parameter, or its state, touches that of no other one; and a builtin has each kind of
// state, told by how its name differs from its parameter's, at one operand.
#include "verify/Model.h"

#include <algorithm>
#include <map>

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
/// An operand's role for a parameter: the parameter itself (""), or ".m".
struct Part {
  const Tensor *tensor = nullptr;
  std::string of, suffix;
};
} // namespace

static Part partOf(const Manifest &manifest, const Program &program, const Operand &operand) {
  const Buffer &buffer = program.buffers[operand.buffer];
  const Buffer &root = buffer.of == noIndex ? buffer : program.buffers[buffer.of];
  const Tensor *tensor = root.kind == BufferKind::State ? manifest.findTensor(root.tensor) : nullptr;
  if (!tensor || (tensor->kind != TensorKind::Parameter && tensor->kind != TensorKind::State))
    return {};
  if (tensor->kind == TensorKind::Parameter)
    return {tensor, tensor->name, ""};
  return {tensor, tensor->of,
          tensor->name.starts_with(tensor->of) ? tensor->name.substr(tensor->of.size()) : tensor->name};
}

/// Whether a buffer can have this name: operands name it.
static bool canBeNamed(const std::string &name) {
  return name.size() <= 256 && std::ranges::none_of(name, [](char c) {
           return c == '@' || c == '"' || c == 0x7f || (static_cast<unsigned char>(c) <= ' ');
         });
}

std::optional<Counterexample> par::verify::checkStateNames(const Bundle &bundle) {
  for (const Program &program : bundle.programs)
    for (const Buffer &buffer : program.buffers)
      if (buffer.kind == BufferKind::State && buffer.of == noIndex && buffer.name != buffer.tensor &&
          canBeNamed(buffer.tensor) && bundle.manifest.findTensor(buffer.name))
        return Counterexample{Property::WellFormed,
                              "buffer '" + buffer.name + "' of " + program.name +
                                  " has the name of a tensor, but holds '" + buffer.tensor + "'",
                              {}};
  return std::nullopt;
}

std::optional<Counterexample> par::verify::checkOwnState(const Bundle &bundle) {
  std::map<std::pair<std::string, uint32_t>, std::string> places; // suffix by builtin and operand
  for (const Program &program : bundle.programs)
    for (uint32_t block = 0; block < program.blocks.size(); ++block)
      for (uint32_t n = 0; n < program.blocks[block].instructions.size(); ++n) {
        const Instruction &it = program.blocks[block].instructions[n];
        if (it.op != Op::Kernel && it.op != Op::Call)
          continue;
        bool writes = false;
        std::vector<Part> parts;
        for (const Operand &operand : it.operands) {
          parts.push_back(partOf(bundle.manifest, program, operand));
          writes |= parts.back().tensor && operand.access != Access::Read;
        }
        const Part *first = nullptr;
        std::string where = " in " + instructionId(program, block, n);
        for (uint32_t i = 0; writes && i < parts.size(); ++i) {
          if (!parts[i].tensor)
            continue;
          if (first && first->of != parts[i].of)
            return Counterexample{Property::WellFormed,
                                  "tensor '" + parts[i].tensor->name + "' of parameter '" + parts[i].of +
                                      "' takes part in an update of '" + first->of + "'" + where,
                                  {}};
          first = &parts[i];
          if (it.op != Op::Kernel || !program.kernels[it.kernel].builtin)
            continue;
          auto [known, fresh] = places.try_emplace({program.kernels[it.kernel].symbol, i}, parts[i].suffix);
          if (!fresh && known->second != parts[i].suffix)
            return Counterexample{Property::WellFormed,
                                  "tensor '" + parts[i].tensor->name + "' is operand " + std::to_string(i) +
                                      " of builtin " + program.kernels[it.kernel].symbol + where + ", which has '" +
                                      known->second + "' of other parameters there",
                                  {}};
        }
      }
  return std::nullopt;
}
