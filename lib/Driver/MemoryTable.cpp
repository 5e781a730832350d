#include "MemoryTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

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

std::vector<RoleMemory> measureMemory(const format::Bundle &bundle) {
  std::vector<RoleMemory> roles;
  for (auto [index, program] : enumerate(bundle.programs)) {
    RoleMemory role;
    role.name = program.name;
    for (const format::Rank &rank : bundle.manifest.ranks)
      role.ranks += rank.role == index;
    for (const format::Buffer &buffer : program.buffers) {
      if (buffer.space == format::Space::Host)
        continue;
      uint64_t bytes = buffer.bytes() * buffer.at.size();
      if (buffer.kind == format::BufferKind::State) {
        const format::Tensor *tensor = bundle.manifest.findTensor(buffer.tensor);
        bool state = tensor && (tensor->kind == format::TensorKind::State ||
                                tensor->kind == format::TensorKind::Counter);
        (state ? role.states : role.params) += bytes;
      } else if (isAccumulator(buffer)) {
        role.grads += bytes;
      } else if (buffer.kind == format::BufferKind::Temp && buffer.index == format::Index::Mb) {
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

/// "stage 0", of two on the same ranks "stages 0+2".
static std::string nameOf(const RoleMemory &role) {
  std::string numbers = role.name;
  erase(numbers, 's');
  bool many = StringRef(numbers).find_first_of("+.") != StringRef::npos;
  return (many ? "stages " : "stage ") + numbers;
}

void printMemory(ArrayRef<RoleMemory> roles, std::optional<uint64_t> limit, raw_ostream &os) {
  bool host = llvm::any_of(roles, [](const RoleMemory &role) { return role.host > 0; });
  size_t width = 19;
  std::vector<std::string> names;
  for (const RoleMemory &role : roles) {
    names.push_back("  " + nameOf(role) + " (" + std::to_string(role.ranks) + (role.ranks == 1 ? " rank)" : " ranks)"));
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
    raw_string_ostream(finding.message)
        << nameOf(role) << " needs " << humanBytes(double(role.peak))
        << " a rank, the limit is " << humanBytes(double(*limit)) << " (params "
        << humanBytes(double(role.params)) << ", grads " << humanBytes(double(role.grads)) << ", states "
        << humanBytes(double(role.states)) << ", saved " << humanBytes(double(role.saved)) << ", buffers "
        << humanBytes(double(role.buffers)) << ")";
    sink(finding);
  }
  return fits;
}

} // namespace par
