#include "par/Solver/Schedules/Schedules.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace par;

// The files of lib/Solver/Schedules, listed by CMake: PAR_SCHEDULE(GPipe) PAR_SCHEDULE(Interleaved) ...
namespace par::schedules {
#define PAR_SCHEDULE(name) extern const Schedule name;
#include "par/Solver/Schedules/ScheduleFiles.inc"
#undef PAR_SCHEDULE
} // namespace par::schedules

static const Schedule *const all[] = {
#define PAR_SCHEDULE(name) &schedules::name,
#include "par/Solver/Schedules/ScheduleFiles.inc"
#undef PAR_SCHEDULE
};

llvm::ArrayRef<const Schedule *> par::getSchedules() { return all; }

const Schedule *par::findSchedule(llvm::StringRef name) {
  auto found = llvm::find_if(all, [&](const Schedule *schedule) { return schedule->name == name; });
  return found == std::end(all) ? nullptr : *found;
}

std::string par::listSchedules() {
  return llvm::join(llvm::map_range(all, [](const Schedule *schedule) { return schedule->name; }), ", ");
}
