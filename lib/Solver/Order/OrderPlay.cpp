// Simulates the orders of all devices: checks that they are complete and terminate, and finds the time of each slot and
// the live activations. Links have unlimited lanes and a device does one thing at a time. The simulator's engine, which
// models queues, finds the same time (test/Simulator/ScheduleTest.cpp).
#include "OrderPlay.h"
#include "llvm/ADT/STLExtras.h"

using namespace par;
using llvm::Error;
using llvm::Twine;

//===-- Time ---------------------------------------------------------------------------------===//

OrderPlay::OrderPlay(const OrderTableProblem &problem, llvm::ArrayRef<DeviceSlots> orders, bool apart)
    : problem(problem), orders(orders), apart(apart), next(orders.size(), 0), free(orders.size(), 0),
      ends(size_t(3) * problem.stages * problem.microbatches, -1), starts(orders.size()) {
  for (auto [device, slots] : llvm::enumerate(orders))
    starts[device].reserve(slots.size());
}

bool OrderPlay::run() {
  for (bool progress = true; progress;) {
    progress = false;
    for (unsigned device = 0; device < orders.size(); ++device)
      while (next[device] < orders[device].size() && step(device))
        progress = true;
  }
  return stuck().first == orders.size();
}

std::pair<unsigned, unsigned> OrderPlay::stuck() const {
  for (unsigned device = 0; device < orders.size(); ++device)
    if (next[device] < orders[device].size())
      return {device, next[device]};
  return {orders.size(), 0};
}

/// Runs the next slot of a device if its dependencies have ended.
bool OrderPlay::step(unsigned device) {
  const ScheduleSlot &slot = orders[device][next[device]];
  unsigned stage = problem.stageOf(device, slot.chunk);
  int64_t ready = free[device];
  auto need = [&](SlotKind kind, unsigned from) {
    int64_t ended = end(kind, from, slot.microbatch);
    ready = std::max(ready, ended + (problem.deviceOf(from) == device ? 0 : problem.transfer));
    return ended >= 0;
  };
  bool met = true;
  if (slot.kind == SlotKind::Forward)
    met = stage == 0 || need(SlotKind::Forward, stage - 1);
  else if (slot.kind == SlotKind::Weight)
    met = need(SlotKind::Backward, stage);
  else
    met = need(SlotKind::Forward, stage) && (stage + 1 == problem.stages || need(SlotKind::Backward, stage + 1));
  if (!met)
    return false;
  free[device] = ready + problem.timeOf(slot.kind, stage, apart);
  end(slot.kind, stage, slot.microbatch) = free[device];
  starts[device].push_back(ready);
  ++next[device];
  return true;
}

//===-- Lives --------------------------------------------------------------------------------===//

bool par::hasWeights(llvm::ArrayRef<DeviceSlots> orders) {
  return llvm::any_of(orders, [](const DeviceSlots &slots) {
    return llvm::any_of(slots, [](const ScheduleSlot &slot) { return slot.kind == SlotKind::Weight; });
  });
}

void par::countLives(const OrderTableProblem &problem, bool apart, DeviceOrder &order) {
  unsigned chunks = problem.shape().chunks, inFlight = 0, pending = 0;
  std::vector<unsigned> ofChunk(chunks, 0);
  order.chunkInFlight.assign(chunks, 0);
  order.inFlight = order.pending = 0;
  order.memory = 0;
  for (const ScheduleSlot &slot : order.slots) {
    if (slot.kind == SlotKind::Forward) {
      ++inFlight;
      ++ofChunk[slot.chunk];
    } else if (slot.kind == SlotKind::Backward) {
      --inFlight;
      --ofChunk[slot.chunk];
      pending += apart;
    } else {
      --pending;
    }
    order.inFlight = std::max(order.inFlight, inFlight);
    order.chunkInFlight[slot.chunk] = std::max(order.chunkInFlight[slot.chunk], ofChunk[slot.chunk]);
    order.pending = std::max(order.pending, pending);
    order.memory = std::max(order.memory, int64_t(1000) * inFlight + problem.kept * pending);
  }
}

