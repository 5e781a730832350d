// Rows whose values are equal are left out, but for the step's time and the peak: what stays is the difference.
#include "par/Report/Difference.h"

#include "par/Report/Text.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <map>
#include <set>

using namespace llvm;

namespace par {

static constexpr size_t maxKeys = 12, maxReasons = 2; // a screen has 40 lines

/// "+906 KiB"
static std::string signedBytes(int64_t bytes) {
  return bytes == 0 ? "" : (bytes < 0 ? "-" : "+") + humanBytes(double(std::abs(bytes)));
}

/// Empty where it rounds to nothing.
static std::string signedPercent(int64_t one, int64_t other) {
  std::string text;
  if (one > 0 && one != other)
    raw_string_ostream(text) << llvm::format("%+.1f %%", 100.0 * double(other - one) / double(one));
  return text == "+0.0 %" || text == "-0.0 %" ? "" : text;
}

/// A key that holds one word where it has no keys of its own, under the name that it has beside these.
static StringRef longName(StringRef key) { return key == "precision" ? StringRef("precision.compute") : key; }

/// By axis and kind; the total's own kind is the level, "between hosts" if some of it leaves the host.
using Totals = std::map<std::pair<std::string, std::string>, CommunicationTotal>;

namespace {

/// The lines of a comparison.
class DifferencePrinter {
public:
  DifferencePrinter(const ComparedPlan &one, const ComparedPlan &other, raw_ostream &os)
      : one(one), other(other), os(os) {}

  void run() {
    row("", one.name, other.name, "difference");
    printKeys();
    printTime();
    printMemory();
    printCommunication();
    print();
  }

private:
  /// A line of the table; one of only a name is text, which may be wider than its column.
  struct Row {
    std::string name, left, right, difference;
  };
  void row(const Twine &name, StringRef left = "", StringRef right = "", StringRef difference = "") {
    rows.push_back({name.str(), left.str(), right.str(), difference.str()});
  }
  void print() const;
  void printKeys();
  void printTime();
  void printMemory();
  void printCommunication();
  /// Who forced what only this plan has.
  void printReasons(const ComparedPlan &plan, const Totals &totals, const Totals &others,
                    const std::pair<std::string, std::string> &kind);

