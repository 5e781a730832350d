// The proof from beginning to end.
#include "Model.h"

#include <set>

using namespace par;
using namespace par::format;
using namespace par::verify;

std::string_view par::verify::toString(Property property) {
  static constexpr std::string_view names[] = {"V1", "V2", "V3", "V4", "V5", "V6"};
  return names[size_t(property)];
}

/// Since this minor version of the format each communication names all that it takes, and kernels of several results
/// say of which operands each is made.
static constexpr int64_t comparedMinor = 12;

/// V2 and V3 of one entry, among roles, and among ranks where that fails.
static std::optional<Counterexample> communicate(const Bundle &bundle, const std::string &entry, Proof &proof) {
  std::vector<Trace> traces = tracesOf(bundle, entry);
  for (const Rank &rank : bundle.manifest.ranks) {
    proof.communications += traces[rank.role].ops.size();
    proof.groups += traces[rank.role].groups;
  }
  std::optional<Counterexample> found;
  for (const Actors &actors : {roleActors(bundle), rankActors(bundle)}) {
    uint64_t longest = 0;
    Nodes nodes(actors, traces);
    found = matchEntry(bundle, entry, actors, traces, nodes);
    if (!found)
      found = checkProgress(bundle, entry, actors, traces, nodes, longest);
    if (!found) {
      proof.longestChain = std::max(proof.longestChain, longest);
      break;
    }
  }
  return found;
}

namespace {
/// On which places in its communicators the accesses of a role depend.
struct Places {
  std::set<std::string> parted;                      ///< collectives share out parts of an operand by member
  std::set<std::pair<std::string, uint32_t>> rooted; ///< one member is the root

  explicit Places(const Program &program) {
    for (const Block &block : program.blocks)
      for (const Instruction &it : block.instructions) {
        if (it.op != Op::Coll)
          continue;
        const std::string &comm = program.comms[it.comm].name;
        if (it.coll == CollKind::Broadcast || it.coll == CollKind::Reduce)
          rooted.insert({comm, it.root});
        else if (it.operands.size() == 1 && (it.coll == CollKind::AllGather || it.coll == CollKind::ReduceScatter))
          parted.insert(comm);
      }
  }
};
} // namespace

/// Ranks whose sweeps may differ: those of different programs, and of different places where accesses depend on them.
static std::vector<uint32_t> ranksToSweep(const Bundle &bundle) {
  std::vector<Places> places(bundle.programs.begin(), bundle.programs.end());
  auto member = [&](const std::string &comm, uint32_t rank) {
    return membershipOf(*bundle.manifest.findCommunicator(comm), rank).value_or(Membership()).member;
  };
  std::vector<uint32_t> ranks;
  std::set<std::vector<uint32_t>> seen;
  for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank) {
    std::vector<uint32_t> key{bundle.manifest.ranks[rank].role};
    for (const std::string &comm : places[key[0]].parted)
      key.push_back(member(comm, rank));
    for (const auto &[comm, root] : places[key[0]].rooted)
      key.push_back(member(comm, rank) == root);
    if (seen.insert(key).second)
      ranks.push_back(rank);
  }
  return ranks;
}

static std::optional<Counterexample> prove(const Bundle &bundle, const Options &options, Proof &proof) {
  if (auto found = checkBundle(bundle))
    return found;
  if (auto found = options.folder.empty() ? std::nullopt : checkKernelFiles(bundle, options.folder))
    return found;
  proof.programs = bundle.programs.size();
  proof.ranks = bundle.manifest.ranks.size();
  for (const Program &program : bundle.programs)
    proof.arenas.push_back(program.arena.deviceBytes());
  if (options.rank && *options.rank >= proof.ranks)
    return Counterexample{Property::WellFormed, "no rank " + std::to_string(*options.rank), {}};
  for (const Entry &entry : bundle.programs[0].entries)
    if (auto found = communicate(bundle, entry.name, proof))
      return found;
  std::vector<uint32_t> ranks = options.rank ? std::vector<uint32_t>{*options.rank} : ranksToSweep(bundle);
  std::vector<Lineage> lineages(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i)
    if (auto found = checkMemory(bundle, ranks[i], lineages[i]))
      return found;
  if (auto found = checkReplicas(bundle, ranks, lineages))
    return found;
  for (auto check : {checkPeak, checkFetched, checkOwnState, checkCoordinates})
    if (auto found = check(bundle))
      return found;
  proof.together = bundle.manifest.minor >= comparedMinor;
  if (!proof.together)
    return std::nullopt;
  for (auto check : {checkStateNames, checkWhole, checkJointly})
    if (auto found = check(bundle))
      return found;
  return std::nullopt;
}

Verdict par::verify::verifyBundle(const Bundle &bundle, const Options &options) {
  Verdict verdict;
  verdict.counterexample = prove(bundle, options, verdict.proof);
  return verdict;
}

Verdict par::verify::verifyBundle(const std::string &folder, const Options &options) {
  Expected<Bundle> bundle = readBundle(folder);
  Verdict verdict;
  if (bundle) {
    Options files = options;
    files.folder = folder;
    verdict = verifyBundle(*bundle, files);
    verdict.proof.hashed = true;
    return verdict;
  }
  verdict.read = false;
  verdict.counterexample = Counterexample{Property::WellFormed, bundle.message(), {}};
  return verdict;
}
