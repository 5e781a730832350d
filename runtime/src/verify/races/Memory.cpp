// V4 and V5: no race over arena bytes, every read sees its value. One sweep in issue order over each expanded entry.
// The arena is cut at every border of an operand, so that each operand is a range of cells. A cell knows whose value it
// holds (buffer and index: the microbatch itself, not its slot, so that a slot reused early shows) and when it was last
// written and read on every queue. Queues run in order; events carry vector clocks (Lamport 1978, Mattern 1989) between
// them. The communications of a group move together: none is ordered before another.
//
// An entry begins with only state and hyperparameters, and must end with all state complete: then any sequence of
// entries begins each of them in the same condition, and one sweep of each proves all.
#include "AccessSweep.h"
#include "verify/Names.h"

#include <algorithm>
#include <map>
#include <set>

using namespace par;
using namespace par::format;
using namespace par::verify;

/// State and hyperparameters hold their values: state in its first slot, or in each slot of a microbatch,
/// hyperparameters in each slot; all else is undefined.
void AccessSweep::begin(const Entry &entry) {
  versioned = std::any_of(entry.runs.begin(), entry.runs.end(), [](const Run &run) { return run.version > 0; });
  findMicrobatches(entry);
  copied.clear();
  cells.assign(borders.size(), {});
  definitions.assign(1, {});
  now = {};
  history = {};
  events.clear();
  for (const Event &event : program.events)
    events.emplace_back(event.depth);
  for (const auto &[root, whole] : roots)
    for (uint32_t slot = 0; slot < wholeSlots(root); ++slot)
      for (uint32_t cell = whole.cells[slot].first; cell < whole.cells[slot].second; ++cell) {
        cells[cell].root = root, cells[cell].index = slot;
        cells[cell].name = mix(slot + 1, program.buffers[root].tensor);
      }
}

/// Slots that outlive an entry, or are set before it: state that calls carry on has one for each microbatch, a
/// hyperparameter one for each batch.
uint32_t AccessSweep::wholeSlots(uint32_t root) const {
  const Buffer &buffer = program.buffers[root];
  return buffer.index == Index::Mb || buffer.kind == BufferKind::Hyper ? uint32_t(buffer.at.size()) : 1;
}

/// Appends the names of a range, each once where it is repeated: other programs may cut it at other borders.
uint64_t AccessSweep::nameOfCells(uint64_t name, uint32_t begin, uint32_t end) const {
  for (uint32_t at = begin; at < end; ++at)
    if (at == begin || cells[at].name != cells[at - 1].name)
      name = mix(name, cells[at].name);
  return name;
}

int64_t AccessSweep::indexOf(const ByteAccess &access, const Run &run) const {
  return access.slot.offset + (access.slot.base == SlotExpr::Mb    ? run.microbatch
                               : access.slot.base == SlotExpr::Ver ? run.version
                                                                   : 0);
}

/// Whether the current work of `queue` comes after the work of another queue, or its own, at `time`.
bool AccessSweep::seen(uint32_t queue, uint32_t other, uint32_t time) const {
  if (groupLeft && other == queue)
    return time <= groupBegan || time == now[queue][queue];
  return time <= now[queue][other];
}

/// Collectives of one group that read parts of one buffer read different ones, or the same: their bytes have one name,
/// so that a part at another place would not show.
Found AccessSweep::readsApart(const Run &run, uint32_t n, std::pair<uint32_t, uint32_t> range) {
  const Instruction &it = program.blocks[run.block].instructions[n];
  for (const auto &[other, known] : groupReads) {
    bool apart = range.second <= known.first || known.second <= range.first;
    if (!apart && range != known && program.blocks[run.block].instructions[other].comm == it.comm)
      return Counterexample{Property::Value,
                            "overlap: two collectives of one group read parts that overlap",
                            {line({&run, other}), line({&run, n})}};
  }
  groupReads.push_back({n, range});
  return std::nullopt;
}

/// A communication does not write bytes that another one of its group reads. (Its own read would hide that one.)
Found AccessSweep::withinGroup(const Run &run, uint32_t n, const std::vector<Placed> &list) {
  uint32_t queue = program.blocks[run.block].instructions[n].queue;
  bool collective = program.blocks[run.block].instructions[n].op == Op::Coll;
  for (const Placed &placed : list) {
    std::pair<uint32_t, uint32_t> range = placed.cells[slotOf(placed.access.slot, uint32_t(placed.cells.size()), run)];
    if (Found found = collective && placed.access.touch == Touch::Read ? readsApart(run, n, range) : std::nullopt)
      return found;
    auto [begin, end] = range;
    for (uint32_t at = begin; placed.access.touch != Touch::Read && at < end; ++at)
      if (!seen(queue, queue, cells[at].reads[queue]))
        return race(run, n, placed, history[queue][cells[at].reads[queue] - 1]);
  }
  return std::nullopt;
}

