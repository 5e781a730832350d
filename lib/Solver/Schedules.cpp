#include "par/Solver/Schedules.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace par;

static const Schedule schedules[] = {
    {"gpipe", "all forwards, then all backwards", gpipeOrder},
    {"1f1b", "one forward, one backward: at most p - s microbatches in flight", oneForwardOneBackwardOrder},
};

llvm::ArrayRef<Schedule> par::getSchedules() { return schedules; }

const Schedule *par::findSchedule(llvm::StringRef name) {
  const Schedule *found = llvm::find_if(schedules, [&](const Schedule &s) { return s.name == name; });
  return found == std::end(schedules) ? nullptr : found;
}

std::string par::listSchedules() {
  return llvm::join(llvm::map_range(schedules, [](const Schedule &s) { return s.name; }), ", ");
}
