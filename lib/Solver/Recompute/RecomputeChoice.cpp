// Chooses the values to keep under a budget of bytes: for a price per byte the best choice is a minimum cut, LARAC on
// the Lagrangian finds the price, single values fill the rest of the budget, and a branch and bound ends the search.
#include "par/Solver/Recompute/RecomputeChoice.h"
#include "ChoiceSearch.h"
#include "MinimumCut.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace par;
using llvm::Error;
using llvm::Twine;

static ForwardValue parseForwardValue(ProblemText &text, const llvm::StringMap<unsigned> &index) {
  ForwardValue value;
  value.name = text.word().str();
  while (!text.atEnd()) {
    llvm::StringRef key = text.word();
    if (key == "cost") {
      value.cost = text.integer();
    } else if (key == "bytes") {
      value.bytes = text.integer();
    } else if (key == "needed") {
      value.needed = true;
    } else if (key == "available") {
      value.isAvailable = true;
    } else if (key == "from") {
      while (!text.atEnd() && !text.accept("needed")) {
        llvm::StringRef name = text.word();
        auto found = index.find(name);
        if (found == index.end())
          text.fail("no value '" + name + "' is defined above");
        else
          value.inputs.push_back(found->second);
        value.needed = text.accept("needed");
      }
    } else {
      text.fail("unknown word '" + key + "' of a forward value");
    }
  }
  return value;
}

llvm::Expected<RecomputeProblem> RecomputeProblem::parse(ProblemText &text) {
  RecomputeProblem problem;
  llvm::StringMap<unsigned> index;
  while (text.next()) {
    llvm::StringRef key = text.word();
    if (key == "budget") {
      problem.budget = text.integer();
    } else if (key == "value") {
      problem.values.push_back(parseForwardValue(text, index));
      if (!index.try_emplace(problem.values.back().name, problem.values.size() - 1).second)
        text.fail("a second value '" + problem.values.back().name + "'");
    } else {
      text.fail("unknown statement '" + key + "'");
    }
  }
  if (Error error = text.takeError())
    return error;
  return problem;
}

std::string RecomputeProblem::toText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "problem recompute\nbudget " << budget << '\n';
  for (const ForwardValue &value : values) {
    os << "value " << value.name << " cost " << value.cost << " bytes " << value.bytes
       << (value.needed ? " needed" : "") << (value.isAvailable ? " available" : "");
    if (!value.inputs.empty())
      os << " from";
    for (unsigned input : value.inputs)
      os << ' ' << values[input].name;
    os << '\n';
  }
  return text;
}

Error RecomputeProblem::check() const {
  unsigned __int128 cost = 0, bytes = budget;
  for (auto [index, value] : llvm::enumerate(values)) {
    for (unsigned input : value.inputs)
      if (input >= index)
        return solverError("value '" + value.name + "' is computed from value " + Twine(input) +
                           ", which is not defined above it");
    cost += value.cost;
    bytes += value.bytes;
  }
  if (cost >> 50 || bytes >> 50)
    return solverError("the values are too large to add");
  return Error::success();
}

RecomputeChoice RecomputeProblem::evaluate(std::vector<bool> saved) const {
  RecomputeChoice choice;
  choice.saved.assign(values.size(), false);
  choice.recomputed.assign(values.size(), false);
  std::vector<bool> wanted(values.size(), false);
  // From users to inputs: the values are in topological order.
  for (unsigned index = values.size(); index-- > 0;) {
    const ForwardValue &value = values[index];
    if (value.isAvailable || !(wanted[index] || value.needed))
      continue;
    if (saved[index]) {
      choice.saved[index] = true;
      choice.bytes += value.bytes;
      continue;
    }
    if (value.inputs.empty()) {
      choice.cost = -1;
      return choice;
    }
    choice.recomputed[index] = true;
    choice.cost += value.cost;
    for (unsigned input : value.inputs)
      wanted[input] = true;
  }
  return choice;
}

Error RecomputeProblem::verify(const RecomputeChoice &choice) const {
  if (choice.saved.size() != values.size())
    return solverError("the choice speaks of " + Twine(choice.saved.size()) + " values, expected " +
                       Twine(values.size()));
  RecomputeChoice again = evaluate(choice.saved);
  if (again.cost < 0)
    return solverError("an argument that is needed is not saved");
  if (again.saved != choice.saved || again.recomputed != choice.recomputed || again.bytes != choice.bytes ||
      again.cost != choice.cost)
    return solverError("the choice saves " + Twine(again.bytes) + " bytes and costs " + Twine(again.cost) +
                       " ns, not " + Twine(choice.bytes) + " and " + Twine(choice.cost));
  if (choice.bytes > budget)
    return solverError("the choice saves " + Twine(choice.bytes) + " bytes of a budget of " + Twine(budget));
  return Error::success();
}

