// Mutations of where values lie.
#include "Mutator.h"

#include <algorithm>

using namespace par::format;
using namespace par::toy;

/// An operand names another slot of its buffer.
bool Mutator::slot(Spot spot) {
  Instruction &it = at(spot);
  Operand &operand = it.operands[random.below(it.operands.size())];
  if (depthOf(program, operand.buffer) < 2)
    return false;
  std::string before = describe(program, operand);
  if (random.below(2))
    operand.slot.offset += random.below(2) || operand.slot.base == SlotExpr::Fixed ? 1 : -1;
  else
    operand.slot = {SlotExpr::Fixed, int64_t(random.below(depthOf(program, operand.buffer)))};
  say(spot, "'" + before + "' became '" + describe(program, operand) + "'");
  return true;
}

/// A buffer, or an event, loses its last slot.
bool Mutator::depth() {
  std::vector<uint32_t> buffers = usedBuffers(true);
  if (Event *event =
          random.below(3) || program.events.empty() ? nullptr : &program.events[random.below(program.events.size())];
      event && event->depth > 1) {
    what = "event '" + event->name + "' has a depth of " + std::to_string(--event->depth);
    return true;
  }
  if (buffers.empty())
    return false;
  Buffer &buffer = program.buffers[pick(buffers)];
  buffer.at.pop_back();
  what = "'" + buffer.name + "' has a depth of " + std::to_string(buffer.at.size());
  return true;
}

/// Range of the arena in which slots of a buffer may be.
static std::pair<uint64_t, uint64_t> roomOf(const Program &program, const Buffer &buffer) {
  if (buffer.space == Space::Host)
    return {0, program.arena.host};
  bool state = buffer.kind == BufferKind::State;
  return {state ? 0 : program.arena.state, state ? program.arena.state : program.arena.deviceBytes()};
}

/// A slot moves by a few lines of its own size.
bool Mutator::offset() {
  std::vector<uint32_t> buffers = usedBuffers(false);
  Buffer &buffer = program.buffers[pick(buffers)];
  uint64_t &at = buffer.at[random.below(buffer.at.size())];
  uint64_t lines = (buffer.bytes() + arenaAlignment - 1) / arenaAlignment,
           by = (1 + random.below(lines)) * arenaAlignment;
  auto [begin, end] = roomOf(program, buffer);
  bool up = random.below(2) && at + by + buffer.bytes() <= end;
  if (!up && at < begin + by)
    return false;
  what = "'" + buffer.name + "' moved from " + std::to_string(at) + " by " + (up ? "" : "-") + std::to_string(by);
  at = up ? at + by : at - by;
  return true;
}

/// A slot moves onto the begin of another buffer's slot, or of another slot of its own.
bool Mutator::place() {
  std::vector<uint32_t> buffers = usedBuffers(false);
  Buffer &buffer = program.buffers[pick(buffers)];
  const Buffer &target = program.buffers[pick(buffers)];
  uint64_t &at = buffer.at[random.below(buffer.at.size())], to = pick(target.at);
  bool state = buffer.kind == BufferKind::State;
  if (to == at || state != (target.kind == BufferKind::State) || buffer.space != target.space ||
      to + buffer.bytes() > roomOf(program, buffer).second)
    return false;
  what =
      "'" + buffer.name + "' moved from " + std::to_string(at) + " onto '" + target.name + "' at " + std::to_string(to);
  at = to;
  return true;
}

/// An alias lies elsewhere in its buffer, or in another one.
bool Mutator::alias() {
  std::vector<uint32_t> aliases;
  for (Spot spot : spots(false))
    for (const Operand &operand : at(spot).operands)
      if (program.buffers[operand.buffer].of != noIndex)
        aliases.push_back(operand.buffer);
  if (aliases.empty())
    return false;
  Buffer &buffer = program.buffers[pick(aliases)];
  uint32_t of = random.below(2) ? buffer.of : pick(usedBuffers(false));
  const Buffer &owner = program.buffers[of];
  uint64_t size = sizeOf(buffer.type);
  if (owner.space != buffer.space || owner.index != buffer.index || owner.bytes() < buffer.bytes())
    return false;
  uint64_t offset = random.below((owner.bytes() - buffer.bytes()) / size + 1) * size;
  if (of == buffer.of && offset == buffer.offset)
    return false;
  what = "alias '" + buffer.name + "' of '" + program.buffers[buffer.of].name + "' at " +
         std::to_string(buffer.offset) + " became one of '" + owner.name + "' at " + std::to_string(offset);
  buffer.of = of, buffer.offset = offset;
  return true;
}
