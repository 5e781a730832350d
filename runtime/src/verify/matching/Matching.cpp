// V2: all sides of a communication say the same.
#include "verify/Model.h"

#include <map>
#include <set>

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
/// Operations of one actor on one channel, as places in its trace.
using Sequence = std::vector<uint32_t>;

/// The operations of one actor on one communicator.
struct Channels {
  Sequence collectives;
  std::map<uint32_t, Sequence> sends, receives; ///< by peer
};

class Matcher {
public:
  Matcher(const Bundle &bundle, const std::string &entry, const Actors &actors, const std::vector<Trace> &traces,
          Nodes &nodes)
      : bundle(bundle), entry(entry), actors(actors), traces(traces), nodes(nodes) {}
  std::optional<Counterexample> run();

private:
  std::optional<Counterexample> group(uint32_t comm, const std::vector<uint32_t> &members);
  std::optional<Counterexample> pair(uint32_t comm, uint32_t a, const Sequence &as, uint32_t b, const Sequence &bs);
  const CommOp &op(uint32_t actor, uint32_t place) const { return traces[actors.role[actor]].ops[place]; }
  Counterexample differ(uint32_t comm, const std::string &what, uint32_t a, const CommOp *x, uint32_t b,
                        const CommOp *y) const;

  const Bundle &bundle;
  const std::string &entry;
  const Actors &actors;
  const std::vector<Trace> &traces;
  Nodes &nodes;
  std::vector<std::vector<Channels>> channels; ///< [role][communicator]
};
} // namespace

/// The first thing in which two sides differ, "" if none.
static std::string difference(const CommOp &x, const CommOp &y) {
  const Instruction &a = *x.it, &b = *y.it;
  auto words = [](std::string_view what, std::string_view p, std::string_view q) {
    return std::string(what) + ", " + std::string(p) + " and " + std::string(q);
  };
  auto numbers = [&](std::string_view what, uint64_t p, uint64_t q) {
    return words(what, std::to_string(p), std::to_string(q));
  };
  bool collective = a.op == Op::Coll;
  if (collective && a.coll != b.coll)
    return words("kind", toString(a.coll), toString(b.coll));
  if (collective && a.reduction != b.reduction)
    return words("reduction", toString(a.reduction), toString(b.reduction));
  if (a.type != b.type)
    return words("type", toString(a.type), toString(b.type));
  if (a.n != b.n)
    return numbers("count", a.n, b.n);
  if (collective && a.root != b.root)
    return numbers("root", a.root, b.root);
  if (a.tag != b.tag)
    return numbers("tag", a.tag, b.tag);
  if (x.run->microbatch != y.run->microbatch)
    return numbers("microbatch", uint64_t(x.run->microbatch), uint64_t(y.run->microbatch));
  if (collective && x.groupSize != y.groupSize)
    return numbers("size of group", x.groupSize, y.groupSize);
  if (collective && x.groupPlace != y.groupPlace)
    return numbers("place in group", x.groupPlace, y.groupPlace);
  return "";
}

Counterexample Matcher::differ(uint32_t comm, const std::string &what, uint32_t a, const CommOp *x, uint32_t b,
                               const CommOp *y) const {
  Counterexample found{Property::Matching,
                       "mismatch: ranks " + std::to_string(actors.rank[a]) + " and " + std::to_string(actors.rank[b]) +
                           " differ on communicator '" + bundle.manifest.communicators[comm].name + "' of entry " +
                           entry + ": " + what,
                       {}};
  if (x)
    found.notes.push_back(describeOp(bundle, actors.rank[a], *x));
  if (y)
    found.notes.push_back(describeOp(bundle, actors.rank[b], *y));
  return found;
}

/// The k-th operation of one side is the k-th of the other.
std::optional<Counterexample> Matcher::pair(uint32_t comm, uint32_t a, const Sequence &as, uint32_t b,
                                            const Sequence &bs) {
  size_t both = std::min(as.size(), bs.size());
  for (size_t k = 0; k < both; ++k) {
    const CommOp &x = op(a, as[k]), &y = op(b, bs[k]);
    if (std::string what = difference(x, y); !what.empty())
      return differ(comm, what, a, &x, b, &y);
    nodes.merge(nodes.node(a, as[k]), nodes.node(b, bs[k]));
  }
  if (as.size() == bs.size())
    return std::nullopt;
  return differ(comm, "one has " + std::to_string(as.size()) + " operations, the other " + std::to_string(bs.size()), a,
                as.size() > both ? &op(a, as[both]) : nullptr, b, bs.size() > both ? &op(b, bs[both]) : nullptr);
}

std::optional<Counterexample> Matcher::group(uint32_t comm, const std::vector<uint32_t> &members) {
  static const Sequence none;
  auto at = [&](uint32_t member) -> const Channels & { return channels[actors.role[members[member]]][comm]; };
  auto find = [](const std::map<uint32_t, Sequence> &map, uint32_t peer) -> const Sequence & {
    auto it = map.find(peer);
    return it == map.end() ? none : it->second;
  };
  for (uint32_t j = 1; j < members.size(); ++j)
    if (members[j] != members[0])
      if (auto found = pair(comm, members[0], at(0).collectives, members[j], at(j).collectives))
        return found;
  for (uint32_t i = 0; i < members.size(); ++i) {
    for (const auto &[j, sends] : at(i).sends)
      if (j >= members.size())
        break; // no receiver
      else if (auto found = pair(comm, members[i], sends, members[j], find(at(j).receives, i)))
        return found;
    for (const auto &[j, receives] : at(i).receives)
      if (find(at(j).sends, i).empty())
        return differ(comm, "nothing is sent for this receive", members[i], &op(members[i], receives[0]), members[j],
                      nullptr);
  }
  return std::nullopt;
}

std::optional<Counterexample> Matcher::run() {
  size_t comms = bundle.manifest.communicators.size();
  channels.assign(traces.size(), std::vector<Channels>(comms));
  for (size_t role = 0; role < traces.size(); ++role) {
    for (uint32_t place = 0; place < traces[role].ops.size(); ++place) {
      const CommOp &op = traces[role].ops[place];
      Channels &own = channels[role][op.comm];
      (op.it->op == Op::Coll   ? own.collectives
       : op.it->op == Op::Send ? own.sends[op.peer]
                               : own.receives[op.peer])
          .push_back(place);
    }
  }
  for (uint32_t comm = 0; comm < comms; ++comm) {
    // Groups whose members are the same actors are the same to us.
    std::set<std::vector<uint32_t>> seen;
    for (const std::vector<uint32_t> &ranks : bundle.manifest.communicators[comm].groups) {
      std::vector<uint32_t> members;
      for (uint32_t rank : ranks)
        members.push_back(actors.of[rank]);
      if (seen.insert(members).second)
        if (auto found = group(comm, members))
          return found;
    }
  }
  return std::nullopt;
}

std::optional<Counterexample> par::verify::matchEntry(const Bundle &bundle, const std::string &entry,
                                                      const Actors &actors, const std::vector<Trace> &traces,
                                                      Nodes &nodes) {
  return Matcher(bundle, entry, actors, traces, nodes).run();
}
