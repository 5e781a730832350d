#include "MemoryTable.h"

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

std::vector<RoleMemory> measureMemory(const format::Bundle &bundle) {
  std::vector<RoleMemory> roles;
  for (auto [index, program] : enumerate(bundle.programs)) {
    RoleMemory role;
    role.name = program.name;
    for (const format::Rank &rank : bundle.manifest.ranks)
      role.ranks += rank.role == index;
    for (const format::Buffer &buffer : program.buffers) {
      uint64_t bytes = buffer.bytes() * buffer.at.size();
      if (buffer.kind == format::BufferKind::State) {
        const format::Tensor *tensor = bundle.manifest.findTensor(buffer.tensor);
        bool state = tensor && (tensor->kind == format::TensorKind::State || tensor->kind == format::TensorKind::Counter);
        (state ? role.states : role.params) += bytes;
      } else if (isAccumulator(buffer)) {
        role.grads += bytes;
      } else if (buffer.kind == format::BufferKind::Temp && buffer.index == format::Index::Mb) {
        role.saved += bytes;
      }
    }
    role.peak = program.arena.state + program.arena.pool;
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

void printMemory(ArrayRef<RoleMemory> roles, std::optional<uint64_t> limit, raw_ostream &os) {
  os << "memory per rank       params      grads     states      saved    buffers       peak   limit\n";
  for (const RoleMemory &role : roles) {
    std::string name = "  " + role.name + " (" + std::to_string(role.ranks) + (role.ranks == 1 ? " rank)" : " ranks)");
    os << left_justify(name, 18);
    for (uint64_t bytes : {role.params, role.grads, role.states, role.saved, role.buffers, role.peak})
      os << right_justify(humanBytes(double(bytes)), 11);
    os << "   " << (limit ? humanBytes(double(*limit)) : "none");
    if (&role == &roles.back())
      os << "   (a bound, not an estimate)";
    os << "\n";
  }
}

bool checkMemory(ArrayRef<RoleMemory> roles, std::optional<uint64_t> limit, StringRef place, raw_ostream &err) {
  bool fits = true;
  for (const RoleMemory &role : roles) {
    if (!limit || role.peak <= *limit)
      continue;
    fits = false;
    err << place << ": error: " << role.name << " needs " << humanBytes(double(role.peak)) << " a rank, the limit is "
        << humanBytes(double(*limit)) << " (params " << humanBytes(double(role.params)) << ", grads "
        << humanBytes(double(role.grads)) << ", states " << humanBytes(double(role.states)) << ", saved "
        << humanBytes(double(role.saved)) << ", buffers " << humanBytes(double(role.buffers)) << ")\n";
  }
  return fits;
}

namespace {

/// Communications of one sort by their size.
struct Traffic {
  std::map<uint64_t, uint64_t> counts; ///< bytes of one, how many
  uint64_t bytes = 0;
};
using TrafficBySort = std::map<std::pair<std::string, std::string>, Traffic>;

} // namespace

/// What one rank of a role communicates in one run of the entry.
static TrafficBySort countTraffic(const format::Program &program, uint32_t entry) {
  TrafficBySort traffic;
  for (const format::Run &run : program.entries[entry].runs)
    for (const format::Instruction &instruction : program.blocks[run.block].instructions) {
      std::string kind;
      if (instruction.op == format::Op::Coll)
        kind = std::string(toString(instruction.coll));
      else if (instruction.op == format::Op::Send || instruction.op == format::Op::Recv)
        kind = "send, recv";
      else
        continue;
      Traffic &sort = traffic[{program.comms[instruction.comm].name, kind}];
      uint64_t bytes = instruction.n * sizeOf(instruction.type);
      ++sort.counts[bytes];
      sort.bytes += bytes;
    }
  return traffic;
}

void printCommunication(const format::Bundle &bundle, StringRef entry, raw_ostream &os) {
  TrafficBySort most;
  for (const format::Program &program : bundle.programs) {
    uint32_t index = program.findEntry(entry.str());
    if (index == format::kNone)
      continue;
    for (auto &[sort, traffic] : countTraffic(program, index))
      if (Traffic &known = most[sort]; traffic.bytes >= known.bytes)
        known = traffic;
  }
  if (most.empty())
    return;
  os << "communication per rank and step\n";
  for (auto &[sort, traffic] : most) {
    os << "  " << left_justify(sort.first, 4) << " " << left_justify(sort.second, 15);
    std::vector<std::pair<uint64_t, uint64_t>> sizes(traffic.counts.rbegin(), traffic.counts.rend());
    stable_sort(sizes, [](auto &a, auto &b) { return a.first * a.second > b.first * b.second; });
    for (auto [i, size] : enumerate(ArrayRef(sizes).take_front(3)))
      os << (i ? ", " : "") << size.second << " x " << humanBytes(double(size.first));
    if (sizes.size() > 3)
      os << " and " << sizes.size() - 3 << " more sizes";
    os << "\n";
  }
}

} // namespace par
