#include "MirrorRemarks.h"

#include "Progress.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <array>

namespace par::core {

std::string remarkOfMirrors(const format::Bundle &bundle, const MirrorPlan &plan, const std::vector<uint32_t> &hostOf,
                            uint64_t every) {
  uint64_t most = 0, state = 0;
  bool elsewhere = true;
  for (uint32_t rank = 0; rank < hostOf.size(); ++rank) {
    uint64_t bytes = bytesOf(mirrorRanges(bundle, rank, plan.whole(rank)));
    if (bytes > most) {
      most = bytes;
      state = bytesOf(mirrorRanges(bundle, rank, /*whole=*/true));
    }
    elsewhere &= hostOf[rank] != hostOf[plan.neighbourOf(rank)];
  }
  if (!most)
    return "mirror: nothing is sent: other ranks hold each part of the state";
  return core::format("mirror: {} each rank sends {} of its state of {} to a neighbour{}, and has {} of memory for "
                      "another rank's",
                      every == 1 ? "after each step" : core::format("every {} steps", every), humanBytes(most),
                      humanBytes(state), elsewhere ? " on another host" : "", humanBytes(2 * most));
}

std::string costsOfMirrors(comm::Control &control, const MirrorCost &own, double copyMs) {
  double sent = static_cast<double>(std::max<uint64_t>(own.sent, 1));
  char text[160];
  snprintf(text, sizeof text, "%a %a %a %a %a", static_cast<double>(own.sent), copyMs / sent, own.sendMs / sent,
           own.cpuMs / sent, own.waitMs);
  std::array<double, 5> most{};
  for (const std::string &one : control.gather("mirror costs", text)) {
    char *at = const_cast<char *>(one.c_str());
    for (double &value : most)
      value = std::max(value, strtod(at, &at));
  }
  snprintf(text, sizeof text,
           "mirror: %.0f were sent: %.2f ms for the copy, %.2f ms beside the steps, %.2f ms of a core; steps waited "
           "%.0f ms in all",
           most[0], most[1], most[2], most[3], most[4]);
  return most[0] > 0 ? text : "";
}

} // namespace par::core
