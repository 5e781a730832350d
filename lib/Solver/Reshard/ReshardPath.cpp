// The problem's text, and the moves and their costs. The search is in ReshardSearch.cpp.
#include "par/Solver/Reshard/ReshardPath.h"
#include "par/Base/RankGrid.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace par;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

int64_t ReshardState::elements() const {
  int64_t product = 1;
  for (int64_t size : shard)
    product *= size;
  return product;
}

StringRef par::toString(ReshardKind kind) {
  static constexpr StringRef names[] = {"slice", "all_reduce", "reduce_scatter", "all_to_all", "all_gather"};
  return names[unsigned(kind)];
}

AxisList par::appendedAxes(const AxisList &before, const AxisList &after) {
  if (after.size() <= before.size() || !std::equal(before.begin(), before.end(), after.begin()))
    return {};
  return AxisList(after.begin() + before.size(), after.end());
}

//===-- Text ---------------------------------------------------------------------------------===//

/// The axes named up to the end of the statement, or to the word `stop`, which is read too.
static AxisList parseAxes(ProblemText &text, const llvm::StringMap<unsigned> &index, StringRef stop = "") {
  AxisList list;
  while (!text.atEnd() && (stop.empty() || !text.accept(stop))) {
    StringRef name = text.word();
    auto found = index.find(name);
    if (found == index.end())
      text.fail("no axis '" + name + "' is defined above");
    else
      list.push_back(found->second);
  }
  return list;
}

/// `SIZE from A... to B...`, each of the two lists only if it is there.
static ReshardDim parseDim(ProblemText &text, const llvm::StringMap<unsigned> &index) {
  ReshardDim dim;
  dim.size = text.integer();
  bool from = text.accept("from");
  if (from)
    dim.from = parseAxes(text, index, "to");
  if (from || text.accept("to"))
    dim.to = parseAxes(text, index);
  return dim;
}

llvm::Expected<ReshardProblem> ReshardProblem::parse(ProblemText &text) {
  ReshardProblem problem;
  std::string hardware = "cpu";
  llvm::StringMap<unsigned> index;
  while (text.next()) {
    StringRef key = text.word();
    if (key == "hardware") {
      hardware = text.word().str();
    } else if (key == "element") {
      problem.element = text.integer();
    } else if (key == "axis") {
      std::string name = text.word().str();
      problem.axes.push_back({name, text.integer()});
      if (!index.try_emplace(name, problem.axes.size() - 1).second)
        text.fail("a second axis '" + Twine(name) + "'");
    } else if (key == "dim") {
      problem.dims.push_back(parseDim(text, index));
    } else if (key == "sum") {
      problem.sums = parseAxes(text, index);
    } else if (key == "ranks") {
      while (!text.atEnd())
        problem.ranks.push_back(text.integer());
    } else {
      text.fail("unknown statement '" + key + "'");
    }
  }
  if (Error error = text.takeError())
    return error;
  llvm::Expected<CostTable> found = CostTable::find(hardware);
  if (!found)
    return found.takeError();
  problem.costs = *found;
  return problem;
}

/// The names of axes, a blank before each.
static std::string axisNames(const ReshardProblem &problem, const AxisList &list) {
  std::string names;
  for (unsigned axis : list)
    names += ' ' + problem.axes[axis].name;
  return names;
}

std::string ReshardProblem::toText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "problem reshard\nhardware " << costs.hardware().name << "\nelement " << element << '\n';
  for (const ReshardAxis &axis : axes)
    os << "axis " << axis.name << ' ' << axis.size << '\n';
  for (const ReshardDim &dim : dims) {
    os << "dim " << dim.size << (dim.from.empty() ? "" : " from") << axisNames(*this, dim.from)
       << (dim.to.empty() ? "" : " to") << axisNames(*this, dim.to) << '\n';
  }
  if (!sums.empty())
    os << "sum" << axisNames(*this, sums) << '\n';
  if (!ranks.empty()) {
    os << "ranks";
    for (int64_t rank : ranks)
      os << ' ' << rank;
    os << '\n';
  }
  return text;
}