void par::markLast(DeviceSlots &slots, bool apart) {
  std::vector<bool> seen;
  for (ScheduleSlot &slot : llvm::reverse(slots)) {
    seen.resize(std::max<size_t>(seen.size(), slot.chunk + 1), false);
    bool adds = slot.kind == (apart ? SlotKind::Weight : SlotKind::Backward);
    slot.last = adds && !seen[slot.chunk];
    if (adds)
      seen[slot.chunk] = true;
  }
}

//===-- One device ---------------------------------------------------------------------------===//

static const char *letter(unsigned kind) { return kind == 0 ? "F" : kind == 1 ? "B" : "W"; }

std::string par::slotName(const ScheduleSlot &slot) {
  std::string chunk = slot.chunk ? "." + std::to_string(slot.chunk) : "";
  return (Twine(letter(static_cast<unsigned>(slot.kind))) + Twine(slot.microbatch) + chunk + (slot.last ? "!" : ""))
      .str();
}

/// "line 7: " if the table was given as text.
static std::string lineOf(const OrderTableProblem &problem, unsigned device, size_t slot) {
  if (device >= problem.lines.size() || problem.lines[device].empty())
    return "";
  const std::vector<unsigned> &lines = problem.lines[device];
  return "line " + std::to_string(lines[std::min(slot, lines.size() - 1)]) + ": ";
}

/// A slot among those before it on its stage, of which `counts` have run.
static std::string checkSlot(const OrderTableProblem &problem, const ScheduleSlot &slot,
                             llvm::ArrayRef<unsigned> counts) {
  unsigned kind = static_cast<unsigned>(slot.kind);
  if (slot.microbatch >= problem.microbatches)
    return "and there are " + std::to_string(problem.microbatches) + " microbatches";
  ScheduleSlot next = {slot.kind, counts[kind], slot.chunk};
  if (slot.microbatch != next.microbatch)
    return slot.microbatch < next.microbatch ? "a second time" : "where " + slotName(next) + " is next";
  if (kind > 0 && slot.microbatch >= counts[kind - 1])
    return "before " + slotName({SlotKind(kind - 1), slot.microbatch, slot.chunk});
  return "";
}

/// " of chunk 1" if there are several.
static std::string chunkName(const OrderTableProblem &problem, unsigned chunk) {
  return problem.shape().chunks > 1 ? " of chunk " + std::to_string(chunk) : "";
}

Error par::checkDevice(const OrderTableProblem &problem, bool apart, unsigned device,
                       llvm::ArrayRef<ScheduleSlot> slots) {
  unsigned chunks = problem.shape().chunks;
  std::vector<std::array<unsigned, 3>> counts(chunks, {0, 0, 0});
  for (auto [index, slot] : llvm::enumerate(slots)) {
    std::string wrong = slot.chunk >= chunks
                            ? "and has " + std::to_string(chunks) + (chunks == 1 ? " stage" : " stages")
                            : checkSlot(problem, slot, counts[slot.chunk]);
    if (!wrong.empty())
      return solverError(lineOf(problem, device, index) + "device " + Twine(device) + " runs " + slotName(slot) + ", " +
                         wrong);
    ++counts[slot.chunk][static_cast<unsigned>(slot.kind)];
  }
  for (auto [chunk, count] : llvm::enumerate(counts))
    for (unsigned kind = 0; kind < (apart ? 3u : 2u); ++kind)
      if (count[kind] != problem.microbatches)
        return solverError(lineOf(problem, device, slots.size()) + "device " + Twine(device) + " runs " +
                           Twine(count[0]) + " forwards" + (apart ? ", " : " and ") + Twine(count[1]) + " backwards" +
                           (apart ? " and " + std::to_string(count[2]) + " weight gradients" : "") + " of " +
                           Twine(problem.microbatches) + " microbatches" + chunkName(problem, chunk));
  return Error::success();
}

