// A recompute problem as text, and the bytes and the time of a choice.
#include "par/Solver/Recompute/RecomputeChoice.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace par;
using llvm::Error;
using llvm::Twine;

using ValueIndex = llvm::StringMap<unsigned>;

/// The number of the value of this name.
static unsigned findValue(ProblemText &text, const ValueIndex &index, llvm::StringRef name) {
  auto found = index.find(name);
  if (found != index.end())
    return found->second;
  text.fail("no value '" + name + "' is defined above");
  return 0;
}

static ForwardValue parseForwardValue(ProblemText &text, const ValueIndex &index) {
  ForwardValue value;
  value.name = text.word().str();
  while (!text.atEnd()) {
    llvm::StringRef key = text.word();
    if (key == "cost") {
      value.cost = text.integer();
    } else if (key == "bytes") {
      value.bytes = text.integer();
    } else if (key == "copy") {
      value.copyNs = text.integer();
    } else if (key == "needed") {
      value.needed = true;
    } else if (key == "available") {
      value.isAvailable = true;
    } else if (key == "from") {
      while (!text.atEnd())
        if (text.accept("needed"))
          value.needed = true;
        else
          value.inputs.push_back(findValue(text, index, text.word()));
    } else {
      text.fail("unknown word '" + key + "' of a forward value");
    }
  }
  return value;
}

/// "60 saved x 10 h 20 recomputed h 40"
static BytePeak parsePeak(ProblemText &text, const ValueIndex &index) {
  std::vector<int64_t> none(index.size(), 0);
  BytePeak peak{text.integer(), none, none, none};
  std::vector<int64_t> *bytes = nullptr;
  while (!text.atEnd()) {
    llvm::StringRef word = text.word();
    if (auto *column = llvm::StringSwitch<std::vector<int64_t> *>(word)
                           .Case("saved", &peak.saved)
                           .Case("recomputed", &peak.recomputed)
                           .Case("moved", &peak.moved)
                           .Default(nullptr))
      bytes = column;
    else if (!bytes)
      text.fail("expected saved, recomputed or moved, found '" + word + "'");
    else if (unsigned value = findValue(text, index, word); value < bytes->size())
      (*bytes)[value] = text.integer();
  }
  return peak;
}

