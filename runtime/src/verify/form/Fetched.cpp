// V1: each of an output's ranks fetches it once.
#include "verify/Model.h"

#include <map>
#include <set>

using namespace par;
using namespace par::format;
using namespace par::verify;

/// A rank that plays a role.
static uint32_t rankOf(const Manifest &manifest, uint32_t role) {
  uint32_t rank = 0;
  while (manifest.ranks[rank].role != role)
    ++rank;
  return rank;
}

static std::optional<Counterexample> checkEntry(const Bundle &bundle, const std::string &entry) {
  std::map<std::string, std::set<uint32_t>> roles; // by output
  for (uint32_t role = 0; role < bundle.programs.size(); ++role) {
    const Program &program = bundle.programs[role];
    std::set<std::tuple<std::string, int64_t, int64_t>> given;
    for (const Run &run : program.entries[program.findEntry(entry)].runs)
      for (uint32_t n = 0; n < program.blocks[run.block].instructions.size(); ++n) {
        const Instruction &it = program.blocks[run.block].instructions[n];
        if (it.op != Op::Fetch)
          continue;
        roles[it.name].insert(role);
        if (!given.insert({it.name, run.microbatch, run.version}).second)
          return Counterexample{Property::WellFormed,
                                "output '" + it.name + "' is fetched twice for microbatch " +
                                    std::to_string(run.microbatch) + " in entry " + entry,
                                {describeStep(bundle, rankOf(bundle.manifest, role), run, n)}};
      }
  }
  for (const auto &[name, some] : roles)
    for (uint32_t rank : bundle.manifest.findOutput(name)->ranks)
      if (!some.count(bundle.manifest.ranks[rank].role))
        return Counterexample{Property::WellFormed,
                              "rank " + std::to_string(rank) + " does not give output '" + name + "' in entry " +
                                  entry + ", others do",
                              {}};
  return std::nullopt;
}

std::optional<Counterexample> par::verify::checkFetched(const Bundle &bundle) {
  for (const Entry &entry : bundle.programs[0].entries)
    if (auto found = checkEntry(bundle, entry.name))
      return found;
  return std::nullopt;
}
