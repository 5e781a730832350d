#include "par/Inspect/LargestTensors.h"

#include "LayerNames.h"

#include <map>

using namespace llvm;

namespace par {

static const format::Program &fullest(const format::Bundle &bundle) {
  auto peak = [](const format::Program &program) { return program.arena.state + program.arena.pool; };
  const format::Program *most = &bundle.programs.front();
  for (const format::Program &program : bundle.programs)
    if (peak(program) > peak(*most))
      most = &program;
  return *most;
}

/// The places that values are from, by the first instruction that writes each buffer.
static std::map<uint32_t, std::string> placesOf(const format::Bundle &bundle, const format::Program &program) {
  std::map<uint32_t, std::string> places;
  for (const format::Block &block : program.blocks)
    for (const format::Instruction &instruction : block.instructions)
      for (const format::Operand &operand : instruction.operands)
        if (operand.access != format::Access::Read && instruction.provenance >= 0)
          places.try_emplace(operand.buffer, bundle.provenance[instruction.provenance]);
  return places;
}

std::vector<LargeTensor> findLargestTensors(const format::Bundle &bundle, size_t most) {
  const format::Program &program = fullest(bundle);
  std::map<uint32_t, std::string> places = placesOf(bundle, program);
  std::map<std::pair<std::string, std::string>, LargeTensor> found;
  for (auto [number, buffer] : enumerate(program.buffers)) {
    if (buffer.space == format::Space::Host || buffer.at.empty())
      continue;
    std::string place = buffer.tensor.empty() ? places[number] : buffer.tensor;
    StringRef module = StringRef(place).split(", ").first;
    std::string name = inAnyLayer(module);
    if (buffer.tensor.empty())
      name = (StringRef(buffer.name).contains(".sum.") ? "gradient at " : "value of ") +
             (name.empty() ? buffer.name : name);
    std::string type(toString(buffer.type));
    type += "[" + join(map_range(buffer.shape, [](int64_t size) { return std::to_string(size); }), "x") + "]";
    LargeTensor &tensor = found[{name, type}];
    tensor.name = name;
    tensor.type = type;
    tensor.count += buffer.at.size();
    tensor.bytes += buffer.bytes() * buffer.at.size();
  }
  std::vector<LargeTensor> tensors;
  for (auto &[key, tensor] : found)
    tensors.push_back(std::move(tensor));
  stable_sort(tensors, [](const LargeTensor &one, const LargeTensor &other) { return one.bytes > other.bytes; });
  tensors.resize(std::min(tensors.size(), most));
  return tensors;
}

} // namespace par