std::string ReshardPath::toText(const ReshardProblem &problem) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const ReshardMove &move : moves) {
    os << toString(move.kind) << " over";
    os << axisNames(problem, move.axes);
    os << ":";
    for (auto [axes, shard] : llvm::zip(move.after.axes, move.after.shard)) {
      os << " [" << shard;
      os << axisNames(problem, axes);
      os << ']';
    }
    os << '\n';
  }
  os << cost.moves << " moves, " << cost.bytes << " bytes sent, " << cost.time << " ns\n";
  return text;
}

//===-- Problem ------------------------------------------------------------------------------===//

Error ReshardProblem::check() const {
  std::vector<unsigned> before(axes.size()), after(axes.size());
  auto count = [&](const AxisList &list, std::vector<unsigned> &seen) -> Error {
    for (unsigned axis : list) {
      if (axis >= axes.size())
        return solverError("axis " + Twine(axis) + " is out of range, there are " + Twine(axes.size()));
      if (++seen[axis] > 1)
        return solverError("axis '" + axes[axis].name + "' occurs twice on one side");
    }
    return Error::success();
  };
  for (const ReshardAxis &axis : axes)
    if (axis.size < 1)
      return solverError("axis '" + axis.name + "' has size " + Twine(axis.size) + ", expected at least 1");
  int64_t size = 1;
  for (const ReshardAxis &axis : axes)
    size *= axis.size;
  if (!ranks.empty() && int64_t(ranks.size()) != size)
    return solverError("there are " + Twine(ranks.size()) + " ranks, and the axes make " + Twine(size));
  if (element < 1)
    return solverError("an element has " + Twine(element) + " bytes, expected at least 1");
  if (Error error = count(sums, before))
    return error;
  for (auto [number, dim] : llvm::enumerate(dims)) {
    if (dim.size < 1)
      return solverError("dim " + Twine(number) + " has size " + Twine(dim.size) + ", expected at least 1");
    if (Error error = count(dim.from, before))
      return error;
    if (Error error = count(dim.to, after))
      return error;
  }
  return Error::success();
}

int64_t ReshardProblem::sizeOf(const AxisList &list) const {
  int64_t product = 1;
  for (unsigned axis : list)
    product *= axes[axis].size;
  return product;
}

RankGroup ReshardProblem::groupOf(const AxisList &list) const {
  if (ranks.empty())
    return sizeOf(list);
  auto [known, fresh] = groups.try_emplace(list);
  if (!fresh)
    return known->second;
  llvm::SmallVector<int64_t> sizes;
  for (const auto &axis : axes)
    sizes.push_back(axis.size);
  if (std::optional<RankGrid> grid = RankGrid::find(sizes, ranks))
    if (std::optional<RankGroup> group = grid->groupOf(list, costs.hardware()))
      return known->second = *group;
  // The ranks of a group have equal coordinates on the other axes.
  std::map<int64_t, llvm::SmallVector<int64_t>> members;
  for (auto [index, rank] : llvm::enumerate(ranks)) {
    int64_t others = 0, rest = index, place = 1;
    for (unsigned axis = axes.size(); axis-- > 0; rest /= axes[axis].size) {
      if (llvm::is_contained(list, axis))
        continue;
      others += rest % axes[axis].size * place;
      place *= axes[axis].size;
    }
    members[others].push_back(rank);
  }
  for (const auto &[others, list] : members)
    if (RankGroup group = costs.hardware().groupOf(list); group.hosts >= known->second.hosts)
      known->second = group;
  return known->second;
}

/// The state of the value if each dim is sharded by that list of its axes.
static ReshardState stateOf(const ReshardProblem &problem, AxisList ReshardDim::*list) {
  ReshardState state;
  for (const ReshardDim &dim : problem.dims) {
    state.axes.push_back(dim.*list);
    state.shard.push_back(llvm::divideCeil(dim.size, problem.sizeOf(dim.*list)));
  }
  return state;
}

ReshardState ReshardProblem::source() const {
  ReshardState state = stateOf(*this, &ReshardDim::from);
  state.sums = sums;
  llvm::sort(state.sums);
  return state;
}

