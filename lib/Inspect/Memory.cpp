// Bytes of each role by purpose, and the values that forward keeps for backward, from the programs of a bundle.
#include "par/Inspect/Memory.h"

#include "BufferUse.h"
#include "LayerNames.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using namespace llvm;

namespace par {

/// Null: the rest of the peak.
static uint64_t *columnOf(RoleMemory &role, BufferUse use) {
  switch (use) {
  case BufferUse::Params:
    return &role.params;
  case BufferUse::Grads:
    return &role.grads;
  case BufferUse::States:
    return &role.states;
  case BufferUse::Saved:
    return &role.saved;
  case BufferUse::Buffers:
    return nullptr;
  }
  llvm_unreachable("a use without a column");
}

std::vector<RoleMemory> measureMemory(const format::Bundle &bundle) {
  std::vector<RoleMemory> roles;
  for (auto [index, program] : enumerate(bundle.programs)) {
    RoleMemory role;
    BufferUses uses(bundle, program);
    role.name = program.name;
    for (const format::Rank &rank : bundle.manifest.ranks)
      role.ranks += rank.role == index;
    for (auto [number, buffer] : enumerate(program.buffers))
      if (buffer.space != format::Space::Host)
        if (uint64_t *column = columnOf(role, uses.of(number)))
          *column += buffer.bytes() * buffer.at.size();
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
  BufferUses uses(bundle, program);
  saved.name = program.name;
  std::map<std::pair<std::string, std::string>, std::pair<SavedValues, std::set<unsigned>>> places;
  for (auto [number, instruction] : uses.saved()) {
    const format::Buffer &buffer = program.buffers[number];
    std::string type = typeOf(buffer);
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
