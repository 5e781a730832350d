// Lists are cut off so that each explanation stays on a screen, and say what has the rest.
#include "par/Report/Explain.h"

#include "par/Report/Search.h"
#include "par/Report/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace par {

static constexpr size_t maxLines = 8; // of one list

/// Prints the first lines of a list, and how many there are more.
template <typename Range, typename Fn>
static void printSome(const Range &values, raw_ostream &os, StringRef whoHasAll, Fn print, size_t most = maxLines) {
  for (const auto &value : ArrayRef(values).take_front(most))
    print(value);
  if (values.size() > most)
    os << "  and " << values.size() - most << " more" << (whoHasAll.empty() ? "" : " (" + whoHasAll + ")") << "\n";
}

/// "3d.yaml:4", "by default", "derived"
static std::string saidBy(StringRef origin) {
  return origin == "default" ? "by default" : origin == "auto" ? "derived" : origin.str();
}

static const KeyFact *findKey(const Facts &facts, StringRef prefix) {
  auto found = find_if(facts.keys, [&](const KeyFact &key) { return StringRef(key.key).starts_with(prefix); });
  return found == facts.keys.end() ? nullptr : &*found;
}

static void printShardings(ArrayRef<ValueSharding> values, raw_ostream &os) {
  size_t what = 0, type = 0;
  for (const ValueSharding &value : values.take_front(maxLines)) {
    what = std::max(what, value.what.size());
    type = std::max(type, value.type.size());
  }
  os << "sharding\n";
  if (values.empty())
    os << "  none: no op of the program is from it\n";
  printSome(values, os, "--stop-after=propagate", [&](const ValueSharding &value) {
    os << "  " << nameOfRole(value.stage) << " " << left_justify(value.part, 9) << left_justify(value.what, what + 2)
       << left_justify(value.type, type + 2) << value.sharding;
    if (value.count > 1)
      os << "  " << value.count << " values";
    os << "\n";
  });
}

static void printAt(ArrayRef<Communication> all, raw_ostream &os) {
  os << "communication" << (all.empty() ? ": none is from it" : "") << "\n";
  printSome(all, os, "--explain=collectives", [&](const Communication &each) {
    os << "  " << nameOfRole(each.role) << " " << each.kind << " " << each.type << " over {" << each.axis << "}, "
       << each.count << " a step, " << humanBytes(double(each.bytes)) << (each.overlap.empty() ? "" : ", ")
       << each.overlap << "\n";
    if (!each.reason.empty())
      os << "      forced by " << each.reason << "\n";
  });
}

static void printBytes(ArrayRef<NamedBytes> all, raw_ostream &os) {
  bool hasBuffers = any_of(all, [](const NamedBytes &each) { return each.use == "buffers"; });
  os << "bytes of a rank" << (hasBuffers ? "; buffers are not all live at once" : "")
     << (all.empty() ? ": none has a buffer of its own" : "") << "\n";
  printSome(all, os, "--emit=report", [&](const NamedBytes &each) {
    os << "  " << nameOfRole(each.role) << " " << left_justify(each.use, 9)
       << right_justify(humanBytes(double(each.bytes)), 10) << "  " << each.count << " x " << each.type << "\n";
  });
}

void explainName(const NameFacts &facts, ArrayRef<std::string> others, raw_ostream &os) {
  os << facts.thing.kind << " " << facts.thing.name << ": " << facts.thing.about << "\n";
  if (!others.empty())
    os << "  the name also means " << join(others.take_front(3), ", ")
       << (others.size() > 3 ? formatv(" and {0} more", others.size() - 3).str() : "") << "\n";
  os << "rules that met" << (facts.rules.empty() ? ": none; its neighbours decide" : "") << "\n";
  printSome(facts.rules, os, "--explain=plan",
            [&](const MetRule &rule) { os << "  " << saidBy(rule.origin) << ": " << rule.text << "\n"; });
  printShardings(facts.shardings, os);
  printAt(facts.communications, os);
  printBytes(facts.bytes, os);
}

static void printFound(const SearchFacts &search, raw_ostream &os) {
  os << "found by a search among " << search.candidates << " plans; " << formatv("{0:f1}", search.gapPercent)
     << " % above the bound of " << formatTime(search.boundNs) << "\n";
  printReasons(search, os);
}