//===-- All devices --------------------------------------------------------------------------===//

/// Each device for itself.
static Error checkOrders(const OrderTableProblem &problem, llvm::ArrayRef<DeviceSlots> orders) {
  if (orders.size() != problem.numDevices())
    return solverError("the table has " + Twine(orders.size()) + " devices, expected " + Twine(problem.numDevices()));
  bool apart = hasWeights(orders);
  for (auto [device, slots] : llvm::enumerate(orders))
    if (Error error = checkDevice(problem, apart, device, slots))
      return error;
  return Error::success();
}

static Error checkMemory(const OrderTableProblem &problem, unsigned device, const DeviceOrder &order) {
  int64_t limit = problem.memoryLimit(device);
  if (problem.limit.empty() || order.memory <= limit)
    return Error::success();
  std::string thousandths = order.memory % 1000 ? "." + std::to_string(1000 + order.memory % 1000).substr(1) : "";
  return solverError(lineOf(problem, device, 0) + "device " + Twine(device) + " keeps " + Twine(order.memory / 1000) +
                     thousandths + " activations, the limit is " + Twine(limit / 1000));
}

static Error runToEnd(const OrderTableProblem &problem, llvm::ArrayRef<DeviceSlots> orders, OrderPlay &play) {
  if (play.run())
    return Error::success();
  auto [device, slot] = play.stuck();
  return solverError(lineOf(problem, device, slot) + "the orders deadlock: device " + Twine(device) + " waits in " +
                     slotName(orders[device][slot]));
}

llvm::Expected<OrderTable> OrderTableProblem::measure(std::vector<DeviceSlots> orders) const {
  if (Error error = checkOrders(*this, orders))
    return error;
  bool apart = hasWeights(orders);
  OrderPlay play(*this, orders, apart);
  if (Error error = runToEnd(*this, orders, play))
    return error;
  OrderTable result;
  for (auto [device, slots] : llvm::enumerate(orders)) {
    DeviceOrder &order = result.devices.emplace_back();
    order.slots = slots;
    markLast(order.slots, apart);
    countLives(*this, apart, order);
    if (Error error = checkMemory(*this, device, order))
      return error;
    order.start = std::move(play.startsOf(device));
    for (const ScheduleSlot &slot : slots)
      order.busy += timeOf(slot.kind, stageOf(device, slot.chunk), apart);
  }
  for (auto [device, order] : llvm::enumerate(result.devices)) {
    const ScheduleSlot &slot = order.slots.back();
    int64_t end = order.start.back() + timeOf(slot.kind, stageOf(device, slot.chunk), apart);
    result.makespan = std::max(result.makespan, end);
    result.longest = std::max(result.longest, end - order.start.front());
  }
  return result;
}

Error OrderTableProblem::verify(const OrderTable &table) const {
  std::vector<DeviceSlots> orders;
  for (const DeviceOrder &order : table.devices)
    orders.push_back(order.slots);
  llvm::Expected<OrderTable> again = measure(orders);
  if (!again)
    return again.takeError();
  for (auto [device, said, found] : llvm::enumerate(table.devices, again->devices)) {
    for (auto [slot, right] : llvm::zip(said.slots, found.slots))
      if (slot.last != right.last)
        return solverError("device " + Twine(device) + " marks the wrong slot as last: " + slotName(slot));
    if (said.inFlight != found.inFlight || said.chunkInFlight != found.chunkInFlight || said.pending != found.pending)
      return solverError("device " + Twine(device) + " has " + Twine(found.inFlight) + " microbatches in flight, not " +
                         Twine(said.inFlight));
    if (said.memory != found.memory || said.busy != found.busy || said.start != found.start)
      return solverError("the figures of device " + Twine(device) + " are not those of its order");
  }
  if (again->makespan != table.makespan || again->longest != table.longest)
    return solverError("the orders take " + Twine(again->makespan) + " ns, not " + Twine(table.makespan));
  return Error::success();
}