/// The choice with the least bytePrice * bytes + costPrice * cost, by a minimum cut. A value has two vertices: one
/// means that it is available (saved or recomputed), the other that it is recomputed.
static RecomputeChoice cheapest(const RecomputeProblem &problem, __int128 bytePrice, __int128 costPrice) {
  unsigned count = problem.values.size(), source = 2 * count, sink = source + 1;
  MinimumCut cut(2 * count + 2);
  for (auto [index, value] : llvm::enumerate(problem.values)) {
    if (value.isAvailable)
      continue;
    unsigned available = 2 * index, again = available + 1;
    if (value.needed)
      cut.addEdge(source, available, MinimumCut::infinite);
    cut.addEdge(available, sink, bytePrice * value.bytes);
    if (value.inputs.empty())
      continue;
    __int128 gain = bytePrice * value.bytes - costPrice * value.cost;
    if (gain > 0)
      cut.addEdge(source, again, gain);
    else
      cut.addEdge(again, sink, -gain);
    cut.addEdge(again, available, MinimumCut::infinite);
    for (unsigned input : value.inputs)
      if (!problem.values[input].isAvailable)
        cut.addEdge(again, 2 * input, MinimumCut::infinite);
  }
  cut.solve(source, sink);
  std::vector<bool> saved(count);
  for (unsigned index = 0; index < count; ++index)
    saved[index] = cut.onSourceSide(2 * index) && !cut.onSourceSide(2 * index + 1);
  return problem.evaluate(std::move(saved));
}

/// Saves single values more while the budget allows it, the largest saving of time first.
static RecomputeChoice fillBudget(const RecomputeProblem &problem, RecomputeChoice choice) {
  while (true) {
    RecomputeChoice best = choice;
    for (unsigned index = 0; index < problem.values.size(); ++index) {
      if (!choice.recomputed[index])
        continue;
      std::vector<bool> saved = choice.saved;
      saved[index] = true;
      RecomputeChoice more = problem.evaluate(std::move(saved));
      if (more.bytes <= problem.budget && more.cost < best.cost)
        best = std::move(more);
    }
    if (best.cost == choice.cost)
      return choice;
    choice = std::move(best);
  }
}

/// More than all bytes, or all ns, together.
static constexpr __int128 large = __int128(1) << 51;

int64_t RecomputeProblem::minBytes() const { return cheapest(*this, large, 1).bytes; }

llvm::Expected<RecomputeChoice> RecomputeProblem::solve() const {
  if (Error error = check())
    return error;
  RecomputeChoice fast = cheapest(*this, 1, large), small = cheapest(*this, large, 1);
  if (fast.bytes <= budget)
    return fast.minCost = fast.cost, fast;
  if (small.bytes > budget)
    return solverError("the backward needs at least " + Twine(small.bytes) +
                       " saved bytes per microbatch, the budget is " + Twine(budget));
  // The price at which both ends cost the same; a cheaper choice at that price replaces one of them (LARAC, Jüttner et
  // al. 2001, which finds the best price in a few rounds).
  while (true) {
    __int128 bytePrice = small.cost - fast.cost, costPrice = fast.bytes - small.bytes;
    auto total = [&](const RecomputeChoice &choice) { return bytePrice * choice.bytes + costPrice * choice.cost; };
    RecomputeChoice middle = cheapest(*this, bytePrice, costPrice);
    if (total(middle) >= total(small)) {
      __int128 least = total(small) - bytePrice * budget;
      small = fillBudget(*this, std::move(small));
      small.minCost = least <= 0 ? 0 : static_cast<int64_t>((least + costPrice - 1) / costPrice);
      return ChoiceSearch(*this, {bytePrice, costPrice}, std::move(small)).run();
    }
    (middle.bytes <= budget ? small : fast) = std::move(middle);
  }
}

int64_t RecomputeProblem::solveExhaustively() const {
  int64_t best = -1;
  for (uint64_t bits = 0; bits < uint64_t(1) << values.size(); ++bits) {
    std::vector<bool> saved(values.size());
    for (unsigned index = 0; index < values.size(); ++index)
      saved[index] = bits >> index & 1;
    RecomputeChoice choice = evaluate(std::move(saved));
    if (choice.cost >= 0 && choice.bytes <= budget && (best < 0 || choice.cost < best))
      best = choice.cost;
  }
  return best;
}

std::string RecomputeChoice::toText(const RecomputeProblem &problem) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto list = [&](llvm::StringRef title, const std::vector<bool> &chosen) {
    os << title;
    for (unsigned index = 0; index < chosen.size(); ++index)
      if (chosen[index])
        os << ' ' << problem.values[index].name;
    os << '\n';
  };
  list("save", saved);
  list("recompute", recomputed);
  os << "saved " << bytes << " bytes of " << problem.budget << ", recomputed " << cost << " ns, at least " << minCost
     << " ns\n";
  return text;
}
