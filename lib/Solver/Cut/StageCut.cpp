// The stage_cut problem except its search: text form, checks, the cost of a cut, verification, and an exhaustive solver
// for tests. The search is in StageCutSearch.cpp.
#include "par/Solver/Cut/StageCut.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <numeric>

using namespace par;
using llvm::Error;
using llvm::Twine;

static CutNode parseNode(ProblemText &text) {
  CutNode node;
  node.name = text.word().str();
  bool hasBackward = false;
  while (!text.atEnd()) {
    llvm::StringRef key = text.word();
    hasBackward |= key == "backward";
    if (key == "forward")
      node.forward = text.integer();
    else if (key == "backward")
      node.backward = text.integer();
    else if (key == "weights")
      node.weights = text.integer();
    else if (key == "saved")
      node.saved = text.integer();
    else
      text.fail("unknown word '" + key + "' of a node");
  }
  if (!hasBackward)
    node.backward = 2 * node.forward;
  return node;
}

static CutValue parseValue(ProblemText &text, const llvm::StringMap<unsigned> &nodes) {
  CutValue value;
  value.name = text.word().str();
  auto node = [&]() -> unsigned {
    llvm::StringRef name = text.word();
    auto found = nodes.find(name);
    if (found != nodes.end())
      return found->second;
    text.fail("no node '" + name + "' is defined above");
    return 0;
  };
  while (!text.atEnd()) {
    llvm::StringRef key = text.word();
    if (key == "bytes")
      value.bytes = text.integer();
    else if (key == "held")
      value.held = text.integer();
    else if (key == "from")
      value.producer = node();
    else if (key == "to")
      while (!text.atEnd())
        value.users.push_back(node());
    else
      text.fail("unknown word '" + key + "' of a value");
  }
  return value;
}

llvm::Expected<StageCutProblem> StageCutProblem::parse(ProblemText &text) {
  StageCutProblem problem;
  llvm::StringMap<unsigned> index;
  while (text.next()) {
    llvm::StringRef key = text.word();
    if (key == "stages") {
      problem.stages = text.integer();
    } else if (key == "microbatches") {
      problem.microbatches = text.integer();
    } else if (key == "in_flight") {
      problem.inFlight = text.integers();
    } else if (key == "limit") {
      problem.limit = text.integers();
    } else if (key == "width") {
      problem.width = text.integers();
    } else if (key == "link") {
      std::optional<int64_t> into = text.accept("into") ? std::optional(text.integer()) : std::nullopt;
      if (into && (*into < 0 || *into >= int64_t(problem.stages))) {
        text.fail("a link into stage " + Twine(*into) + " of " + Twine(problem.stages));
        continue;
      }
      if (into && problem.into.empty())
        problem.into.assign(problem.stages, problem.link);
      CutLink &link = into ? problem.into[*into] : problem.link;
      link.latency = text.accept("latency") ? text.integer() : 0;
      link.bandwidth = text.accept("bandwidth") ? text.integer() : 0;
    } else if (key == "max_downsets") {
      problem.maxDownsets = text.integer();
    } else if (key == "node") {
      problem.nodes.push_back(parseNode(text));
      if (!index.try_emplace(problem.nodes.back().name, problem.nodes.size() - 1).second)
        text.fail("a second node '" + problem.nodes.back().name + "'");
    } else if (key == "value" || key == "weight") {
      problem.values.push_back(parseValue(text, index));
      if ((key == "value") != problem.values.back().producer.has_value())
        text.fail("a value comes from a node, a weight from none");
    } else {
      text.fail("unknown statement '" + key + "'");
    }
  }
  if (Error error = text.takeError())
    return error;
  return problem;
}