llvm::Expected<RecomputeProblem> RecomputeProblem::parse(ProblemText &text) {
  RecomputeProblem problem;
  ValueIndex index;
  while (text.next()) {
    llvm::StringRef key = text.word();
    if (key == "budget") {
      problem.budget = text.integer();
    } else if (key == "hidden") {
      problem.hiddenForward = text.integer();
      problem.hiddenBackward = text.integer();
    } else if (key == "value") {
      problem.values.push_back(parseForwardValue(text, index));
      if (!problem.peaks.empty())
        text.fail("value '" + problem.values.back().name + "' is below a peak");
      if (!index.try_emplace(problem.values.back().name, problem.values.size() - 1).second)
        text.fail("a second value '" + problem.values.back().name + "'");
    } else if (key == "peak") {
      problem.peaks.push_back(parsePeak(text, index));
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
  os << "problem recompute\nbudget " << budget << "\nhidden " << hiddenForward << ' ' << hiddenBackward << '\n';
  for (const ForwardValue &value : values) {
    os << "value " << value.name << " cost " << value.cost << " bytes " << value.bytes;
    if (value.copyNs >= 0)
      os << " copy " << value.copyNs;
    os << (value.needed ? " needed" : "") << (value.isAvailable ? " available" : "");
    if (!value.inputs.empty())
      os << " from";
    for (unsigned input : value.inputs)
      os << ' ' << values[input].name;
    os << '\n';
  }
  for (const BytePeak &peak : peaks) {
    os << "peak " << peak.limit;
    for (auto [word, bytes] : {std::pair("saved", &peak.saved), std::pair("recomputed", &peak.recomputed),
                               std::pair("moved", &peak.moved)}) {
      os << ' ' << word;
      for (auto [value, count] : llvm::zip(values, *bytes))
        if (count)
          os << ' ' << value.name << ' ' << count;
    }
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
    cost += value.cost + 2 * std::max<int64_t>(value.copyNs, 0);
    bytes += value.bytes;
  }
  for (const BytePeak &peak : peaks)
    for (const std::vector<int64_t> *column : {&peak.saved, &peak.recomputed, &peak.moved}) {
      if (column->size() != values.size())
        return solverError("a peak counts " + Twine(column->size()) + " values, expected " + Twine(values.size()));
      unsigned __int128 all = 0;
      for (int64_t count : *column)
        all += count;
      bytes = std::max(bytes, all);
    }
  if (cost >> 50 || bytes >> 50)
    return solverError("the values are too large to add");
  return Error::success();
}

std::vector<BytePeak> RecomputeProblem::allPeaks() const {
  std::vector<int64_t> bytes, none(values.size(), 0);
  for (const ForwardValue &value : values)
    bytes.push_back(value.bytes);
  std::vector<BytePeak> all{{budget, std::move(bytes), none, none}};
  all.insert(all.end(), peaks.begin(), peaks.end());
  return all;
}

int64_t par::bytesAt(const BytePeak &peak, const RecomputeChoice &choice) {
  int64_t bytes = 0;
  for (size_t index = 0; index < choice.saved.size(); ++index)
    bytes += choice.saved[index]        ? peak.saved[index]
             : choice.moved[index]      ? peak.moved[index]
             : choice.recomputed[index] ? peak.recomputed[index]
                                        : 0;
  return bytes;
}

bool RecomputeProblem::fits(const RecomputeChoice &choice, const std::vector<BytePeak> &all) const {
  return llvm::all_of(all, [&](const BytePeak &peak) { return bytesAt(peak, choice) <= peak.limit; });
}

RecomputeChoice RecomputeProblem::evaluate(const std::vector<bool> &saved, const std::vector<bool> &moved) const {
  RecomputeChoice choice;
  choice.saved.assign(values.size(), false);
  choice.moved = choice.recomputed = choice.saved;
  std::vector<bool> wanted(values.size(), false);
  // From users to inputs: the values are in topological order.
  for (unsigned index = values.size(); index-- > 0;) {
    const ForwardValue &value = values[index];
    if (value.isAvailable || !(wanted[index] || value.needed))
      continue;
    if (saved[index]) {
      choice.saved[index] = true;
      choice.bytes += value.bytes;
    } else if (!moved.empty() && moved[index]) {
      choice.moved[index] = true;
      choice.copyNs += value.copyNs;
    } else if (value.inputs.empty()) {
      choice.cost = -1;
      return choice;
    } else {
      choice.recomputed[index] = true;
      choice.recomputeNs += value.cost;
      for (unsigned input : value.inputs)
        wanted[input] = true;
    }
  }
  choice.cost = choice.recomputeNs + unhidden(choice.copyNs);
  return choice;
}

RecomputeChoice RecomputeChoice::notFound(int64_t minCost) {
  RecomputeChoice choice;
  choice.cost = -1;
  choice.minCost = minCost;
  return choice;
}

Error RecomputeProblem::verify(const RecomputeChoice &choice) const {
  if (choice.cost < 0 && choice.saved.empty())
    return solverError("no choice was found; none costs less than " + Twine(choice.minCost) + " ns");
  if (choice.saved.size() != values.size() || choice.moved.size() != values.size())
    return solverError("the choice speaks of " + Twine(choice.saved.size()) + " values, expected " +
                       Twine(values.size()));
  for (auto [value, moved] : llvm::zip(values, choice.moved))
    if (moved && value.copyNs < 0)
      return solverError("value '" + value.name + "' is moved, which it cannot be");
  RecomputeChoice again = evaluate(choice.saved, choice.moved);
  if (again.cost < 0)
    return solverError("an argument that is needed is not saved");
  if (again.saved != choice.saved || again.moved != choice.moved || again.recomputed != choice.recomputed ||
      again.bytes != choice.bytes || again.cost != choice.cost)
    return solverError("the choice saves " + Twine(again.bytes) + " bytes and costs " + Twine(again.cost) +
                       " ns, not " + Twine(choice.bytes) + " and " + Twine(choice.cost));
  if (choice.bytes > budget)
    return solverError("the choice saves " + Twine(choice.bytes) + " bytes of a budget of " + Twine(budget));
  for (const BytePeak &peak : peaks)
    if (int64_t bytes = bytesAt(peak, choice); bytes > peak.limit)
      return solverError("the choice has " + Twine(bytes) + " bytes at a peak of at most " + Twine(peak.limit));
  return Error::success();
}

int64_t RecomputeProblem::solveExhaustively() const {
  int64_t best = -1;
  std::vector<unsigned> movable;
  for (auto [index, value] : llvm::enumerate(values))
    if (value.copyNs >= 0)
      movable.push_back(index);
  std::vector<BytePeak> all = allPeaks();
  for (uint64_t bits = 0; bits < uint64_t(1) << (values.size() + movable.size()); ++bits) {
    std::vector<bool> saved(values.size()), moved(values.size());
    for (unsigned index = 0; index < values.size(); ++index)
      saved[index] = bits >> index & 1;
    for (auto [place, index] : llvm::enumerate(movable))
      moved[index] = bits >> (values.size() + place) & 1;
    RecomputeChoice choice = evaluate(saved, moved);
    if (choice.cost >= 0 && fits(choice, all) && (best < 0 || choice.cost < best))
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
  if (llvm::is_contained(moved, true))
    list("move", moved);
  list("recompute", recomputed);
  os << "saved " << bytes << " bytes of " << problem.budget << ", recomputed " << recomputeNs << " ns, ";
  if (copyNs)
    os << "copied " << copyNs << " ns each way, lost " << cost << " ns, ";
  os << "at least " << minCost << " ns\n";
  return text;
}
