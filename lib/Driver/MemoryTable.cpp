// Measures the memory of each stage from the bundle's buffers, by kind, and prints it; also lists the activations that
// forward keeps for backward, each with the instruction that writes it.
#include "MemoryTable.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <map>

using namespace llvm;

namespace par {

std::string humanBytes(double bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  std::string text;
  raw_string_ostream os(text);
  os << llvm::format(unit == 0 || bytes >= 99.95 ? "%.0f " : "%.1f ", bytes) << units[unit];
  return text;
}

/// Whether a buffer accumulates a gradient over microbatches: the loop's results are called so by Schedule.
static bool isAccumulator(const format::Buffer &buffer) { return StringRef(buffer.name).contains(".sum."); }

/// What forward writes and backward reads, and the instruction that writes it first. Schedule names blocks by what they
/// run.
static llvm::MapVector<uint32_t, const format::Instruction *> findSaved(const format::Program &program) {
  llvm::MapVector<uint32_t, const format::Instruction *> written;
  llvm::DenseSet<uint32_t> read;
  for (const format::Block &block : program.blocks) {
    bool forward = StringRef(block.name).contains("forward"), backward = StringRef(block.name).contains("backward");
    for (const format::Instruction &instruction : block.instructions)
      for (const format::Operand &operand : instruction.operands)
        if (program.buffers[operand.buffer].kind != format::BufferKind::Temp ||
            isAccumulator(program.buffers[operand.buffer]))
          continue;
        else if (forward && operand.access == format::Access::Write)
          written.insert({operand.buffer, &instruction});
        else if (backward && operand.access == format::Access::Read)
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
    // Lives that do not meet share bytes, so the columns may explain more than there is.
    uint64_t explained = role.params + role.grads + role.states + role.saved;
    if (explained > role.peak)
      role.saved -= std::min(role.saved, explained - role.peak);
    else
      role.buffers = role.peak - explained;
    roles.push_back(role);
  }
  return roles;
}

std::string stagesOf(StringRef program) {
  std::string numbers = program.str();
  erase(numbers, 's');
  bool many = StringRef(numbers).find_first_of("+.") != StringRef::npos;
  return (many ? "stages " : "stage ") + numbers;
}

void printMemory(ArrayRef<RoleMemory> roles, std::optional<uint64_t> limit, raw_ostream &os) {
  bool host = llvm::any_of(roles, [](const RoleMemory &role) { return role.host > 0; });
  size_t width = 19;
  std::vector<std::string> names;
  for (const RoleMemory &role : roles) {
    names.push_back("  " + stagesOf(role.name) + " (" + std::to_string(role.ranks) +
                    (role.ranks == 1 ? " rank)" : " ranks)"));
    width = std::max(width, names.back().size());
  }
  os << left_justify("memory per rank", width + 4) << "params      grads     states      saved    buffers       peak"
     << (host ? "       host" : "") << "   limit\n";
  for (auto [role, name] : zip(roles, names)) {
    os << left_justify(name, width);
    for (uint64_t bytes : {role.params, role.grads, role.states, role.saved, role.buffers, role.peak})
      os << right_justify(humanBytes(double(bytes)), 11);
    if (host)
      os << right_justify(humanBytes(double(role.host)), 11);
    os << "   " << (limit ? humanBytes(double(*limit)) : "none");
    if (&role == &roles.back())
      os << "   (a bound, not an estimate)";
    os << "\n";
  }
}

void explainMemory(const format::Bundle &bundle, raw_ostream &os) {
  for (const format::Program &program : bundle.programs) {
    // Values of one place and type are one line; the largest lines come first.
    std::map<std::pair<std::string, std::string>, std::vector<uint64_t>> places;
    uint64_t total = 0;
    size_t slots = 1;
    for (auto [number, instruction] : findSaved(program)) {
      const format::Buffer &buffer = program.buffers[number];
      std::string type(toString(buffer.type));
      type += "[" + join(map_range(buffer.shape, [](int64_t size) { return std::to_string(size); }), "x") + "]";
      StringRef where =
          instruction->provenance < 0 ? StringRef() : StringRef(bundle.provenance[instruction->provenance]);
      places[{where.str(), type}].push_back(buffer.bytes());
      total += buffer.bytes();
      slots = std::max(slots, buffer.at.size());
    }
    std::vector<std::pair<std::pair<std::string, std::string>, std::vector<uint64_t>>> lines(places.begin(),
                                                                                             places.end());
    stable_sort(lines, [](auto &one, auto &other) {
      return one.second.size() * one.second[0] > other.second.size() * other.second[0];
    });
    os << "stage " << StringRef(program.name).ltrim('s') << " saves " << total << " bytes of a microbatch in " << slots
       << (slots == 1 ? " slot" : " slots") << "\n";
    for (auto &[place, bytes] : lines)
      os << right_justify(std::to_string(bytes.size()), 6) << " x " << right_justify(std::to_string(bytes[0]), 12)
         << "  " << left_justify(place.second, 24) << place.first << "\n";
  }
}

bool checkMemory(ArrayRef<RoleMemory> roles, std::optional<uint64_t> limit, const Finding &place,
                 llvm::function_ref<std::vector<std::string>(uint64_t)> waysOut, FindingSink sink) {
  bool fits = true;
  for (const RoleMemory &role : roles) {
    if (!limit || role.peak <= *limit)
      continue;
    Finding finding = place;
    if (fits)
      finding.notes = waysOut(*limit);
    fits = false;
    raw_string_ostream(finding.message) << stagesOf(role.name) << " needs " << humanBytes(double(role.peak))
                                        << " a rank, the limit is " << humanBytes(double(*limit)) << " (params "
                                        << humanBytes(double(role.params)) << ", grads "
                                        << humanBytes(double(role.grads)) << ", states "
                                        << humanBytes(double(role.states)) << ", saved "
                                        << humanBytes(double(role.saved)) << ", buffers "
                                        << humanBytes(double(role.buffers)) << ")";
    sink(finding);
  }
  return fits;
}

} // namespace par
