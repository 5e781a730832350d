// Mutations of the order in which queues move.
#include "Mutator.h"

#include <algorithm>

using namespace par::format;
using namespace par::toy;

/// A wait or a signal goes.
bool Mutator::dropEvent(Op op) {
  std::vector<Spot> all = spotsWhere([&](const Instruction &it) { return it.op == op; });
  if (all.empty())
    return false;
  Spot spot = pick(all);
  say(spot, std::string(toString(op)) + " " + program.events[at(spot).event].name + " dropped");
  list(spot).erase(list(spot).begin() + spot.n);
  return true;
}

/// A wait or a signal names another event, or another slot of its own.
bool Mutator::event() {
  std::vector<Spot> all = spotsWhere([](const Instruction &it) { return it.op == Op::Wait || it.op == Op::Signal; });
  if (all.empty())
    return false;
  Spot spot = pick(all);
  Instruction &it = at(spot);
  const Event &old = program.events[it.event];
  if (old.depth > 1 && random.below(2)) {
    it.eventSlot.offset += random.below(2) ? 1 : -1;
    say(spot, std::string(toString(it.op)) + " " + old.name + " at another slot");
    return true;
  }
  auto other = uint32_t(random.below(program.events.size()));
  if (other == it.event || program.events[other].index != old.index)
    return false;
  say(spot, std::string(toString(it.op)) + " " + old.name + " became one of " + program.events[other].name);
  it.event = other;
  return true;
}

/// An instruction runs on another queue; or a communicator does, with all its communications.
bool Mutator::queue() {
  auto to = uint32_t(random.below(program.queues.size()));
  if (!program.comms.empty() && random.below(4) == 0)
    return queueOfComm(uint32_t(random.below(program.comms.size())), to);
  std::vector<Spot> all = spotsWhere([](const Instruction &it) { return !isCommunication(it) && it.op != Op::Group; });
  Spot spot = pick(all);
  if (at(spot).queue == to)
    return false;
  say(spot, std::string(toString(at(spot).op)) + " moved from queue " + program.queues[at(spot).queue] + " to " +
                program.queues[to]);
  at(spot).queue = to;
  return true;
}

bool Mutator::queueOfComm(uint32_t comm, uint32_t to) {
  if (program.comms[comm].queue == to)
    return false;
  std::vector<Spot> all = spots(true);
  for (Spot spot : all)
    if (at(spot).comm == comm && groupOf(spot))
      return false; // its group may hold communications of others
  what = "communicator " + program.comms[comm].name + " moved from queue " + program.queues[program.comms[comm].queue] +
         " to " + program.queues[to];
  program.comms[comm].queue = to;
  for (Spot spot : all)
    if (at(spot).comm == comm)
      at(spot).queue = to;
  return true;
}

/// A wait or a signal stands elsewhere in its block. (That another instruction does makes a program that
/// computes something else, which no proof about order can know.)
bool Mutator::move() {
  std::vector<Spot> all = spotsWhere([](const Instruction &it) { return it.op == Op::Wait || it.op == Op::Signal; });
  if (all.empty())
    return false;
  Spot spot = pick(all);
  auto to = uint32_t(random.below(list(spot).size()));
  for (uint32_t n = 0; n < list(spot).size(); ++n)
    if (list(spot)[n].op == Op::Group && to > n && to <= n + list(spot)[n].n)
      return false; // into a group
  if (to == spot.n)
    return false;
  say(spot, std::string(toString(at(spot).op)) + " moved to :" + std::to_string(to));
  Instruction it = at(spot);
  list(spot).erase(list(spot).begin() + spot.n);
  list(spot).insert(list(spot).begin() + to, std::move(it));
  return true;
}