ReshardState ReshardProblem::target() const { return stateOf(*this, &ReshardDim::to); }

std::vector<int64_t> ReshardProblem::firstShards(unsigned dim, const AxisList &list) const {
  const AxisList &to = dims[dim].to;
  std::vector<int64_t> shards{int64_t(llvm::divideCeil(dims[dim].size, sizeOf(list)))};
  bool begins = to.size() > list.size() && std::equal(list.begin(), list.end(), to.begin());
  // Long enough to be split into the target's shards.
  int64_t aligned = begins ? int64_t(llvm::divideCeil(dims[dim].size, sizeOf(to))) * (sizeOf(to) / sizeOf(list)) : 0;
  if (aligned > shards.front())
    shards.push_back(aligned);
  return shards;
}

//===-- Moves --------------------------------------------------------------------------------===//

/// The dim's blocks after axes were appended are parts of those before.
static bool cutsEvenly(const ReshardProblem &problem, unsigned dim, const ReshardState &before,
                       const ReshardState &after) {
  if (before.axes[dim].empty())
    return llvm::is_contained(problem.firstShards(dim, after.axes[dim]), after.shard[dim]);
  AxisList more = appendedAxes(before.axes[dim], after.axes[dim]);
  return after.shard[dim] * problem.sizeOf(more) == before.shard[dim];
}

/// The dim's blocks after axes were taken off are those before, joined; a dim that is whole has no padding.
static bool joins(const ReshardProblem &problem, unsigned dim, const ReshardState &before, const ReshardState &after) {
  if (after.axes[dim].empty())
    return after.shard[dim] == problem.dims[dim].size;
  AxisList gone = appendedAxes(after.axes[dim], before.axes[dim]);
  return after.shard[dim] == before.shard[dim] * problem.sizeOf(gone);
}

Error ReshardProblem::checkMove(ReshardKind kind, const ReshardState &before, const ReshardState &after) const {
  llvm::SmallSet<unsigned, 8> used, appended, gone, summed;
  for (auto [dim, list] : llvm::enumerate(before.axes)) {
    used.insert_range(list);
    AxisList more = appendedAxes(list, after.axes[dim]), less = appendedAxes(after.axes[dim], list);
    if (more.empty() && less.empty() && (list != after.axes[dim] || before.shard[dim] != after.shard[dim]))
      return solverError("dim " + Twine(dim) + " changes, but by no axis at its end");
    if (!more.empty() && !cutsEvenly(*this, dim, before, after))
      return solverError("dim " + Twine(dim) + " cannot be cut into shards of " + Twine(after.shard[dim]));
    if (!less.empty() && !joins(*this, dim, before, after))
      return solverError("dim " + Twine(dim) + " cannot be joined to shards of " + Twine(after.shard[dim]));
    appended.insert_range(more);
    gone.insert_range(less);
  }
  for (unsigned axis : before.sums)
    if (!llvm::is_contained(after.sums, axis))
      summed.insert(axis);
  if (after.sums.size() + summed.size() != before.sums.size())
    return solverError("a sum came to be");
  auto equal = [](auto &one, auto &other) {
    return one.size() == other.size() && llvm::all_of(one, [&](unsigned axis) { return other.contains(axis); });
  };
  bool legal = false;
  switch (kind) {
  case ReshardKind::Slice:
    legal = !appended.empty() && gone.empty() && summed.empty() && llvm::all_of(appended, [&](unsigned axis) {
      return !used.contains(axis) && !llvm::is_contained(before.sums, axis);
    });
    break;
  case ReshardKind::AllReduce:
    legal = !summed.empty() && appended.empty() && gone.empty();
    break;
  case ReshardKind::ReduceScatter:
    legal = !summed.empty() && equal(appended, summed) && gone.empty();
    break;
  case ReshardKind::AllToAll:
    legal = !gone.empty() && equal(appended, gone) && summed.empty();
    break;
  case ReshardKind::AllGather:
    legal = !gone.empty() && appended.empty() && summed.empty();
    break;
  }
  return legal ? Error::success() : solverError("no " + toString(kind) + " does this");
}