Found AccessSweep::read(const Run &run, uint32_t n, const Placed &placed, uint64_t &name) {
  const ByteAccess &access = placed.access;
  uint32_t queue = program.blocks[run.block].instructions[n].queue;
  int64_t index = indexOf(access, run);
  const Instruction &it = program.blocks[run.block].instructions[n];
  bool temporary = program.buffers[access.root].kind == BufferKind::Temp;
  auto [begin, end] = placed.cells[slotOf(access.slot, uint32_t(placed.cells.size()), run)];
  for (uint32_t at = begin; at < end; ++at) {
    Cell &cell = cells[at];
    if (cell.root != access.root || cell.index != index)
      return stale(run, n, placed, at);
    if (versioned && it.op != Op::Send &&
        isOtherVersion(cell, run, it.op == Op::Copy)) // the newest value is sent to a copy
      return otherVersion(run, n, cell);
    if (Found found = ofOtherBatch(run, n, placed, cell))
      return found;
    if (!seen(queue, cell.queue, cell.time))
      return race(run, n, placed, definitions[cell.definition]);
    definitions[cell.definition].read = true;
    noteCopied(run, n, placed, at);
    if (!adds(cell, run, it.operands[access.operand].access)) {
      if (Found found = lacksSummand(run, n, placed, cell))
        return found;
      cell.reader = uint32_t(definitions.size() - 1), cell.readByItsOwn = cell.begun == &run;
      taken[access.root] = {&run, cell.summands};
    } else if (cell.reader && !cell.readByItsOwn && definitions[cell.reader].run != &run && temporary)
      return early(run, n, placed, definitions[cell.reader]);
    cell.reads[queue] = now[queue][queue];
  }
  name = nameOfCells(name, begin, end);
  return std::nullopt;
}

Found AccessSweep::write(const Run &run, uint32_t n, const Placed &placed, uint64_t name) {
  const ByteAccess &access = placed.access;
  uint32_t queue = program.blocks[run.block].instructions[n].queue;
  // A reduction in place is a use: its sum is finished.
  bool anew = program.blocks[run.block].instructions[n].operands[access.operand].access == Access::Write;
  // Zeros after a parameter's last row, in padded shards, are no update of it.
  bool fills = program.blocks[run.block].instructions[n].op == Op::Fill;
  auto [begin, end] = placed.cells[slotOf(access.slot, uint32_t(placed.cells.size()), run)];
  for (uint32_t at = begin; at < end; ++at) {
    Cell &cell = cells[at];
    if (!seen(queue, cell.queue, cell.time))
      return race(run, n, placed, definitions[cell.definition]);
    for (uint32_t other = 0; other < program.queues.size(); ++other)
      if (!seen(queue, other, cell.reads[other]))
        return race(run, n, placed, history[other][cell.reads[other] - 1]);
    if (Found found = anew ? leavesUnread(run, n, placed, cell) : std::nullopt)
      return found;
    cell.root = access.touch == Touch::Lose ? noIndex : access.root;
    cell.index = indexOf(access, run);
    if (cell.updater != &run && !fills)
      cell.updater = &run, ++cell.updates;
    cell.definition = uint32_t(definitions.size() - 1);
    cell.name = name;
    cell.begun = anew || cell.begun == &run ? &run : nullptr;
    if (anew)
      cell.reader = 0;
    if (sums[access.root])
      cell.summands = withSummand(anew ? broughtBack(run, access.root) : cell.summands, run.microbatch);
    cell.queue = queue;
    cell.time = now[queue][queue];
    cell.reads = {};
  }
  return std::nullopt;
}

/// A wait sees the latest signal before it in issue order; none is no wait.
void AccessSweep::synchronise(const Run &run, const Instruction &it) {
  Clock &event = events[it.event][slotOf(it.eventSlot, program.events[it.event].depth, run)];
  if (it.op == Op::Signal) {
    event = now[it.queue];
    return;
  }
  for (size_t queue = 0; queue < maxQueues; ++queue)
    now[it.queue][queue] = std::max(now[it.queue][queue], event[queue]);
}

