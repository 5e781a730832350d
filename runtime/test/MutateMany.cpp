// Series of mutations, each judged.
#include "Mutations.h"
#include "Symbolic.h"
#include "par/verify/Verify.h"

#include <cstdio>

using namespace par;
using namespace par::format;
using namespace par::toy;

/// From memory, or from files where there is a folder.
static verify::Verdict judge(const Bundle &bundle, const std::string &folder) {
  if (folder.empty())
    return verify::verifyBundle(bundle);
  if (Expected<Manifest> written = writeBundle(folder, bundle); !written)
    return {{}, verify::Counterexample{verify::Property::WellFormed, written.message(), {}}};
  return verify::verifyBundle(folder);
}

Tally par::toy::mutateMany(const Bundle &bundle, uint64_t count, uint64_t seed, const std::string &folder) {
  Tally tally;
  Random random(seed);
  std::vector<uint64_t> original = runSymbolically(bundle);
  // Kinds of which a bundle has no place (groups, depths) are given up after many tries.
  for (uint64_t tries = 0; tally.total < count && tries < 50 * count; ++tries) {
    auto kind = Mutation(tries % mutationKinds);
    uint32_t rank = uint32_t(random.below(bundle.manifest.ranks.size()));
    std::string what;
    std::optional<Bundle> changed = mutate(bundle, rank, kind, random, what);
    if (!changed)
      continue;
    ++tally.total;
    std::string name(toString(kind));
    verify::Verdict verdict = judge(*changed, folder);
    if (!verdict)
      ++tally.rejected[name][std::string(verify::toString(verdict.counterexample->property))];
    else if (runSymbolically(*changed) == original)
      ++tally.equivalent[name];
    else
      tally.escaped.push_back(what);
  }
  return tally;
}

std::string par::toy::format(const Tally &tally) {
  static constexpr const char *properties[] = {"V1", "V2", "V3", "V4", "V5", "V6"};
  char line[160];
  std::string text = "mutation        V1    V2    V3    V4    V5    V6  rejected  equivalent\n";
  uint64_t rejected = 0, equivalent = 0;
  for (size_t kind = 0; kind < mutationKinds; ++kind) {
    std::string name(toString(Mutation(kind)));
    std::snprintf(line, sizeof line, "%-10s", name.c_str());
    std::string row = line;
    uint64_t sum = 0;
    for (const char *property : properties) {
      uint64_t n = 0;
      if (auto it = tally.rejected.find(name); it != tally.rejected.end())
        if (auto found = it->second.find(property); found != it->second.end())
          n = found->second;
      sum += n;
      std::snprintf(line, sizeof line, "%6llu", static_cast<unsigned long long>(n));
      row += line;
    }
    auto same = tally.equivalent.find(name);
    uint64_t equal = same == tally.equivalent.end() ? 0 : same->second;
    std::snprintf(line, sizeof line, "%10llu%12llu\n", static_cast<unsigned long long>(sum),
                  static_cast<unsigned long long>(equal));
    text += row + line;
    rejected += sum;
    equivalent += equal;
  }
  text += std::to_string(tally.total) + " mutations: " + std::to_string(rejected) + " rejected, " +
          std::to_string(equivalent) +
          " equivalent (the symbolic run of all ranks ends with the same state and outputs), " +
          std::to_string(tally.escaped.size()) + " escaped\n";
  for (const std::string &what : tally.escaped)
    text += "escaped: " + what + "\n";
  return text;
}
