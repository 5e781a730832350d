// Breaks what a program means, in one role or in all of them alike.
#include "Alike.h"
#include "Breaker.h"

#include <algorithm>

using namespace par::format;
using namespace par::toy;

std::string_view par::toy::toString(Fault fault) {
  static constexpr std::string_view names[faultKinds] = {
      "drop-reduction", "drop-run",        "drop-summand",  "drop-transfer", "drop-step",    "fewer-reduced",
      "fewer-moved",    "reduce-twice",    "reduce-more",   "other-groups",  "member-order", "trade-peers",
      "move-reduction", "other-reduction", "other-operand", "one-slot",      "step-twice",   "coordinate",
      "call-numbers",   "trade-tensors",   "rectangles",    "other-output"};
  return names[size_t(fault)];
}

/// Instructions of blocks that some entry runs.
std::vector<Breaker::Spot> Breaker::spotsWhere(const std::function<bool(const Instruction &)> &wanted) const {
  std::vector<Spot> found;
  for (uint32_t role = 0; role < bundle.programs.size(); ++role) {
    if (only && role != *only)
      continue;
    const Program &program = bundle.programs[role];
    std::vector<bool> runs(program.blocks.size());
    for (const Entry &entry : program.entries)
      for (const Run &run : entry.runs)
        runs[run.block] = true;
    for (uint32_t block = 0; block < program.blocks.size(); ++block)
      for (uint32_t n = 0; runs[block] && n < program.blocks[block].instructions.size(); ++n)
        if (wanted(program.blocks[block].instructions[n]))
          found.push_back({role, block, n});
  }
  return found;
}

bool Breaker::choose(const std::function<bool(const Instruction &)> &wanted) {
  std::vector<Spot> spots = spotsWhere(wanted);
  if (spots.empty())
    return false;
  spot = spots[random.below(spots.size())];
  const Program &program = bundle.programs[spot.role];
  const Instruction &it = at(spot);
  what = instructionId(program, spot.block, spot.n) + " " + std::string(toString(it.op));
  if (it.op == Op::Kernel || it.op == Op::Call)
    what += " " + (it.op == Op::Kernel ? program.kernels[it.kernel].name : program.calls[it.call].name);
  for (const Operand &operand : it.operands)
    what += " " + describe(program, operand);
  return true;
}

/// All sides of the chosen communication, or only the chosen instruction if it does not communicate. Later ones of a
/// block first.
std::vector<Breaker::Spot> Breaker::alike() const {
  const Instruction &chosen = bundle.programs[spot.role].blocks[spot.block].instructions[spot.n];
  if (chosen.op != Op::Coll && chosen.op != Op::Send && chosen.op != Op::Recv)
    return {spot};
  std::vector<Spot> found = spotsWhere([&](const Instruction &it) {
    return (it.op == Op::Coll || it.op == Op::Send || it.op == Op::Recv) &&
           (it.op == Op::Coll) == (chosen.op == Op::Coll) && it.tag == chosen.tag;
  });
  std::reverse(found.begin(), found.end());
  return found;
}

void Breaker::erase(const Spot &place) {
  std::vector<Instruction> &list = bundle.programs[place.role].blocks[place.block].instructions;
  Instruction *group = groupOf(place);
  bool alone = group && --group->n == 0;
  list.erase(list.begin() + place.n);
  if (alone)
    list.erase(list.begin() + place.n - 1);
}

Instruction *Breaker::groupOf(const Spot &place) {
  std::vector<Instruction> &list = bundle.programs[place.role].blocks[place.block].instructions;
  for (uint32_t n = place.n; n-- > 0;)
    if (list[n].op == Op::Group)
      return n + list[n].n >= place.n ? &list[n] : nullptr;
  return nullptr;
}

/// Puts an instruction before the place; into its group, if it is in one.
bool Breaker::insert(const Spot &place, Instruction it) {
  if (Instruction *group = groupOf(place)) {
    if (group->n == maxGroup)
      return false;
    ++group->n;
  }
  std::vector<Instruction> &list = bundle.programs[place.role].blocks[place.block].instructions;
  list.insert(list.begin() + place.n, std::move(it));
  return true;
}

bool Breaker::apply(Fault fault) {
  switch (fault) {
  case Fault::DropReduction:
    return drop([](const Instruction &it) { return it.op == Op::Coll; });
  case Fault::DropTransfer:
    return drop([](const Instruction &it) { return it.op == Op::Send || it.op == Op::Recv || it.op == Op::Copy; });
  case Fault::DropSummand:
    return drop([](const Instruction &it) {
      return (it.op == Op::Kernel || it.op == Op::Call) && std::ranges::any_of(it.operands, [](const Operand &operand) {
               return operand.access == Access::ReadWrite || operand.access == Access::Accumulate;
             });
    });
  case Fault::DropStep:
    return drop([](const Instruction &it) { return it.op == Op::Kernel || it.op == Op::Call || it.op == Op::Fill; });
  case Fault::DropRun:
    return dropRun();
  case Fault::FewerReduced:
    return fewer(true);
  case Fault::FewerMoved:
    return fewer(false);
  case Fault::ReduceTwice:
    return reduceTwice();
  case Fault::ReduceMore:
    return reduceMore();
  case Fault::OtherGroups:
    return otherGroups();
  case Fault::MemberOrder:
    return memberOrder();
  case Fault::TradePeers:
    return tradePeers();
  case Fault::MoveReduction:
    return moveReduction();
  case Fault::OtherReduction:
    return otherReduction();
  case Fault::OtherOperand:
    return otherOperand();
  case Fault::OneSlot:
    return oneSlot();
  case Fault::StepTwice:
    return stepTwice();
  case Fault::Coordinate:
    return coordinate();
  case Fault::CallNumbers:
    return callNumbers();
  case Fault::TradeTensors:
    return tradeTensors();
  case Fault::Rectangles:
    return rectangles();
  case Fault::OtherOutput:
    return otherOutput();
  }
  return false;
}

std::optional<Bundle> par::toy::breakAlike(const Bundle &bundle, Fault fault, std::optional<uint32_t> rank,
                                           Random &random, std::string &what) {
  Bundle changed = bundle;
  std::optional<uint32_t> only;
  if (rank)
    only = giveOwnProgram(changed, *rank);
  Breaker breaker(changed, only, random);
  if (!breaker.apply(fault))
    return std::nullopt;
  what = std::string(toString(fault)) + (rank ? " on rank " + std::to_string(*rank) : " on all") + ": " + breaker.what;
  return changed;
}
