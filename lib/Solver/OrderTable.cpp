#include "par/Solver/OrderTable.h"
#include "llvm/ADT/STLExtras.h"

using namespace par;
using llvm::Error;
using llvm::Twine;

/// With costs below 2^44 ns no time overflows.
constexpr unsigned maxCount = 4096;

namespace {

/// Start and end times of every fragment when each stage runs its slots in order; -1 where not reached.
class Play {
public:
  Play(const OrderTableProblem &problem, const std::vector<StageOrder> &orders)
      : problem(problem), orders(orders), next(problem.stages, 0), free(problem.stages, 0),
        starts(problem.stages), ends(problem.stages) {
    for (auto &stage : ends)
      stage.assign(2 * problem.microbatches, -1);
  }

  /// Runs whatever can run until nothing can; true if every slot of every stage ran.
  bool run() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (unsigned stage = 0; stage < problem.stages; ++stage)
        while (next[stage] < orders[stage].slots.size() && step(stage))
          progress = true;
    }
    for (unsigned stage = 0; stage < problem.stages; ++stage)
      if (next[stage] < orders[stage].slots.size())
        return false;
    return true;
  }

  /// The first stage that waits for ever, and its slot.
  std::pair<unsigned, ScheduleSlot> stuck() const {
    for (unsigned stage = 0; stage < problem.stages; ++stage)
      if (next[stage] < orders[stage].slots.size())
        return {stage, orders[stage].slots[next[stage]]};
    return {problem.stages, {}};
  }

  int64_t makespan() const { return *llvm::max_element(free); }
  std::vector<int64_t> &startsOf(unsigned stage) { return starts[stage]; }

private:
  int64_t &end(unsigned stage, SlotKind kind, unsigned microbatch) {
    return ends[stage][2 * microbatch + (kind == SlotKind::Backward)];
  }

  /// Runs the next slot of a stage if what it depends on has ended.
  bool step(unsigned stage) {
    auto [kind, microbatch, last] = orders[stage].slots[next[stage]];
    bool backward = kind == SlotKind::Backward;
    int64_t ready = free[stage];
    auto need = [&](unsigned from, SlotKind what, int64_t link) {
      int64_t ended = end(from, what, microbatch);
      ready = std::max(ready, ended + link);
      return ended >= 0;
    };
    if (backward && !need(stage, SlotKind::Forward, 0))
      return false;
    if (backward && stage + 1 < problem.stages && !need(stage + 1, SlotKind::Backward, problem.transfer))
      return false;
    if (!backward && stage > 0 && !need(stage - 1, SlotKind::Forward, problem.transfer))
      return false;
    free[stage] = ready + (backward ? problem.backward : problem.forward)[stage];
    end(stage, kind, microbatch) = free[stage];
    starts[stage].push_back(ready);
    ++next[stage];
    return true;
  }

  const OrderTableProblem &problem;
  const std::vector<StageOrder> &orders;
  std::vector<size_t> next;
  std::vector<int64_t> free;
  std::vector<std::vector<int64_t>> starts, ends;
};

} // namespace

static const char *letter(SlotKind kind) { return kind == SlotKind::Forward ? "F" : "B"; }

static std::string slotName(const ScheduleSlot &slot) {
  return (Twine(letter(slot.kind)) + Twine(slot.microbatch) + (slot.last ? "!" : "")).str();
}

