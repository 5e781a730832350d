#include "par/Report/MemoryLimit.h"
#include "par/Report/Text.h"

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

void printMemory(ArrayRef<RoleMemory> roles, std::optional<uint64_t> limit, raw_ostream &os) {
  bool host = any_of(roles, [](const RoleMemory &role) { return role.host > 0; });
  size_t width = 19;
  std::vector<std::string> names;
  for (const RoleMemory &role : roles) {
    names.push_back("  " + nameOfRole(role.name) + " (" + std::to_string(role.ranks) +
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

void printSavedValues(ArrayRef<RoleSaved> roles, raw_ostream &os) {
  for (const RoleSaved &role : roles) {
    os << "stage " << StringRef(role.name).ltrim('s') << " saves " << role.bytes << " bytes of a microbatch in "
       << role.slots << (role.slots == 1 ? " slot" : " slots") << "\n";
    for (const SavedValues &values : role.values)
      os << right_justify(std::to_string(values.count), 6) << " x " << right_justify(std::to_string(values.bytes), 12)
         << "  " << left_justify(values.type, 24) << (values.layers.empty() ? "" : "layers " + values.layers + ": ")
         << values.place << "\n";
  }
}

/// "zero: 1 brings it to 49.9 GiB at +0.4 % time".
static std::string describeWay(StringRef ways, const Measures &found, int64_t stepNs) {
  std::string text;
  double longer = 100.0 * double(found.stepNs - stepNs) / double(stepNs);
  raw_string_ostream(text) << ways << " to " << humanBytes(double(found.peak))
                           << llvm::format(" at %+.1f %% time", longer);
  return text;
}

std::string describeWaysOut(const WaysOut &out, uint64_t limit) {
  std::vector<std::string> texts;
  for (const Way &way : out.fitting)
    texts.push_back(describeWay(way.spelled + " brings it", way.measures, out.plan.stepNs));
  if (!texts.empty())
    return join(texts, "; ");
  if (!out.together)
    return "no zero, recompute, offload or smaller microbatches makes it less; it takes more ranks on an axis that "
           "shards "
           "parameters or activations, or a smaller model";
  auto names = map_range(out.helpful, [](const Way &way) { return way.spelled; });
  std::string text = describeWay(join(names, ", ") + " together bring it", *out.together, out.plan.stepNs);
  return out.together->peak <= limit ? text : text + ", still above the limit; it takes more ranks too";
}

/// "3.0 GiB a rank, the limit is 2.9 GiB"; if both read alike, with the difference: ", 1,024 bytes less".
static std::string compareWithLimit(uint64_t peak, uint64_t limit) {
  std::string needs = humanBytes(double(peak)), has = humanBytes(double(limit));
  std::string text = needs + " a rank, the limit is " + has;
  if (needs != has)
    return text;
  std::string bytes = std::to_string(peak - limit);
  for (int at = int(bytes.size()) - 3; at > 0; at -= 3)
    bytes.insert(at, ",");
  return text + ", " + bytes + (bytes == "1" ? " byte less" : " bytes less");
}

std::vector<CompileDiagnostic> diagnosticsAboveLimit(ArrayRef<RoleMemory> roles, uint64_t limit,
                                                     const CompileDiagnostic &place) {
  std::vector<CompileDiagnostic> findings;
  for (const RoleMemory &role : roles) {
    if (role.peak <= limit)
      continue;
    CompileDiagnostic finding = place;
    raw_string_ostream(finding.message) << nameOfRole(role.name) << " needs " << compareWithLimit(role.peak, limit)
                                        << " (params " << humanBytes(double(role.params)) << ", grads "
                                        << humanBytes(double(role.grads)) << ", states "
                                        << humanBytes(double(role.states)) << ", saved "
                                        << humanBytes(double(role.saved)) << ", buffers "
                                        << humanBytes(double(role.buffers)) << ")";
    findings.push_back(std::move(finding));
  }
  return findings;
}

} // namespace par