/// No other operand of an instruction may overlap a written one: in place is one `rw` operand.
Found AccessSweep::overlaps(const Run &run, uint32_t n, const std::vector<Placed> &list) {
  for (const Placed &a : list) {
    for (const Placed &b : list) {
      if (a.access.operand >= b.access.operand || (a.access.touch == Touch::Read && b.access.touch == Touch::Read))
        continue;
      auto [begin, end] = a.cells[slotOf(a.access.slot, uint32_t(a.cells.size()), run)];
      auto [from, to] = b.cells[slotOf(b.access.slot, uint32_t(b.cells.size()), run)];
      if (std::max(begin, from) < std::min(end, to))
        return Counterexample{Property::Value,
                              "overlap: operands " + std::to_string(a.access.operand) + " and " +
                                  std::to_string(b.access.operand) +
                                  " of one instruction share bytes, and it writes one of them",
                              {line({&run, n})}};
    }
  }
  return std::nullopt;
}

Found AccessSweep::step(const Run &run, uint32_t n) {
  const Instruction &it = program.blocks[run.block].instructions[n];
  if (it.op == Op::Signal || it.op == Op::Wait) {
    synchronise(run, it);
    return std::nullopt;
  }
  if (it.op == Op::Group) {
    groupLeft = it.n;
    groupBegan = now[it.queue][it.queue];
    groupReads.clear();
    return std::nullopt;
  }
  Found found = access(run, n, placed[run.block][n]);
  groupLeft -= groupLeft > 0;
  return found;
}

/// Everything that one instruction touches.
Found AccessSweep::access(const Run &run, uint32_t n, const std::vector<Placed> &list) {
  const Instruction &it = program.blocks[run.block].instructions[n];
  if (list.empty())
    return std::nullopt;
  ++now[it.queue][it.queue];
  history[it.queue].push_back({&run, n});
  definitions.push_back({&run, n});
  if (Found found = overlaps(run, n, list))
    return found;
  if (Found found = readUnreduced(run, n, list))
    return found;
  if (Found found = groupLeft ? withinGroup(run, n, list) : std::nullopt)
    return found;
  uint64_t name = nameOf(program, it, run);
  for (const Placed &access : list) {
    if (program.buffers[access.access.root].index == Index::Mb && indexOf(access.access, run) != run.microbatch)
      return Counterexample{Property::Value,
                            "microbatch " + std::to_string(run.microbatch) + " touches " +
                                value(access.access.root, indexOf(access.access, run)),
                            {line({&run, n})}};
    if (program.buffers[access.access.root].kind == BufferKind::Hyper && indexOf(access.access, run) != run.version)
      return Counterexample{Property::Value,
                            "version: a run of version " + std::to_string(run.version) + " reads hyperparameter " +
                                value(access.access.root, indexOf(access.access, run)),
                            {line({&run, n})}};
    if (it.op != Op::Coll) // of which each member has a part of its own
      name = mix(name, access.access.offset);
    Found found = access.access.touch == Touch::Read ? read(run, n, access, name)
                                                     : write(run, n, access, mix(name, access.access.operand));
    if (found)
      return found;
  }
  if (it.op == Op::Coll || it.op == Op::Send || it.op == Op::Fetch)
    lineage.entries.back().push_back({&run, n, name});
  return std::nullopt;
}

/// A slot of a state holds its own value at the end of an entry.
Found AccessSweep::holdsItsOwn(const Entry &entry, uint32_t root, uint32_t slot, std::pair<uint32_t, uint32_t> range) {
  for (uint32_t at = range.first; at < range.second; ++at) {
    const Cell &cell = cells[at];
    definitions[cell.definition].read = true;
    if (bundle.manifest.calls > 1 && versioned && isParameter(root) && cell.updates != 0 &&
        cell.updates != bundle.manifest.calls)
      return Counterexample{Property::Value,
                            "version: entry " + entry.name + " ends after " + std::to_string(cell.updates) +
                                " updates of parameter '" + program.buffers[root].tensor + "', of " +
                                std::to_string(bundle.manifest.calls) + " batches",
                            {line(definitions[cell.definition])}};
    if (cell.root == root && (wholeSlots(root) == 1 || cell.index == slot))
      continue;
    Counterexample found{Property::Value,
                         "overwritten: state '" + program.buffers[root].name + "' holds " +
                             (cell.root == noIndex ? "nothing" : value(cell.root, cell.index)) +
                             " at the end of entry " + entry.name,
                         {}};
    if (cell.definition)
      found.notes.push_back(line(definitions[cell.definition]));
    return found;
  }
  return std::nullopt;
}