void explainPlan(const Facts &facts, raw_ostream &os) {
  std::vector<KeyFact> said, derived;
  for (const KeyFact &key : facts.keys)
    if (key.origin != "default" && key.key != "par")
      (key.origin == "auto" ? derived : said).push_back(key);
  size_t width = 0, valueWidth = 0;
  for (const auto *keys : {&said, &derived})
    for (const KeyFact &key : ArrayRef(*keys).take_front(16)) {
      width = std::max(width, key.key.size());
      valueWidth = std::max(valueWidth, key.value.size());
    }
  auto print = [&](const KeyFact &key) {
    os << "  " << left_justify(key.key, width + 2) << left_justify(key.value, valueWidth + 2) << saidBy(key.origin)
       << (key.reason.empty() ? "" : " (" + key.reason + ")") << "\n";
  };
  printPlan(*facts.plan, os);
  os << "keys that were said" << (said.empty() ? ": none" : "") << "; "
     << facts.keys.size() - said.size() - derived.size() << " more are by default (--print-plan)\n";
  printSome(said, os, "--print-plan", print, 16);
  if (!derived.empty())
    os << "keys derived from them and from the model\n";
  printSome(derived, os, "--print-plan", print);
  if (facts.search)
    printFound(*facts.search, os);
  if (facts.recipes)
    printRecipes(*facts.recipes, os);
  os << "patterns" << (facts.matches->empty() ? ": none" : "") << "\n";
  printSome(*facts.matches, os, "-v", [&](const PatternMatch &match) { printMatches(match, os); }, 10);
}

/// The row of the step of a role that takes longest.
static const TimelineRow *rowOf(const Facts &facts, StringRef role) {
  const TimelineRow *longest = nullptr;
  for (const TimelineRow &row : facts.timeline->rows)
    if (row.role == role && (!longest || row.time.compute > longest->time.compute))
      longest = &row;
  return longest;
}

/// Messages of a role to others.
static void printSends(const Facts &facts, StringRef role, raw_ostream &os) {
  std::vector<Communication> sends;
  copy_if(*facts.communications, std::back_inserter(sends),
          [&](const Communication &each) { return each.role == role && each.kind == "send, recv"; });
  printSome(
      sends, os, "--explain=collectives",
      [&](const Communication &each) {
        os << "  sends " << each.count << " x " << humanBytes(double(each.bytes)) << " a step"
           << (each.place.empty() ? "" : ": " + each.place) << "\n";
      },
      4);
}

static void printRole(const RoleMemory &role, const Facts &facts, raw_ostream &os) {
  os << nameOfRole(role.name) << ", " << role.ranks << (role.ranks == 1 ? " rank: " : " ranks: ");
  double all = 0, work = 0;
  std::vector<std::string> modules;
  std::string numbers = StringRef(role.name).ltrim('s').str();
  for (auto [index, stage] : enumerate(facts.stages)) {
    all += stage.work;
    if (!is_contained(split(StringRef(numbers), '+'), std::to_string(index)))
      continue;
    work += stage.work;
    append_range(modules, stage.modules);
  }
  os << join(modules, ", ") << formatv(": {0:f0} % of the work\n", all > 0 ? 100 * work / all : 0.0);
  if (const TimelineRow *row = rowOf(facts, role.name))
    os << "  compute " << formatTime(row->time.compute) << ", exposed communication "
       << formatTime(row->time.communication) << ", idle " << formatTime(row->time.idle) << " of a step of "
       << formatTime(facts.prediction->stepNs) << "\n";
  os << "  peak " << humanBytes(double(role.peak)) << ": params " << humanBytes(double(role.params)) << ", states "
     << humanBytes(double(role.states)) << ", saved " << humanBytes(double(role.saved)) << "\n";
  printSends(facts, role.name, os);
}

void explainCuts(const Facts &facts, raw_ostream &os) {
  if (facts.stages.empty()) {
    os << "cuts    none: the plan has one stage; an axis of pipeline.over with several ranks makes more\n";
    return;
  }
  const KeyFact *key = findKey(facts, "pipeline.cuts");
  os << "cuts    " << key->key << ": " << key->value << ", " << saidBy(key->origin)
     << (key->value == "auto" ? ": found as the best by the time of the model's parts and what crosses" : "") << "\n";
  printSome(facts.memory->roles, os, "--json", [&](const RoleMemory &role) { printRole(role, facts, os); });
  printPrediction(*facts.prediction, os);
}

void explainRecomputation(const Facts &facts, raw_ostream &os) {
  const KeyFact *key = findKey(facts, "recompute");
  os << "recompute " << facts.recompute->mode << ", " << (key ? saidBy(key->origin) : "nothing is trained") << "; ";
  if (facts.memory->limit)
    os << "a rank has " << humanBytes(double(*facts.memory->limit)) << "\n";
  else
    os << "no limit of memory (target.memory)\n";
  for (const RoleMemory &role : facts.memory->roles)
    os << "  " << nameOfRole(role.name) << ": peak " << humanBytes(double(role.peak)) << ", of it saved for backward "
       << humanBytes(double(role.saved)) << "\n";
  if (facts.recompute->stages.empty())
    os << "nothing is recomputed\n";
  printRecompute(*facts.recompute, os);
  explainRecompute(*facts.recompute, os);
  os << "kept for backward, the largest (--explain=memory has all)\n";
  for (RoleSaved role : ArrayRef(*facts.saved).take_front(4)) {
    role.values.resize(std::min<size_t>(role.values.size(), 5));
    printSavedValues(role, os);
  }
}

} // namespace par