  const ComparedPlan &one, &other;
  std::vector<Row> rows;
  raw_ostream &os;
};

} // namespace

void DifferencePrinter::print() const {
  size_t nameWidth = 30, leftWidth = 20, rightWidth = 20;
  for (const Row &row : rows) {
    if (!row.left.empty())
      nameWidth = std::max(nameWidth, row.name.size());
    leftWidth = std::max(leftWidth, row.left.size() + 2);
    rightWidth = std::max(rightWidth, row.right.size() + 2);
  }
  for (const Row &row : rows) {
    std::string line;
    raw_string_ostream(line) << left_justify(row.name, nameWidth) << right_justify(row.left, leftWidth)
                             << right_justify(row.right, rightWidth) << right_justify(row.difference, 13);
    os << StringRef(line).rtrim() << "\n";
  }
}

void DifferencePrinter::printKeys() {
  MapVector<StringRef, std::pair<StringRef, StringRef>> values;
  for (const KeyFact &key : one.facts.keys)
    values[longName(key.key)].first = key.value;
  for (const KeyFact &key : other.facts.keys)
    values[longName(key.key)].second = key.value;
  size_t shown = 0;
  auto valueOf = [](StringRef value) { return value.empty() ? StringRef("-") : value; };
  for (auto &[key, pair] : values)
    if (pair.first != pair.second && shown++ < maxKeys)
      row(key, valueOf(pair.first), valueOf(pair.second));
  if (shown > maxKeys)
    row("  and " + Twine(shown - maxKeys) + " more keys (--print-plan)");
  if (shown == 0)
    row("the plans have the same keys");
}

void DifferencePrinter::printTime() {
  const Prediction &left = *one.facts.prediction, &right = *other.facts.prediction;
  row("step", formatTime(left.stepNs), formatTime(right.stepNs), signedPercent(left.stepNs, right.stepNs));
  std::pair<const char *, int64_t Prediction::*> parts[] = {
      {"  compute", &Prediction::computePermille},
      {"  waiting for other ranks", &Prediction::bubblePermille},
      {"  exposed communication", &Prediction::communicationPermille},
      {"  waiting for a core", &Prediction::corePermille},
  };
  for (auto [name, share] : parts) {
    int64_t before = left.*share * left.stepNs / 1000, after = right.*share * right.stepNs / 1000;
    std::string was = formatTime(before), is = formatTime(after), percent = signedPercent(before, after);
    if (was != is || !percent.empty())
      row(name, was, is, percent);
  }
}

static const RoleMemory &fullestOf(const Facts &facts) {
  return *max_element(facts.memory->roles, [](auto &a, auto &b) { return a.peak < b.peak; });
}

/// "12.5 MiB"; of several roles the fullest with its name.
static std::string peakOf(const Facts &facts) {
  const RoleMemory &role = fullestOf(facts);
  std::string text = humanBytes(double(role.peak));
  return facts.memory->roles.size() > 1 ? nameOfRole(role.name) + ": " + text : text;
}

void DifferencePrinter::printMemory() {
  const RoleMemory &left = fullestOf(one.facts), &right = fullestOf(other.facts);
  row("peak of a rank", peakOf(one.facts), peakOf(other.facts), signedBytes(int64_t(right.peak - left.peak)));
  std::pair<const char *, uint64_t RoleMemory::*> columns[] = {
      {"  params", &RoleMemory::params}, {"  grads", &RoleMemory::grads},     {"  states", &RoleMemory::states},
      {"  saved", &RoleMemory::saved},   {"  buffers", &RoleMemory::buffers}, {"  in host memory", &RoleMemory::host},
  };
  for (auto [name, bytes] : columns)
    if (left.*bytes != right.*bytes)
      row(name, humanBytes(double(left.*bytes)), humanBytes(double(right.*bytes)),
          signedBytes(int64_t(right.*bytes - left.*bytes)));
  auto limitOf = [](const Facts &facts) {
    const std::optional<uint64_t> &limit = facts.memory->limit;
    return limit ? humanBytes(double(*limit)) : std::string("none");
  };
  auto above = [](const Facts &facts) { return facts.memory->limit && fullestOf(facts).peak > *facts.memory->limit; };
  if (above(one.facts) || above(other.facts) || one.facts.memory->limit != other.facts.memory->limit)
    row("  limit", limitOf(one.facts) + (above(one.facts) ? ", exceeded" : ""),
        limitOf(other.facts) + (above(other.facts) ? ", exceeded" : ""));
}

/// "8 x 128 KiB", of several sizes "17, 1.1 MiB"
static std::string describe(const CommunicationTotal *total) {
  if (!total)
    return "-";
  uint64_t count = 0, bytes = 0;
  SmallSetVector<uint64_t, 4> sizes;
  for (const Communication &part : total->parts) {
    count += part.count;
    bytes += part.count * part.bytes;
    sizes.insert(part.bytes);
  }
  std::string level = total->kind == "between hosts" ? " between hosts" : "";
  if (sizes.size() == 1)
    return std::to_string(count) + " x " + humanBytes(double(sizes.front())) + level;
  return std::to_string(count) + ", " + humanBytes(double(bytes)) + level;
}

static uint64_t bytesOf(const CommunicationTotal *total) {
  uint64_t bytes = 0;
  for (const Communication &part : total ? ArrayRef(total->parts) : ArrayRef<Communication>())
    bytes += part.count * part.bytes;
  return bytes;
}

template <typename Map>
static const CommunicationTotal *findTotal(const Map &totals, const std::pair<std::string, std::string> &kind) {
  auto found = totals.find(kind);
  return found == totals.end() ? nullptr : &found->second;
}

static SetVector<StringRef> reasonsOf(const CommunicationTotal *total) {
  SetVector<StringRef> reasons;
  for (const Communication &part : total ? ArrayRef(total->parts) : ArrayRef<Communication>())
    if (!part.reason.empty())
      reasons.insert(part.reason);
  return reasons;
}

void DifferencePrinter::printReasons(const ComparedPlan &plan, const Totals &totals, const Totals &others,
                                     const std::pair<std::string, std::string> &kind) {
  SetVector<StringRef> known = reasonsOf(findTotal(others, kind));
  SetVector<StringRef> reasons = reasonsOf(findTotal(totals, kind));
  reasons.remove_if([&](StringRef reason) { return known.contains(reason); });
  for (StringRef reason : ArrayRef(reasons.getArrayRef()).take_front(maxReasons)) {
    bool isSet = reason.consume_front("--set: ");
    row("      " + Twine(plan.name) + ", forced by " + (isSet ? plan.settings + ": " : "") + reason);
  }
  if (reasons.size() > maxReasons)
    row("      and " + Twine(reasons.size() - maxReasons) + " more (--explain=collectives)");
}

static Totals totalsOf(const Facts &facts) {
  Totals totals;
  for (const CommunicationTotal &each : totalCommunications(*facts.communications)) {
    StringRef kind = each.kind;
    bool leaves = kind.consume_back(" between hosts");
    kind.consume_back(" in hosts");
    CommunicationTotal &total = totals[{each.axis, kind.str()}];
    if (leaves)
      total.kind = "between hosts";
    append_range(total.parts, each.parts);
  }
  return totals;
}

void DifferencePrinter::printCommunication() {
  Totals left = totalsOf(one.facts), right = totalsOf(other.facts);
  std::set<std::pair<std::string, std::string>> kinds;
  for (const Totals *totals : {&left, &right})
    for (auto &[kind, total] : *totals)
      kinds.insert(kind);
  bool any = false;
  for (const auto &kind : kinds) {
    const CommunicationTotal *before = findTotal(left, kind), *after = findTotal(right, kind);
    std::string was = describe(before), is = describe(after);
    if (was == is)
      continue;
    if (!std::exchange(any, true))
      row("communication of a rank in a step");
    row("  " + kind.first + "  " + kind.second, was, is, signedBytes(int64_t(bytesOf(after) - bytesOf(before))));
    printReasons(one, left, right, kind);
    printReasons(other, right, left, kind);
  }
  if (!any)
    row("communication of a rank in a step: the same");
}

void printDifference(const ComparedPlan &one, const ComparedPlan &other, raw_ostream &os) {
  DifferencePrinter(one, other, os).run();
}

} // namespace par