namespace {

/// The axes of a move that one side of it deals with, and the copy that it needs there.
struct MoveSide {
  unsigned dims = 0;    ///< number of dims that are split or joined
  bool copies = false;  ///< blocks are not contiguous in the order of the group
  int64_t elements = 1; ///< of a rank, with the padding that the collective sees
  AxisList axes;
};

} // namespace

/// The difference of two states, of which `fewer` has fewer axes on some dims than `more`. Blocks are in the group's
/// order if only one dim changes, no dim before it has elements, and its axes ascend.
static MoveSide sideOf(const ReshardProblem &problem, const ReshardState &fewer, const ReshardState &more) {
  MoveSide side;
  int64_t outside = 1; // elements of the dims before
  for (unsigned dim = 0; dim < fewer.axes.size(); ++dim) {
    AxisList axes = appendedAxes(fewer.axes[dim], more.axes[dim]);
    int64_t joined = axes.empty() ? fewer.shard[dim] : more.shard[dim] * problem.sizeOf(axes);
    side.copies |= !axes.empty() && (outside > 1 || joined != fewer.shard[dim] || !llvm::is_sorted(axes));
    side.dims += !axes.empty();
    side.axes.insert(side.axes.end(), axes.begin(), axes.end());
    side.elements *= joined;
    outside *= axes.empty() ? fewer.shard[dim] : more.shard[dim];
  }
  side.copies |= side.dims > 1;
  return side;
}

ReshardCost ReshardProblem::costOf(ReshardKind kind, const ReshardState &before, const ReshardState &after) const {
  MoveSide cut = sideOf(*this, before, after), join = sideOf(*this, after, before);
  int64_t given = before.elements(), got = after.elements();
  int64_t time = kind == ReshardKind::Slice ? 0 : costs.launch();
  if (kind != ReshardKind::Slice && cut.copies)
    time += costs.copy(element * (given + cut.elements)).ns;
  if (join.copies)
    time += costs.copy(element * (join.elements + got)).ns;
  switch (kind) {
  case ReshardKind::Slice: // padding is made at the read
    return {time + costs.copy(element * 2 * got).ns, 0, 1};
  case ReshardKind::AllReduce: {
    AxisList summed;
    std::set_difference(before.sums.begin(), before.sums.end(), after.sums.begin(), after.sums.end(),
                        std::back_inserter(summed));
    int64_t members = sizeOf(summed);
    return {time + costs.collective(format::CollKind::AllReduce, element * given, groupOf(summed)).ns,
            2 * element * given * (members - 1) / members, 1};
  }
  case ReshardKind::ReduceScatter: {
    int64_t members = sizeOf(cut.axes);
    return {time + costs.collective(format::CollKind::ReduceScatter, element * got, groupOf(cut.axes)).ns,
            element * got * (members - 1), 1};
  }
  case ReshardKind::AllToAll: {
    int64_t members = sizeOf(cut.axes), part = cut.elements / members;
    return {time + costs.collective(format::CollKind::AllToAll, element * part, groupOf(cut.axes)).ns,
            element * part * (members - 1), 1};
  }
  case ReshardKind::AllGather: {
    int64_t members = sizeOf(join.axes);
    return {time + costs.collective(format::CollKind::AllGather, element * given, groupOf(join.axes)).ns,
            element * given * (members - 1), 1};
  }
  }
  llvm_unreachable("all kinds are handled");
}

Error ReshardProblem::verify(const ReshardPath &path) const {
  ReshardState now = source();
  ReshardCost cost;
  for (auto [number, move] : llvm::enumerate(path.moves)) {
    if (Error error = checkMove(move.kind, now, move.after))
      return solverError("move " + Twine(number) + ": " + llvm::toString(std::move(error)));
    cost = cost + costOf(move.kind, now, move.after);
    now = move.after;
  }
  if (now != target())
    return solverError("the last move does not end at the target");
  if (cost < path.cost || path.cost < cost)
    return solverError("the path costs " + Twine(cost.time) + " ns, not " + Twine(path.cost.time));
  return Error::success();
}
