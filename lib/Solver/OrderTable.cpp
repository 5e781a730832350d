// The problem as data and text. What its orders mean in time and memory is OrderPlay.cpp's; the orders come from
// Schedules/*.cpp or from the text.
#include "par/Solver/OrderTable.h"
#include "OrderPlay.h"
#include "par/format/PlainFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace par;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

/// With times below 2^44 ns none overflows.
constexpr unsigned maxCount = 4096;

//===-- Where what lies
//--------------------------------------------------------------------------------------------===//

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

//===-- Text
//-------------------------------------------------------------------------------------------------------===//

/// F, B or W, the microbatch, and `.CHUNK`.
static ScheduleSlot parseSlot(ProblemText &text) {
  StringRef word = text.word(), rest = word;
  ScheduleSlot slot = {SlotKind::Forward, 0};
  size_t kind = rest.empty() ? StringRef::npos : StringRef("FBW").find(rest.front());
  auto [microbatch, chunk] = rest.drop_front(rest.empty() ? 0 : 1).split('.');
  bool chunked = word.contains('.');
  if (kind == StringRef::npos || microbatch.getAsInteger(10, slot.microbatch) ||
      (chunked && chunk.getAsInteger(10, slot.chunk)))
    text.fail("expected a slot such as F0, B3 or W3.1, got '" + word + "'");
  else
    slot.kind = static_cast<SlotKind>(kind);
  return slot;
}

/// `device D SLOT...`: devices in order, one or several lines each.
static void parseDevice(ProblemText &text, OrderTableProblem &problem) {
  int64_t device = text.integer();
  size_t known = problem.table.size();
  if (device != static_cast<int64_t>(known) && device + 1 != static_cast<int64_t>(known))
    return text.fail("expected device " + Twine(known) + ", got device " + Twine(device));
  problem.table.resize(device + 1);
  problem.lines.resize(device + 1);
  if (text.atEnd())
    text.fail("device " + Twine(device) + " has no slots");
  while (!text.atEnd()) {
    problem.table.back().push_back(parseSlot(text));
    problem.lines.back().push_back(text.lineNumber());
  }
}

static Placement parsePlacement(ProblemText &text) {
  if (text.accept("v"))
    return Placement::V;
  if (!text.accept("round_robin"))
    text.fail("expected round_robin or v, got '" + text.word() + "'");
  return Placement::RoundRobin;
}

/// What a table says by itself where the text does not.
static void completeSizes(OrderTableProblem &problem, bool stages, bool microbatches) {
  unsigned chunks = 1, most = 0;
  for (const DeviceSlots &slots : problem.table)
    for (const ScheduleSlot &slot : slots) {
      chunks = std::max(chunks, slot.chunk + 1);
      most = std::max(most, slot.microbatch + 1);
    }
  if (problem.table.empty())
    return;
  if (!problem.devices)
    problem.devices = problem.table.size();
  if (!stages)
    problem.stages = chunks <= maxCount ? chunks * problem.devices : maxCount + 1;
  if (!microbatches)
    problem.microbatches = most;
}

namespace {

/// A problem and which of its sizes the text says.
struct ReadProblem {
  OrderTableProblem problem;
  bool schedule = false, stages = false, microbatches = false;

  void statement(ProblemText &text, StringRef key);
  void complete();
};

} // namespace

void ReadProblem::statement(ProblemText &text, StringRef key) {
  std::vector<int64_t> *times = llvm::StringSwitch<std::vector<int64_t> *>(key)
                                    .Case("forward", &problem.forward)
                                    .Case("backward", &problem.backward)
                                    .Case("weight", &problem.weight)
                                    .Case("limit", &problem.limit)
                                    .Default(nullptr);
  if (times)
    *times = text.integers();
  else if (key == "schedule")
    problem.schedule = text.word().str(), schedule = true;
  else if (key == "stages")
    problem.stages = text.integer(), stages = true;
  else if (key == "devices")
    problem.devices = text.integer();
  else if (key == "microbatches")
    problem.microbatches = text.integer(), microbatches = true;
  else if (key == "transfer")
    problem.transfer = text.integer();
  else if (key == "kept")
    problem.kept = text.integer();
  else if (key == "barrier")
    problem.barrier = true;
  else if (key == "placement")
    problem.tablePlacement = parsePlacement(text);
  else if (key == "device")
    parseDevice(text, problem);
  else
    text.fail("unknown statement '" + key + "'");
  if (schedule && !problem.table.empty())
    text.fail("there is a schedule and a table; one of them decides the order");
}

/// What the text leaves out: sizes are read off a table, times are one for all stages.
void ReadProblem::complete() {
  completeSizes(problem, stages, microbatches);
  auto spread = [](std::vector<int64_t> &values, size_t count, int64_t otherwise) {
    if (values.size() <= 1 && count <= maxCount)
      values.assign(count, values.empty() ? otherwise : values.front());
  };
  bool whole = problem.weight.empty() && !problem.backward.empty();
  spread(problem.forward, problem.stages, 1);
  spread(problem.backward, problem.stages, 1);
  spread(problem.weight, problem.stages, whole ? 0 : 1);
  if (!problem.limit.empty())
    spread(problem.limit, problem.numDevices(), 0);
}