std::string StageCutProblem::toText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "problem stage_cut\nstages " << stages << "\nmicrobatches " << microbatches << '\n';
  os << statementOf("in_flight", inFlight) << statementOf("limit", limit) << statementOf("width", width);
  os << "link latency " << link.latency << " bandwidth " << link.bandwidth << '\n';
  for (auto [stage, own] : llvm::enumerate(into))
    os << "link into " << stage << " latency " << own.latency << " bandwidth " << own.bandwidth << '\n';
  os << "max_downsets " << maxDownsets << '\n';
  for (const CutNode &node : nodes)
    os << "node " << node.name << " forward " << node.forward << " backward " << node.backward << " weights "
       << node.weights << " saved " << node.saved << '\n';
  for (const CutValue &value : values) {
    os << (value.producer ? "value " : "weight ") << value.name << " bytes " << value.bytes << " held " << value.held;
    if (value.producer)
      os << " from " << nodes[*value.producer].name;
    os << " to";
    for (unsigned user : value.users)
      os << ' ' << nodes[user].name;
    os << '\n';
  }
  return text;
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
    time += node.forward + node.backward;
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
  return checkValues(*this);
}

StageCut StageCutProblem::evaluate(std::vector<unsigned> stageOf) const {
  StageCut cut;
  cut.stageTime.assign(stages, 0);
  cut.memory.assign(stages, 0);
  std::vector<int64_t> saved(stages);
  int64_t work = 0, slowest = 0, ranks = stages, widest = 1;
  for (auto [index, node] : llvm::enumerate(nodes)) {
    unsigned stage = stageOf[index];
    work += nodeTime(index);
    cut.stageTime[stage] += nodeTime(index);
    cut.memory[stage] += node.weights;
    saved[stage] += node.saved;
    slowest = std::max(slowest, nodeTime(index));
  }
  for (unsigned stage = 0; stage < stages; ++stage) {
    cut.stageTime[stage] = shareOf(stage, cut.stageTime[stage]);
    cut.memory[stage] += inFlightOf(stage) * shareOf(stage, saved[stage]);
  }
  if (!width.empty()) {
    ranks = std::accumulate(width.begin(), width.end(), int64_t(0));
    widest = *llvm::max_element(width);
  }
  std::vector<bool> on;
  for (const CutValue &value : values) {
    if (value.users.empty())
      continue;
    on.assign(stages, false);
    for (unsigned user : value.users)
      on[stageOf[user]] = true;
    // The stage that has the value from the start: its producer's, or the first stage that uses the weight.
    unsigned home = value.producer ? stageOf[*value.producer] : llvm::find(on, true) - on.begin();
    for (unsigned stage = 0; stage < stages; ++stage) {
      cut.transfers += on[stage] && stage != home ? linkTime(value, stage) : 0;
      if (!value.producer)
        cut.memory[stage] += on[stage] ? value.held : 0;
      else if (on[stage] && stage != home)
        cut.memory[stage] += inFlightOf(stage) * value.bytes;
    }
  }
  int64_t sum = std::accumulate(cut.stageTime.begin(), cut.stageTime.end(), int64_t(0));
  cut.step = (microbatches - 1) * *llvm::max_element(cut.stageTime) + sum + cut.transfers;
  cut.lowerBound = (microbatches - 1) * std::max((work + ranks - 1) / ranks, (slowest + widest - 1) / widest) +
                   (work + widest - 1) / widest;
  cut.stageOf = std::move(stageOf);
  return cut;
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
  std::vector<unsigned> stageOf(nodes.size(), 0);
  auto assign = [&](auto &self, unsigned node) -> void {
    if (node == nodes.size()) {
      StageCut cut = evaluate(stageOf);
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

std::string StageCut::toText(const StageCutProblem &problem) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (unsigned stage = 0; stage < stageTime.size(); ++stage) {
    os << "stage " << stage << " time " << stageTime[stage] << " memory " << memory[stage] << ':';
    for (auto [node, of] : llvm::enumerate(stageOf))
      if (of == stage)
        os << ' ' << problem.nodes[node].name;
    os << '\n';
  }
  os << "transfers " << transfers << " ns\nstep " << step << " ns, " << (exact ? "optimal" : "not proved optimal")
     << ", lower bound " << lowerBound << " ns\n";
  return text;
}