/// The most microbatches between their forward and their backward.
static unsigned countInFlight(llvm::ArrayRef<ScheduleSlot> slots) {
  int now = 0, most = 0;
  for (const ScheduleSlot &slot : slots) {
    now += slot.kind == SlotKind::Forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

llvm::Expected<OrderTableProblem> OrderTableProblem::parse(ProblemText &text) {
  OrderTableProblem problem;
  while (text.next()) {
    llvm::StringRef key = text.word();
    if (key == "schedule")
      problem.schedule = text.word().str();
    else if (key == "stages")
      problem.stages = text.integer();
    else if (key == "microbatches")
      problem.microbatches = text.integer();
    else if (key == "forward")
      problem.forward = text.integers();
    else if (key == "backward")
      problem.backward = text.integers();
    else if (key == "transfer")
      problem.transfer = text.integer();
    else
      text.fail("unknown statement '" + key + "'");
  }
  if (Error error = text.takeError())
    return error;
  auto spread = [&](std::vector<int64_t> &costs, int64_t otherwise) {
    if (costs.size() <= 1 && problem.stages <= maxCount)
      costs.assign(problem.stages, costs.empty() ? otherwise : costs.front());
  };
  spread(problem.forward, 1);
  spread(problem.backward, 2);
  return problem;
}

void OrderTableProblem::print(llvm::raw_ostream &os) const {
  os << "problem order_table\nschedule " << schedule << "\nstages " << stages << "\nmicrobatches "
     << microbatches << "\nforward";
  for (int64_t cost : forward)
    os << ' ' << cost;
  os << "\nbackward";
  for (int64_t cost : backward)
    os << ' ' << cost;
  os << "\ntransfer " << transfer << '\n';
}

Error OrderTableProblem::check() const {
  if (!findSchedule(schedule))
    return solverError("unknown schedule '" + schedule + "'; there are " + listSchedules());
  if (stages == 0 || stages > maxCount)
    return solverError("the number of stages is " + Twine(stages) + ", expected 1 to " + Twine(maxCount));
  if (microbatches == 0 || microbatches > maxCount)
    return solverError("the number of microbatches is " + Twine(microbatches) + ", expected 1 to " +
                       Twine(maxCount));
  if (forward.size() != stages || backward.size() != stages)
    return solverError("there are " + Twine(forward.size()) + " forward and " + Twine(backward.size()) +
                       " backward costs for " + Twine(stages) + " stages");
  return Error::success();
}

static Error runToEnd(Play &play) {
  if (play.run())
    return Error::success();
  auto [stage, slot] = play.stuck();
  return solverError("the orders deadlock: stage " + Twine(stage) + " waits in " + slotName(slot));
}

llvm::Expected<OrderTable> OrderTableProblem::solve() const {
  if (Error error = check())
    return error;
  OrderTable table;
  const Schedule *row = findSchedule(schedule);
  for (unsigned stage = 0; stage < stages; ++stage) {
    StageOrder order;
    order.slots = row->order(stage, stages, microbatches);
    for (ScheduleSlot &slot : llvm::reverse(order.slots))
      if (slot.kind == SlotKind::Backward) {
        slot.last = true;
        break;
      }
    order.inFlight = countInFlight(order.slots);
    order.busy = microbatches * (forward[stage] + backward[stage]);
    table.stages.push_back(std::move(order));
  }
  Play play(*this, table.stages);
  if (Error error = runToEnd(play))
    return error;
  for (unsigned stage = 0; stage < stages; ++stage)
    table.stages[stage].start = std::move(play.startsOf(stage));
  table.makespan = play.makespan();
  return table;
}

/// Each fragment of each microbatch once, forwards and backwards each in order of microbatches.
static Error verifyComplete(const OrderTableProblem &problem, unsigned stage, const StageOrder &order) {
  unsigned counts[2] = {0, 0};
  for (const ScheduleSlot &slot : order.slots) {
    unsigned &count = counts[slot.kind == SlotKind::Backward];
    if (slot.microbatch != count)
      return solverError("stage " + Twine(stage) + " runs " + slotName(slot) + " where " + letter(slot.kind) +
                         Twine(count) + " is next");
    ++count;
    if (slot.last != (slot.kind == SlotKind::Backward && count == problem.microbatches))
      return solverError("stage " + Twine(stage) + " marks the wrong backward as last: " + slotName(slot));
  }
  for (unsigned count : counts)
    if (count != problem.microbatches)
      return solverError("stage " + Twine(stage) + " runs " + Twine(counts[0]) + " forwards and " +
                         Twine(counts[1]) + " backwards of " + Twine(problem.microbatches) + " microbatches");
  return Error::success();
}

Error OrderTableProblem::verify(const OrderTable &table) const {
  if (table.stages.size() != stages)
    return solverError("the table has " + Twine(table.stages.size()) + " stages, expected " + Twine(stages));
  for (auto [stage, order] : llvm::enumerate(table.stages)) {
    if (Error error = verifyComplete(*this, stage, order))
      return error;
    if (order.inFlight != countInFlight(order.slots))
      return solverError("stage " + Twine(stage) + " has " + Twine(countInFlight(order.slots)) +
                         " microbatches in flight, not " + Twine(order.inFlight));
  }
  Play play(*this, table.stages);
  if (Error error = runToEnd(play))
    return error;
  if (play.makespan() != table.makespan)
    return solverError("the orders take " + Twine(play.makespan()) + " ns, not " + Twine(table.makespan));
  return Error::success();
}

int64_t OrderTable::bubblePermille() const {
  __int128 busy = 0, all = static_cast<__int128>(makespan) * stages.size();
  for (const StageOrder &stage : stages)
    busy += stage.busy;
  return all == 0 ? 0 : ((all - busy) * 1000 + all / 2) / all;
}

void OrderTable::print(llvm::raw_ostream &os) const {
  for (auto [index, stage] : llvm::enumerate(stages)) {
    os << "stage " << index << " in_flight " << stage.inFlight << ':';
    for (const ScheduleSlot &slot : stage.slots)
      os << ' ' << slotName(slot);
    os << '\n';
  }
  os << "makespan " << makespan << " ns, bubble " << bubblePermille() / 10 << '.' << bubblePermille() % 10
     << " %\n";
}