llvm::Expected<OrderTableProblem> OrderTableProblem::parse(ProblemText &text) {
  ReadProblem read;
  while (text.next())
    read.statement(text, text.word());
  if (Error error = text.takeError())
    return error;
  read.complete();
  return std::move(read.problem);
}

void OrderTableProblem::print(llvm::raw_ostream &os) const {
  auto list = [&](StringRef key, llvm::ArrayRef<int64_t> values) {
    if (values.empty())
      return;
    os << key;
    for (int64_t value : values)
      os << ' ' << value;
    os << '\n';
  };
  os << "problem order_table\n";
  if (table.empty())
    os << "schedule " << schedule << '\n';
  else if (tablePlacement == Placement::V)
    os << "placement v\n";
  os << "stages " << stages << "\ndevices " << numDevices() << "\nmicrobatches " << microbatches << '\n';
  list("forward", forward);
  list("backward", backward);
  list("weight", weight);
  os << "transfer " << transfer << '\n';
  list("limit", limit);
  os << "kept " << kept << '\n' << (barrier ? "barrier\n" : "");
  for (auto [device, slots] : llvm::enumerate(table)) {
    os << "device " << device;
    for (const ScheduleSlot &slot : slots)
      os << ' ' << slotName(slot);
    os << '\n';
  }
}

//===-- Check and solve
//--------------------------------------------------------------------------------------------===//

static Error checkCount(const char *what, int64_t count) {
  if (count >= 1 && count <= maxCount)
    return Error::success();
  return solverError("the number of " + Twine(what) + " is " + Twine(count) + ", expected 1 to " + Twine(maxCount));
}

/// How many stages a device may have under a schedule.
static Error checkChunks(const Schedule &schedule, unsigned stages, unsigned devices) {
  unsigned chunks = stages / devices;
  if (chunks >= schedule.fewestChunks && chunks <= schedule.mostChunks)
    return Error::success();
  std::string need = std::to_string(schedule.fewestChunks);
  if (schedule.mostChunks > schedule.fewestChunks)
    need += schedule.mostChunks == ~0u ? " or more" : " to " + std::to_string(schedule.mostChunks);
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

//===-- From a plan
//------------------------------------------------------------------------------------------------===//

bool OrderTableProblem::isPath(StringRef word) { return word.contains('/') || word.contains('.'); }

llvm::Expected<OrderTableProblem> OrderTableProblem::readTable(StringRef path, std::string *content) {
  auto file = format::readPlainFile(path.str());
  if (!file)
    return solverError("cannot open: " + Twine(file.message()));
  if (content)
    *content = *file;
  ProblemText text(*file);
  if (Error error = text.takeError())
    return error;
  if (text.kind() != "order_table")
    return solverError("line 1: expected problem order_table, got '" + text.kind() + "'");
  llvm::Expected<OrderTableProblem> problem = parse(text);
  if (!problem)
    return problem.takeError();
  if (problem->table.empty())
    return solverError("no line says the slots of a device: device 0 F0 ...");
  llvm::Expected<OrderTable> table = problem->solve();
  if (!table)
    return table.takeError();
  return problem;
}

llvm::Expected<OrderTableProblem> OrderTableProblem::make(StringRef nameOrPath, unsigned stages, unsigned devices,
                                                          unsigned microbatches) {
  OrderTableProblem problem;
  if (isPath(nameOrPath)) {
    auto read = readTable(nameOrPath);
    if (!read) {
      std::string reason = llvm::toString(read.takeError());
      StringRef rest = reason;
      return solverError(nameOrPath + (rest.consume_front("line ") ? ":" : ": ") + rest);
    }
    if (read->stages != stages || read->numDevices() != devices || read->microbatches != microbatches)
      return solverError(nameOrPath + ": the table is of " + Twine(read->stages) + " stages on " +
                         Twine(read->numDevices()) + " devices and " + Twine(read->microbatches) +
                         " microbatches, expected " + Twine(stages) + " on " + Twine(devices) + " and " +
                         Twine(microbatches));
    problem = std::move(*read);
  } else {
    problem.schedule = nameOrPath.str();
    problem.stages = stages;
    problem.devices = devices;
    problem.microbatches = microbatches;
  }
  problem.forward.assign(stages, 1);
  problem.backward.assign(stages, 1);
  problem.weight.assign(stages, 1);
  if (Error error = problem.check())
    return error;
  return problem;
}

llvm::Expected<std::vector<unsigned>> par::countInFlight(StringRef nameOrPath, unsigned stages, unsigned devices,
                                                         unsigned microbatches) {
  auto problem = OrderTableProblem::make(nameOrPath, stages, devices, microbatches);
  if (!problem)
    return problem.takeError();
  llvm::Expected<OrderTable> table = problem->solve();
  if (!table)
    return table.takeError();
  std::vector<unsigned> counts;
  for (unsigned stage = 0; stage < stages; ++stage)
    counts.push_back(table->inFlightOf(*problem, stage));
  return counts;
}

//===-- The table
//--------------------------------------------------------------------------------------------------===//

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

void OrderTable::print(llvm::raw_ostream &os) const {
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
}
