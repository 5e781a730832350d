// Bytes of each role by purpose, and the values that forward keeps for backward, from the programs of a bundle.
#include "par/Inspect/Memory.h"

#include "LayerNames.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using namespace llvm;

namespace par {

/// Whether a buffer accumulates a gradient over microbatches: the loop's results are called so by Schedule.
static bool isAccumulator(const format::Buffer &buffer) { return StringRef(buffer.name).contains(".sum."); }

/// Buffers that forward writes and backward reads before it writes them, each with the instruction that writes it
/// first. Names of blocks, from Schedule, tell forward from backward.
static llvm::MapVector<uint32_t, const format::Instruction *> findSaved(const format::Program &program) {
  llvm::MapVector<uint32_t, const format::Instruction *> written;
  llvm::DenseSet<uint32_t> read;
  for (const format::Block &block : program.blocks) {
    bool forward = StringRef(block.name).contains("forward"), backward = StringRef(block.name).contains("backward");
    llvm::DenseSet<uint32_t> own; // written in this block
    for (const format::Instruction &instruction : block.instructions)
      for (const format::Operand &operand : instruction.operands)
        if (program.buffers[operand.buffer].kind != format::BufferKind::Temp ||
            isAccumulator(program.buffers[operand.buffer]))
          continue;
        else if (forward && operand.access == format::Access::Write)
          written.insert({operand.buffer, &instruction});
        else if (backward && operand.access == format::Access::Write)
          own.insert(operand.buffer);
        else if (backward && operand.access == format::Access::Read && !own.contains(operand.buffer))
          read.insert(operand.buffer);
  }
  written.remove_if([&](auto &entry) { return !read.contains(entry.first); });
  return written;
}

std::vector<RoleMemory> measureMemory(const format::Bundle &bundle) {
  std::vector<RoleMemory> roles;
  for (auto [index, program] : enumerate(bundle.programs)) {
    RoleMemory role;
    auto kept = findSaved(program);
    role.name = program.name;
    for (const format::Rank &rank : bundle.manifest.ranks)
      role.ranks += rank.role == index;
    for (auto [number, buffer] : enumerate(program.buffers)) {
      if (buffer.space == format::Space::Host)
        continue;
      uint64_t bytes = buffer.bytes() * buffer.at.size();
      if (buffer.kind == format::BufferKind::State) {
        const format::Tensor *tensor = bundle.manifest.findTensor(buffer.tensor);
        bool state =
            tensor && (tensor->kind == format::TensorKind::State || tensor->kind == format::TensorKind::Counter);
        (state ? role.states : role.params) += bytes;
      } else if (buffer.kind == format::BufferKind::Temp && buffer.index == format::Index::Ver) {
        role.params += bytes; // older versions of the weights
      } else if (isAccumulator(buffer)) {
        role.grads += bytes;
      } else if (buffer.kind == format::BufferKind::Temp &&
                 (buffer.index == format::Index::Mb || kept.contains(number))) {
        role.saved += bytes;
      }
    }
    role.peak = program.arena.state + program.arena.pool;
    role.host = program.arena.host;
    // Lives that do not overlap share bytes, so the columns may add up to more than the peak.
    uint64_t explained = role.params + role.grads + role.states + role.saved;
    if (explained > role.peak)
      role.saved -= std::min(role.saved, explained - role.peak);
    else
      role.buffers = role.peak - explained;
    roles.push_back(role);
  }
  return roles;
}

std::string nameOfRole(const std::string &program) {
  std::string numbers = program;
  erase(numbers, 's');
  bool many = StringRef(numbers).find_first_of("+.") != StringRef::npos;
  return (many ? "stages " : "stage ") + numbers;
}

/// `h.*.mlp, pytorch_utils.py:119` of `h.3.mlp, pytorch_utils.py:119`, and its layer: the first number.
static std::pair<std::string, std::optional<unsigned>> splitLayer(StringRef place) {
  StringRef module = place.split(", ").first;
  std::optional<unsigned> layer;
  for (StringRef part : splitName(module))
    if (unsigned number = 0; !layer && !part.getAsInteger(10, number))
      layer = number;
  return {inAnyLayer(module) + place.substr(module.size()).str(), layer};
}

/// `0 to 3, 7`
static std::string describeLayers(const std::set<unsigned> &layers) {
  std::string text;
  raw_string_ostream os(text);
  for (auto layer = layers.begin(); layer != layers.end(); ++layer) {
    unsigned last = *layer;
    while (layers.count(last + 1))
      ++last;
    os << (text.empty() ? "" : ", ") << *layer;
    if (last > *layer)
      os << (last == *layer + 1 ? ", " : " to ") << last;
    layer = layers.find(last);
  }
  return text;
}

static RoleSaved savedOf(const format::Bundle &bundle, const format::Program &program) {
  RoleSaved saved;
  saved.name = program.name;
  std::map<std::pair<std::string, std::string>, std::pair<SavedValues, std::set<unsigned>>> places;
  for (auto [number, instruction] : findSaved(program)) {
    const format::Buffer &buffer = program.buffers[number];
    std::string type(toString(buffer.type));
    type += "[" + join(map_range(buffer.shape, [](int64_t size) { return std::to_string(size); }), "x") + "]";
    std::string place = instruction->provenance < 0 ? "" : bundle.provenance[instruction->provenance];
    auto [anyPlace, layer] = splitLayer(place);
    auto &[values, layers] = places[{anyPlace, type}];
    if (layer)
      layers.insert(*layer);
    if (values.count++ == 0)
      values = {place, "", type, 1, buffer.bytes()};
    else if (values.place != place)
      values.place = anyPlace;
    saved.bytes += buffer.bytes();
    saved.slots = std::max(saved.slots, buffer.at.size());
  }
  for (auto &[place, found] : places) {
    auto &[values, layers] = found;
    if (layers.size() > 1)
      values.layers = describeLayers(layers);
    saved.values.push_back(std::move(values));
  }
  stable_sort(saved.values, [](const SavedValues &one, const SavedValues &other) {
    return one.count * one.bytes > other.count * other.bytes;
  });
  return saved;
}

std::vector<RoleSaved> findSavedValues(const format::Bundle &bundle) {
  std::vector<RoleSaved> roles;
  for (const format::Program &program : bundle.programs)
    roles.push_back(savedOf(bundle, program));
  return roles;
}

} // namespace par
