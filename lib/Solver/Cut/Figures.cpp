// The stage_cut problem without text and search: checks, the figures of a cut, verification, and an exhaustive solver
// for tests.
#include "Figures.h"
#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace par;
using llvm::Error;
using llvm::Twine;

CutWork &CutWork::operator+=(const CutWork &other) {
  forward += other.forward, backward += other.backward, gradient += other.gradient, update += other.update;
  return *this;
}

CutWork &CutWork::operator-=(const CutWork &other) {
  forward -= other.forward, backward -= other.backward, gradient -= other.gradient, update -= other.update;
  return *this;
}

CutWork StageCutProblem::shareOf(unsigned stage, const CutWork &all) const {
  return {shareOf(stage, all.forward), shareOf(stage, all.backward), shareOf(stage, all.gradient),
          shareOf(stage, all.update)};
}

unsigned StageCutProblem::inFlightOf(unsigned stage) const {
  return inFlight.empty() ? std::min(microbatches, stages - stage) : inFlight[stage];
}

int64_t StageCutProblem::linkTime(const CutValue &value, unsigned stage) const {
  const CutLink &used = into.empty() ? link : into[stage];
  int64_t wire = used.bandwidth == 0 ? 0 : (value.bytes * 1000 + used.bandwidth - 1) / used.bandwidth;
  return 2 * (used.latency + wire);
}

/// A cycle of values, or an index that no node has.
static Error checkValues(const StageCutProblem &problem) {
  size_t n = problem.nodes.size();
  std::vector<unsigned> waiting(n, 0);
  std::vector<std::vector<unsigned>> users(n);
  for (const CutValue &value : problem.values) {
    for (unsigned user : value.users)
      if (user >= n || (value.producer && *value.producer >= n))
        return solverError("value '" + value.name + "' names a node beyond the " + Twine(n) + " nodes");
    if (value.producer)
      for (unsigned user : value.users) {
        users[*value.producer].push_back(user);
        ++waiting[user];
      }
  }
  std::vector<unsigned> ready;
  for (unsigned node = 0; node < n; ++node)
    if (waiting[node] == 0)
      ready.push_back(node);
  for (size_t i = 0; i < ready.size(); ++i)
    for (unsigned user : users[ready[i]])
      if (--waiting[user] == 0)
        ready.push_back(user);
  for (unsigned node = 0; node < n; ++node)
    if (waiting[node] > 0)
      return solverError("node '" + problem.nodes[node].name + "' depends on itself");
  return Error::success();
}

/// Whether the gradient is part of the backward, and a node takes at least what its bonds to second nodes save.
static Error checkWork(const StageCutProblem &problem) {
  std::vector<CutWork> least;
  for (const CutNode &node : problem.nodes)
    least.push_back(node.work);
  for (const CutBond &bond : problem.bonds) {
    if (bond.first >= least.size() || bond.second >= least.size() || bond.first == bond.second)
      return solverError("a bond joins nodes " + Twine(bond.first) + " and " + Twine(bond.second) + " of " +
                         Twine(least.size()));
    least[bond.first] -= bond.less; // so no set of nodes has a negative sum
  }
  for (auto [node, work] : llvm::zip(problem.nodes, least)) {
    if (node.work.gradient > node.work.backward)
      return solverError("node '" + node.name + "' has " + Twine(node.work.gradient) +
                         " ns of weight gradients in a backward of " + Twine(node.work.backward));
    if (std::min({work.forward, work.backward - work.gradient, work.gradient, work.update}) < 0)
      return solverError("the bonds of node '" + node.name + "' save more than it takes");
  }
  return Error::success();
}

Error StageCutProblem::check() const {
  if (stages == 0 || stages > nodes.size())
    return solverError("cannot cut " + Twine(nodes.size()) + " nodes into " + Twine(stages) + " stages");
  if (microbatches == 0)
    return solverError("the number of microbatches is 0");
  if (llvm::any_of(width, [](int64_t ranks) { return ranks < 1; }))
    return solverError("a stage has no ranks to share its work");
  for (auto [name, list] : {std::pair("in_flight", &inFlight), std::pair("limit", &limit), std::pair("width", &width)})
    if (!list->empty() && list->size() != stages)
      return solverError(Twine(name) + " has " + Twine(list->size()) + " numbers for " + Twine(stages) + " stages");
  // Every figure stays below 2^62, so that no sum of the search overflows.
  unsigned __int128 time = 0, bytes = 0;
  for (const CutNode &node : nodes) {
    time += node.work.microbatch() + node.work.update;
    bytes += node.weights + node.saved;
  }
  if (!into.empty() && into.size() != stages)
    return solverError("there are links into " + Twine(into.size()) + " of " + Twine(stages) + " stages");
  for (const CutValue &value : values) {
    for (unsigned stage = 0; stage < stages; ++stage)
      time += linkTime(value, stage);
    bytes += value.bytes + value.held;
  }
  if (time * microbatches >> 61 || bytes * microbatches >> 61)
    return solverError("the costs are too large to add");
  if (Error error = checkWork(*this))
    return error;
  if (Error error = StepPlay::make(*this).takeError())
    return error;
  return checkValues(*this);
}

std::vector<StageTimes> par::timesOf(const StageCutProblem &problem, llvm::ArrayRef<unsigned> stageOf) {
  std::vector<StageTimes> times(problem.stages);
  for (auto [node, stage] : llvm::zip(problem.nodes, stageOf))
    times[stage].work += node.work;
  for (const CutBond &bond : problem.bonds)
    if (stageOf[bond.first] == stageOf[bond.second])
      times[stageOf[bond.first]].work -= bond.less;
  for (auto [stage, own] : llvm::enumerate(times))
    own.work = problem.shareOf(stage, own.work);
  return times;
}

