#include "par/Report/Text.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace llvm;

namespace par {

/// "8 x 128 KiB, 1 x 64.0 KiB and 2 more sizes", the largest first.
static void printSizes(const CommunicationTotal &total, raw_ostream &os) {
  std::map<uint64_t, uint64_t, std::greater<>> counts;
  for (const Communication &part : total.parts)
    counts[part.bytes] += part.count;
  size_t shown = 0;
  for (auto [bytes, count] : counts)
    if (shown++ < 3)
      os << (shown > 1 ? ", " : "") << count << " x " << humanBytes(double(bytes));
  if (shown > 3)
    os << " and " << shown - 3 << " more sizes";
  if (total.kind == "send, recv")
    os << " each way";
}

/// "15 of 17 overlapped with the last backward"
static void printOverlap(const CommunicationTotal &total, raw_ostream &os) {
  MapVector<StringRef, uint64_t, StringMap<unsigned>> overlaps;
  uint64_t all = 0;
  for (const Communication &part : total.parts) {
    all += part.count;
    if (!part.overlap.empty())
      overlaps[part.overlap] += part.count;
  }
  for (auto &[overlap, count] : overlaps)
    os << "   " << (count < all ? formatv("{0} of {1} ", count, all).str() : "") << overlap;
}

/// "forced by lm_head.weight {0: tp} and 8 more": rules by the places that they force.
static void printRules(const CommunicationTotal &total, raw_ostream &os) {
  MapVector<StringRef, StringRef, StringMap<unsigned>> rules;
  for (const Communication &part : total.parts)
    if (part.rule)
      rules.insert({part.place, part.rule->text});
  if (rules.empty())
    return;
  os << "   forced by " << rules.front().second;
  if (rules.size() > 1)
    os << " and " << rules.size() - 1 << " more (--explain=collectives)";
}

void printCommunication(ArrayRef<CommunicationTotal> totals, size_t roles, raw_ostream &os) {
  if (totals.empty())
    return;
  os << "communication per rank and step" << (roles > 1 ? ", on the stage that has most of each kind" : "") << "\n";
  size_t width = 0;
  for (const CommunicationTotal &total : totals)
    width = std::max(width, total.kind.size() + 2);
  for (const CommunicationTotal &total : totals) {
    os << "  " << left_justify(total.axis, 3) << " " << left_justify(total.kind, width);
    printSizes(total, os);
    printOverlap(total, os);
    printRules(total, os);
    os << "\n";
  }
}

void explainCommunication(ArrayRef<Communication> all, size_t roles, raw_ostream &os) {
  if (all.empty())
    os << "communication: none, a rank sends nothing to others\n";
  for (const Communication &each : all) {
    os << each.kind << " " << each.type << " over {" << each.axis << "}, " << each.count << " a step, "
       << humanBytes(double(each.bytes)) << (roles > 1 ? ", " + nameOfRole(each.role) : "") << "\n";
    if (!each.place.empty())
      os << "  where  " << each.place << "\n";
    if (!each.reason.empty())
      os << "  why    " << each.reason << "\n";
  }
}

} // namespace par
