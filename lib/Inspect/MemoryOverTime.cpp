// Live bytes of a played step by purpose, and the values that make its peak.
#include "par/Inspect/MemoryOverTime.h"

#include "BufferUse.h"
#include "LayerNames.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace llvm;

namespace par {

namespace {

/// The memory of one role over the entry, on one of its ranks.
class RoleMoments {
public:
  RoleMoments(const format::Bundle &bundle, const format::Program &program, std::vector<BufferLife> lives)
      : bundle(bundle), program(program), lives(std::move(lives)) {
    BufferUses found(bundle, program);
    for (uint32_t number = 0; number < program.buffers.size(); ++number)
      uses.push_back(found.of(number));
  }

  RoleOverTime describe(int64_t step, size_t maxMoments, size_t maxValues) {
    RoleOverTime result;
    result.role = program.name;
    result.peak = program.arena.deviceBytes();
    for (auto [number, buffer] : enumerate(program.buffers))
      if (buffer.kind == format::BufferKind::State && buffer.space == format::Space::Dev)
        (uses[number] == BufferUse::States ? result.states : result.params) += bytesOf(buffer);
    std::vector<MemoryMoment> all = moments();
    result.peakNs =
        max_element(all, [](const auto &one, const auto &other) { return total(one) < total(other); })->time;
    result.moments = thin(all, step, maxMoments);
    result.largest = valuesAt(result.peakNs, maxValues);
    return result;
  }

private:
  static uint64_t total(const MemoryMoment &moment) { return moment.grads + moment.saved + moment.buffers; }
  static uint64_t bytesOf(const format::Buffer &buffer) { return buffer.bytes() * buffer.at.size(); }

  std::vector<MemoryMoment> moments() const {
    std::vector<std::tuple<int64_t, uint32_t, int64_t>> changes; // a time, a buffer, and the change of its bytes
    for (const BufferLife &life : lives) {
      auto bytes = static_cast<int64_t>(program.buffers[life.buffer].bytes());
      changes.emplace_back(life.begin, life.buffer, bytes);
      changes.emplace_back(life.end, life.buffer, -bytes);
    }
    llvm::sort(changes);
    std::vector<MemoryMoment> all{{}};
    for (auto [time, buffer, change] : changes) {
      if (time > all.back().time)
        all.push_back(all.back()), all.back().time = time;
      BufferUse use = uses[buffer];
      (use == BufferUse::Grads   ? all.back().grads
       : use == BufferUse::Saved ? all.back().saved
                                 : all.back().buffers) += change;
    }
    return all;
  }

  /// The largest moment of each of `most` parts of the step.
  static std::vector<MemoryMoment> thin(ArrayRef<MemoryMoment> all, int64_t step, size_t most) {
    if (all.size() <= most)
      return all.vec();
    std::vector<MemoryMoment> kept;
    size_t last = most; // the part of the last one that is kept
    for (const MemoryMoment &moment : all) {
      size_t part = moment.time * static_cast<int64_t>(most - 1) / std::max<int64_t>(1, step);
      if (part != last)
        kept.push_back(moment);
      else if (total(moment) > total(kept.back()))
        kept.back() = moment;
      last = part;
    }
    return kept;
  }

  /// Module and line of the first instruction that writes each buffer.
  llvm::DenseMap<uint32_t, int64_t> findMakers() const {
    llvm::DenseMap<uint32_t, int64_t> makers;
    for (const format::Block &block : program.blocks)
      for (const format::Instruction &instruction : block.instructions)
        for (const format::Operand &operand : instruction.operands)
          if (operand.access != format::Access::Read && instruction.provenance >= 0)
            makers.try_emplace(program.buffers[operand.buffer].of == format::noIndex
                                   ? operand.buffer
                                   : program.buffers[operand.buffer].of,
                               instruction.provenance);
    return makers;
  }

  std::vector<PeakValues> valuesAt(int64_t time, size_t most) const {
    llvm::DenseMap<uint32_t, int64_t> makers = findMakers();
    std::map<std::tuple<std::string, std::string, std::string>, PeakValues> groups;
    auto add = [&](uint32_t number, uint64_t bytes) {
      const format::Buffer &buffer = program.buffers[number];
      auto maker = makers.find(number);
      std::string name = !buffer.tensor.empty()  ? buffer.tensor
                         : maker != makers.end() ? bundle.provenance[maker->second]
                                                 : "";
      auto [module, line] = StringRef(name).split(", ");
      std::string anyName = inAnyLayer(module) + (line.empty() ? "" : ", " + line.str());
      std::string use = toString(uses[number]).str(), type = typeOf(buffer);
      PeakValues &values = groups.try_emplace({anyName, type, use}, PeakValues{name, type, use}).first->second;
      if (++values.count > 1 && values.name != name)
        values.name = anyName;
      values.bytes += bytes;
    };
    for (auto [number, buffer] : enumerate(program.buffers))
      if (buffer.kind == format::BufferKind::State && buffer.space == format::Space::Dev &&
          buffer.of == format::noIndex)
        add(number, bytesOf(buffer));
    for (const BufferLife &life : lives)
      if (life.begin <= time && time < life.end)
        add(life.buffer, program.buffers[life.buffer].bytes());
    std::vector<PeakValues> values;
    for (auto &[key, value] : groups)
      values.push_back(std::move(value));
    stable_sort(values, [](const auto &one, const auto &other) { return one.bytes > other.bytes; });
    if (values.size() > most)
      values.resize(most);
    return values;
  }

  const format::Bundle &bundle;
  const format::Program &program;
  std::vector<BufferUse> uses; ///< by buffer
  std::vector<BufferLife> lives;
};

} // namespace

std::vector<RoleOverTime> describeMemoryOverTime(const format::Bundle &bundle, StringRef entry,
                                                 const Simulation &simulation, size_t maxMoments, size_t maxValues) {
  std::vector<RoleOverTime> roles;
  for (auto [index, program] : enumerate(bundle.programs)) {
    auto first = find_if(bundle.manifest.ranks, [&](const format::Rank &rank) { return rank.role == index; });
    if (first == bundle.manifest.ranks.end())
      continue;
    uint32_t rank = first - bundle.manifest.ranks.begin();
    const format::Entry &played = program.entries[program.findEntry(std::string_view(entry))];
    RoleMoments moments(bundle, program, findLives(program, played, simulation.instructionsOf(rank)));
    roles.push_back(moments.describe(simulation.step, maxMoments, maxValues));
  }
  return roles;
}

} // namespace par
