// The problem as data. OrderTableText.cpp has its text, OrderPlay.cpp the time and memory of its orders; the orders
// come from Schedules/*.cpp or from the text.
#include "par/Solver/Order/OrderTable.h"
#include "OrderPlay.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace par;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

//===-- Where what lies ----------------------------------------------------------------------===//

ScheduleShape OrderTableProblem::shape() const { return {numDevices(), stages / numDevices(), microbatches}; }

Placement OrderTableProblem::placement() const {
  if (!table.empty())
    return tablePlacement;
  const Schedule *found = findSchedule(schedule);
  return found ? found->placement : Placement::RoundRobin;
}

bool OrderTableProblem::weightsApart() const {
  if (!table.empty())
    return hasWeights(table);
  const Schedule *found = findSchedule(schedule);
  return found && found->weightsApart;
}

/// In a V every other row of stages runs backwards.
static unsigned mirror(Placement placement, unsigned devices, unsigned chunk, unsigned index) {
  return placement == Placement::V && chunk % 2 ? devices - 1 - index : index;
}

unsigned OrderTableProblem::stageOf(unsigned device, unsigned chunk) const {
  return chunk * numDevices() + mirror(placement(), numDevices(), chunk, device);
}

unsigned OrderTableProblem::deviceOf(unsigned stage) const {
  return mirror(placement(), numDevices(), chunkOf(stage), stage % numDevices());
}

int64_t OrderTableProblem::timeOf(SlotKind kind, unsigned stage, bool apart) const {
  int64_t weightTime = weight.empty() ? 0 : weight[stage];
  if (kind == SlotKind::Forward)
    return forward[stage];
  if (kind == SlotKind::Weight)
    return weightTime;
  return backward[stage] + (apart ? 0 : weightTime);
}

int64_t OrderTableProblem::memoryLimit(unsigned device) const {
  return 1000 * (limit.empty() ? int64_t(stages) : limit[device]);
}

//===-- Check and solve ----------------------------------------------------------------------===//

static Error checkCount(const char *what, int64_t count) {
  if (count >= 1 && count <= maxOrderCount)
    return Error::success();
  return solverError("the number of " + Twine(what) + " is " + Twine(count) + ", expected 1 to " +
                     Twine(maxOrderCount));
}

/// Checks the number of stages that a device has under a schedule.
static Error checkChunks(const Schedule &schedule, unsigned stages, unsigned devices) {
  unsigned chunks = stages / devices;
  if (chunks >= schedule.minChunks && chunks <= schedule.maxChunks)
    return Error::success();
  std::string need = std::to_string(schedule.minChunks);
  if (schedule.maxChunks > schedule.minChunks)
    need += schedule.maxChunks == ~0u ? " or more" : " to " + std::to_string(schedule.maxChunks);
  return solverError("schedule '" + schedule.name + "' takes " + need + " stages a device, and there are " +
                     Twine(chunks));
}

Error OrderTableProblem::check() const {
  const Schedule *found = findSchedule(schedule);
  if (table.empty() && !found)
    return solverError("unknown schedule '" + schedule + "'; there are " + listSchedules());
  for (auto [what, count] : {std::pair("stages", stages), {"devices", numDevices()}, {"microbatches", microbatches}})
    if (Error error = checkCount(what, count))
      return error;
  if (stages % numDevices() != 0)
    return solverError("there are " + Twine(stages) + " stages for " + Twine(numDevices()) +
                       " devices, expected a multiple");
  if (table.empty())
    if (Error error = checkChunks(*found, stages, numDevices()))
      return error;
  if (forward.size() != stages || backward.size() != stages || (!weight.empty() && weight.size() != stages))
    return solverError("there are " + Twine(forward.size()) + " forward, " + Twine(backward.size()) + " backward and " +
                       Twine(weight.size()) + " weight times for " + Twine(stages) + " stages");
  if (!limit.empty() && limit.size() != numDevices())
    return solverError("there are " + Twine(limit.size()) + " limits for " + Twine(numDevices()) + " devices");
  if (kept < 0 || kept > 1000)
    return solverError("kept is " + Twine(kept) + ", expected 0 to 1000");
  return Error::success();
}

llvm::Expected<OrderTable> OrderTableProblem::solve() const {
  if (Error error = check())
    return error;
  if (!table.empty())
    return measure(table);
  const Schedule *row = findSchedule(schedule);
  if (row->solve) {
    auto orders = row->solve(*this);
    if (!orders)
      return orders.takeError();
    return measure(std::move(*orders));
  }
  std::vector<DeviceSlots> orders;
  for (unsigned device = 0; device < numDevices(); ++device)
    orders.push_back(row->order(device, shape()));
  return measure(std::move(orders));
}

//===-- The table ----------------------------------------------------------------------------===//

int64_t OrderTable::bubblePermille() const {
  __int128 busy = 0, all = static_cast<__int128>(makespan) * devices.size();
  for (const DeviceOrder &device : devices)
    busy += device.busy;
  return all == 0 ? 0 : ((all - busy) * 1000 + all / 2) / all;
}

double OrderTable::idleShare() const {
  int64_t busiest = 0;
  for (const DeviceOrder &device : devices)
    busiest = std::max(busiest, device.busy);
  return longest == 0 ? 0 : double(longest - busiest) / double(longest);
}

unsigned OrderTable::inFlightOf(const OrderTableProblem &problem, unsigned stage) const {
  return devices[problem.deviceOf(stage)].chunkInFlight[problem.chunkOf(stage)];
}

std::string OrderTable::toText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto [index, device] : llvm::enumerate(devices)) {
    os << "device " << index << " in_flight " << device.inFlight;
    if (device.pending)
      os << " pending " << device.pending;
    os << ':';
    for (const ScheduleSlot &slot : device.slots)
      os << ' ' << slotName(slot);
    os << '\n';
  }
  os << "makespan " << makespan << " ns, bubble " << bubblePermille() / 10 << '.' << bubblePermille() % 10
     << " %\nlongest device " << longest << " ns, idle " << llvm::formatv("{0:f2}", 100 * idleShare()) << " %\n";
  return text;
}