/// State is whole; notes which results of communication were read.
Found AccessSweep::end(const Entry &entry) {
  for (const auto &[root, whole] : roots) {
    if (program.buffers[root].kind != BufferKind::State)
      continue;
    uint64_t name = 0;
    for (uint32_t slot = 0; slot < wholeSlots(root); ++slot) {
      if (Found found = holdsItsOwn(entry, root, slot, whole.cells[slot]))
        return found;
      name = nameOfCells(name, whole.cells[slot].first, whole.cells[slot].second);
    }
    lineage.entries.back().push_back({nullptr, root, name});
  }
  if (Found found = copiesAreNew())
    return found;
  return receivedIsRead();
}

/// Whether a received value may stay unread: new values of a copy come after every batch, and with asynchronous
/// schedules the last batch before a flush computes with older ones, the first after it with newer ones. Versions tell
/// which.
static bool isNextVersion(const Program &program, const Instruction &it) {
  return std::any_of(it.operands.begin(), it.operands.end(), [&](const Operand &operand) {
    return operand.access == Access::Write && program.buffers[operand.buffer].kind == BufferKind::State;
  });
}

/// The representative of each instruction's value: collectives of one group that write parts of one buffer make one
/// value, of which a reader may need only a part.
static std::vector<uint32_t> findResults(const Program &program, const Block &block) {
  std::vector<uint32_t> results(block.instructions.size());
  std::map<uint32_t, uint32_t> first; // of the group, by buffer
  uint64_t left = 0;
  for (uint32_t n = 0; n < results.size(); ++n) {
    const Instruction &it = block.instructions[n];
    results[n] = n;
    if (it.op == Op::Group) {
      left = it.n;
      first.clear();
    } else if (left > 0) {
      --left;
      for (const Operand &operand : it.operands) {
        uint32_t owner = program.buffers[operand.buffer].of;
        if (it.op == Op::Coll && operand.access == Access::Write && owner != noIndex)
          results[n] = first.try_emplace(owner, n).first->second;
      }
    }
  }
  return results;
}

/// If an entry reads a receive's value of one microbatch, it reads those of all. A receive that it never reads may be
/// for another entry of the same blocks.
Found AccessSweep::receivedIsRead() {
  std::set<std::pair<uint32_t, uint32_t>> read;
  for (size_t i = 1; i < definitions.size(); ++i)
    if (definitions[i].read)
      read.insert({definitions[i].run->block, definitions[i].n});
  for (size_t i = 1; i < definitions.size(); ++i) {
    const Definition &it = definitions[i];
    const Instruction &made = program.blocks[it.run->block].instructions[it.n];
    Op op = made.op;
    if (op == Op::Recv && !it.read && read.count({it.run->block, it.n}) && !(versioned && isNextVersion(program, made)))
      return Counterexample{Property::Value,
                            "lost: what is received for microbatch " + std::to_string(it.run->microbatch) +
                                " is never read, that of others is",
                            {line(it)}};
    if (op == Op::Coll || op == Op::Recv) {
      auto [results, fresh] = resultsOf.try_emplace(it.run->block);
      if (fresh)
        results->second = findResults(program, program.blocks[it.run->block]);
      Definition &any = received.emplace(std::pair(it.run->block, results->second[it.n]), it).first->second;
      any.read = any.read || it.read;
    }
  }
  return std::nullopt;
}

Found AccessSweep::run() {
  place();
  findJoining();
  findCopies();
  for (const Entry &entry : program.entries) {
    begin(entry);
    lineage.entries.emplace_back();
    for (const Run &run : entry.runs)
      for (uint32_t n = 0; n < program.blocks[run.block].instructions.size(); ++n)
        if (Found found = step(run, n))
          return found;
    if (Found found = end(entry))
      return found;
  }
  // A result that one entry leaves unread may be for another entry of the same blocks.
  for (const auto &[place, it] : received)
    if (!it.read)
      return Counterexample{Property::Value, "lost: the result of a communication is never read", {line(it)}};
  return std::nullopt;
}

std::optional<Counterexample> par::verify::checkMemory(const Bundle &bundle, uint32_t rank, Lineage &lineage) {
  return AccessSweep(bundle, rank, lineage).run();
}