/// No cut is shorter: the busiest device does at least the mean, and a microbatch passes all nodes.
static int64_t boundOf(const StageCutProblem &problem) {
  CutWork all;
  int64_t slowest = 0, ranks = problem.numDevices(), widest = 1;
  for (const CutNode &node : problem.nodes)
    all += node.work;
  std::vector<int64_t> least;
  for (const CutNode &node : problem.nodes)
    least.push_back(node.work.microbatch());
  for (const CutBond &bond : problem.bonds) {
    all -= bond.less;
    least[bond.first] -= bond.less.microbatch();
  }
  slowest = *llvm::max_element(least);
  if (!problem.width.empty()) {
    ranks = std::accumulate(problem.width.begin(), problem.width.end(), int64_t(0));
    widest = *llvm::max_element(problem.width);
  }
  int64_t work = all.microbatch();
  return std::max(problem.microbatches * std::max((work + ranks - 1) / ranks, (slowest + widest - 1) / widest),
                  (work + widest - 1) / widest);
}

StageCut par::evaluateCut(const StageCutProblem &problem, const StepPlay &play, std::vector<unsigned> stageOf) {
  unsigned stages = problem.stages;
  StageCut cut;
  cut.memory.assign(stages, 0);
  std::vector<int64_t> saved(stages);
  for (auto [node, stage] : llvm::zip(problem.nodes, stageOf)) {
    cut.memory[stage] += node.weights;
    saved[stage] += node.saved;
  }
  std::vector<StageTimes> times = timesOf(problem, stageOf);
  for (unsigned stage = 0; stage < stages; ++stage) {
    cut.stageTime.push_back(times[stage].work.microbatch());
    cut.memory[stage] += problem.inFlightOf(stage) * problem.shareOf(stage, saved[stage]);
  }
  std::vector<bool> on;
  for (const CutValue &value : problem.values) {
    if (value.users.empty())
      continue;
    on.assign(stages, false);
    for (unsigned user : value.users)
      on[stageOf[user]] = true;
    // The stage that has the value from the start: its producer's, or the first stage that uses the weight.
    unsigned home = value.producer ? stageOf[*value.producer] : llvm::find(on, true) - on.begin();
    for (unsigned stage = 0; stage < stages; ++stage) {
      if (on[stage] && stage != home)
        times[stage].link += problem.linkTime(value, stage) / 2;
      if (!value.producer)
        cut.memory[stage] += on[stage] ? value.held : 0;
      else if (on[stage] && stage != home)
        cut.memory[stage] += problem.inFlightOf(stage) * value.bytes;
    }
  }
  for (const StageTimes &own : times)
    cut.transfers += 2 * own.link;
  cut.step = play.run(times);
  cut.lowerBound = boundOf(problem);
  cut.stageOf = std::move(stageOf);
  return cut;
}

StageCut StageCutProblem::evaluate(std::vector<unsigned> stageOf) const {
  return evaluateCut(*this, llvm::cantFail(StepPlay::make(*this)), std::move(stageOf));
}

bool StageCutProblem::isLegal(const StageCut &cut) const {
  for (const CutValue &value : values)
    for (unsigned user : value.users)
      if (value.producer && cut.stageOf[user] < cut.stageOf[*value.producer])
        return false;
  for (unsigned stage = 0; stage < stages; ++stage)
    if (!llvm::is_contained(cut.stageOf, stage) || (!limit.empty() && cut.memory[stage] > limit[stage]))
      return false;
  return true;
}

Error StageCutProblem::verify(const StageCut &cut) const {
  if (cut.stageOf.size() != nodes.size())
    return solverError("the cut has " + Twine(cut.stageOf.size()) + " nodes, expected " + Twine(nodes.size()));
  for (auto [node, stage] : llvm::enumerate(cut.stageOf))
    if (stage >= stages)
      return solverError("node '" + nodes[node].name + "' is on stage " + Twine(stage) + " of " + Twine(stages));
  StageCut again = evaluate(cut.stageOf);
  if (!isLegal(again))
    return solverError("the cut sends a value backwards, leaves a stage empty or breaks a limit");
  if (again.step != cut.step || again.memory != cut.memory || again.stageTime != cut.stageTime)
    return solverError("the cut takes " + Twine(again.step) + " ns, not " + Twine(cut.step));
  return Error::success();
}

std::optional<StageCut> StageCutProblem::solveExhaustively() const {
  std::vector<std::vector<unsigned>> before(nodes.size()), after(nodes.size());
  for (const CutValue &value : values)
    for (unsigned user : value.users)
      if (value.producer) {
        before[user].push_back(*value.producer);
        after[*value.producer].push_back(user);
      }
  std::optional<StageCut> best;
  StepPlay play = llvm::cantFail(StepPlay::make(*this));
  std::vector<unsigned> stageOf(nodes.size(), 0);
  auto assign = [&](auto &self, unsigned node) -> void {
    if (node == nodes.size()) {
      StageCut cut = evaluateCut(*this, play, stageOf);
      if (isLegal(cut) && (!best || cut.step < best->step))
        best = std::move(cut);
      return;
    }
    for (unsigned stage = 0; stage < stages; ++stage) {
      auto early = [&](unsigned other) { return other < node && stageOf[other] > stage; };
      auto late = [&](unsigned other) { return other < node && stageOf[other] < stage; };
      if (llvm::any_of(before[node], early) || llvm::any_of(after[node], late))
        continue;
      stageOf[node] = stage;
      self(self, node + 1);
    }
  };
  assign(assign, 0);
  return best;
}
