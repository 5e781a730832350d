#include "par/Report/Text.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

/// "dp, pp, tp; of 6 orders that fit, 2 different: a step of 118 ms, in the first 140 ms, in the slowest 151 ms"
void printRankOrder(const RankOrderFacts &facts, raw_ostream &os) {
  os << "order   ranks are numbered by " << join(facts.axes, ", ") << " (outermost first)";
  if (const std::optional<RankOrderChoice> &choice = facts.choice) {
    os << ", of " << choice->orders << (choice->orders == 1 ? " order that fits" : " orders that fit");
    if (choice->different > 1)
      os << ", " << choice->different << " different: a step of " << formatTime(choice->ns) << ", in the first one "
         << formatTime(choice->firstNs) << ", in the slowest " << formatTime(choice->slowestNs);
    else if (choice->orders > 1)
      os << ": groups lie alike on the machine in all of them";
  }
  os << "\n";
  size_t width = 0, levelWidth = 0;
  for (const AxisTraffic &axis : facts.traffic) {
    width = std::max(width, axis.axis.size());
    levelWidth = std::max(levelWidth, axis.level.size());
  }
  for (const AxisTraffic &axis : facts.traffic)
    os << "  " << left_justify(axis.axis, width) << right_justify(std::to_string(axis.ranks), 5) << " ranks within "
       << left_justify(axis.level, levelWidth) << "   " << humanBytes(double(axis.bytes)) << " and "
       << formatTime(axis.ns) << " a step\n";
}

void printBucket(const BucketChoice &bucket, raw_ostream &os) {
  os << "bucket  " << humanBytes(double(bucket.size)) << ", of " << bucket.sizes << " sizes: a step of "
     << formatTime(bucket.ns) << ", with 25 MiB " << formatTime(bucket.defaultNs) << "\n";
}

} // namespace par
