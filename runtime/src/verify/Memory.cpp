//===- Memory.cpp - V4 and V5: no race over arena bytes, every read sees its value --------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One sweep in issue order over each expanded entry. The arena is cut at every border of an operand, so that
// each operand is a range of cells. A cell knows whose value it holds (buffer and index: the microbatch
// itself, not its slot, so that a slot reused early shows) and when it was last written and read on every
// queue. Queues run in order; events carry vector clocks (Lamport 1978, Mattern 1989) between them.
//
// An entry begins with nothing but state and hypers, and must end with all state whole: then any sequence of
// entries begins each of them in the same condition, and one sweep of each proves all.
//
//===----------------------------------------------------------------------===//
#include "Accesses.h"
#include "Names.h"

#include <algorithm>
#include <array>
#include <map>

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
using Clock = std::array<uint32_t, kMaxQueues>;
using Found = std::optional<Counterexample>;

/// One write of an expanded entry; 0 is "before the entry".
struct Definition {
  const Run *run = nullptr;
  uint32_t n = 0;
  bool read = false;
};

struct Cell {
  uint32_t root = kNone; ///< kNone: undefined
  int64_t index = 0;
  uint32_t definition = 0;
  uint32_t queue = 0, time = 0; ///< of the last write
  Clock reads{};                ///< time of the last read on each queue
  uint64_t name = 0;            ///< of its value
};

/// An access with its cells for each slot.
struct Placed {
  ByteAccess access;
  std::vector<std::pair<uint32_t, uint32_t>> cells; ///< [slot]: begin, end
};

class Sweep {
public:
  Sweep(const Bundle &bundle, uint32_t rank, Lineage &lineage)
      : bundle(bundle), rank(rank), program(bundle.programs[bundle.manifest.ranks[rank].role]),
        lineage(lineage) {}
  Found run();

private:
  void place();
  uint64_t address(uint32_t root, uint32_t slot) const;
  std::pair<uint32_t, uint32_t> cellsOf(uint64_t begin, uint64_t bytes) const;
  void begin();
  Found step(const Run &run, uint32_t n);
  void synchronise(const Run &run, const Instruction &it);
  Found overlaps(const Run &run, uint32_t n, const std::vector<Placed> &list);
  Found read(const Run &run, uint32_t n, const Placed &placed, uint64_t &name);
  Found write(const Run &run, uint32_t n, const Placed &placed, uint64_t name);
  Found end(const Entry &entry);
  uint64_t nameOfCells(uint64_t name, uint32_t begin, uint32_t end) const;
  int64_t indexOf(const ByteAccess &access, const Run &run) const;
  std::string value(uint32_t root, int64_t index) const;
  Counterexample stale(const Run &run, uint32_t n, const Placed &placed, uint32_t cell) const;
  Counterexample race(const Run &run, uint32_t n, const Placed &placed, const Definition &other) const;
  std::string line(const Definition &at) const { return describeStep(bundle, rank, *at.run, at.n); }

  const Bundle &bundle;
  uint32_t rank;
  const Program &program;
  Lineage &lineage;
  std::vector<uint64_t> borders;                        ///< cell i is [borders[i], borders[i + 1])
  std::vector<std::vector<std::vector<Placed>>> placed; ///< [block][instruction]
  std::vector<std::pair<uint32_t, Placed>> roots;       ///< state and hypers: buffer, whole slots

  std::vector<Cell> cells;
  std::vector<Definition> definitions;
  std::array<Clock, kMaxQueues> now;                       ///< what each queue has seen
  std::array<std::vector<Definition>, kMaxQueues> history; ///< [queue][time - 1]
  std::vector<std::vector<Clock>> events;                  ///< [event][slot]
  /// Results of communication by block and instruction: read in any run of any entry.
  std::map<std::pair<uint32_t, uint32_t>, Definition> received;
};
} // namespace

/// Where the host space begins among addresses; no arena reaches it.
static constexpr uint64_t kHost = uint64_t(1) << 60;

uint64_t Sweep::address(uint32_t root, uint32_t slot) const {
  const Buffer &buffer = program.buffers[root];
  return buffer.at[slot] + (buffer.space == Space::Host ? kHost : 0);
}

std::pair<uint32_t, uint32_t> Sweep::cellsOf(uint64_t begin, uint64_t bytes) const {
  auto find = [&](uint64_t border) {
    return uint32_t(std::lower_bound(borders.begin(), borders.end(), border) - borders.begin());
  };
  return {find(begin), find(begin + bytes)};
}

/// Collects all accesses, cuts the arenas at their borders and finds each access's cells.
void Sweep::place() {
  auto cut = [&](const ByteAccess &access) {
    for (uint32_t slot = 0; slot < program.buffers[access.root].at.size(); ++slot) {
      uint64_t begin = address(access.root, slot) + access.offset;
      borders.push_back(begin);
      borders.push_back(begin + access.bytes);
    }
  };
  for (const Block &block : program.blocks) {
    placed.emplace_back();
    for (const Instruction &it : block.instructions) {
      Membership own;
      uint32_t members = 1;
      if (it.op == Op::Coll) {
        const Communicator &comm = *bundle.manifest.findCommunicator(program.comms[it.comm].name);
        // A block that no entry runs may name a communicator that this rank is not in.
        if (std::optional<Membership> found = membershipOf(comm, rank)) {
          own = *found;
          members = uint32_t(comm.groups[own.group].size());
        }
      }
      placed.back().emplace_back();
      for (const ByteAccess &access : accessesOf(program, it, own.member, members)) {
        cut(access);
        placed.back().back().push_back({access, {}});
      }
    }
  }
  for (uint32_t root = 0; root < program.buffers.size(); ++root) {
    const Buffer &buffer = program.buffers[root];
    if (buffer.of != kNone || (buffer.kind != BufferKind::State && buffer.kind != BufferKind::Hyper))
      continue;
    roots.push_back({root, {{Touch::Write, 0, root, {}, 0, buffer.bytes()}, {}}});
    cut(roots.back().second.access);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  auto locate = [&](Placed &it) {
    for (uint32_t slot = 0; slot < program.buffers[it.access.root].at.size(); ++slot)
      it.cells.push_back(cellsOf(address(it.access.root, slot) + it.access.offset, it.access.bytes));
  };
  for (auto &block : placed)
    for (auto &instruction : block)
      std::for_each(instruction.begin(), instruction.end(), locate);
  for (auto &root : roots)
    locate(root.second);
}

/// State and hypers hold their values, in their first slot; all else is undefined.
void Sweep::begin() {
  cells.assign(borders.size(), {});
  definitions.assign(1, {});
  now = {};
  history = {};
  events.clear();
  for (const Event &event : program.events)
    events.emplace_back(event.depth);
  for (const auto &[root, whole] : roots)
    for (uint32_t cell = whole.cells[0].first; cell < whole.cells[0].second; ++cell)
      cells[cell].root = root, cells[cell].name = mix(1, program.buffers[root].tensor);
}

/// Appends the names of a range, each once where it is repeated: other programs may cut it at other borders.
uint64_t Sweep::nameOfCells(uint64_t name, uint32_t begin, uint32_t end) const {
  for (uint32_t at = begin; at < end; ++at)
    if (at == begin || cells[at].name != cells[at - 1].name)
      name = mix(name, cells[at].name);
  return name;
}

int64_t Sweep::indexOf(const ByteAccess &access, const Run &run) const {
  return access.slot.offset + (access.slot.base == SlotExpr::Mb    ? run.microbatch
                               : access.slot.base == SlotExpr::Ver ? run.version
                                                                   : 0);
}

/// "'x' of microbatch 3".
std::string Sweep::value(uint32_t root, int64_t index) const {
  const Buffer &buffer = program.buffers[root];
  std::string text = "'" + buffer.name + "'";
  if (buffer.index != Index::None)
    text += (buffer.index == Index::Mb ? " of microbatch " : " of version ") + std::to_string(index);
  return text;
}

Counterexample Sweep::stale(const Run &run, uint32_t n, const Placed &placed, uint32_t at) const {
  const Cell &cell = cells[at];
  std::string wanted = value(placed.access.root, indexOf(placed.access, run));
  Counterexample found{Property::Value, "", {line({&run, n})}};
  std::string bytes =
      "bytes [" + std::to_string(borders[at] % kHost) + ", " + std::to_string(borders[at + 1] % kHost) + ")";
  if (cell.root == kNone && cell.definition == 0)
    found.message =
        "uninitialised: " + bytes + " are read as " + wanted + ", but nothing wrote them in this entry";
  else if (cell.root == kNone)
    found.message =
        "undefined: " + bytes + " are read as " + wanted + ", but a collective left them undefined";
  else
    found.message =
        "overwritten: " + bytes + " are read as " + wanted + ", but hold " + value(cell.root, cell.index);
  if (cell.definition)
    found.notes.push_back(line(definitions[cell.definition]));
  return found;
}

Counterexample Sweep::race(const Run &run, uint32_t n, const Placed &placed, const Definition &other) const {
  return {Property::Race,
          "race: two instructions touch " + value(placed.access.root, indexOf(placed.access, run)) +
              ", and no queue or event orders them",
          {line(other), line({&run, n})}};
}

Found Sweep::read(const Run &run, uint32_t n, const Placed &placed, uint64_t &name) {
  const ByteAccess &access = placed.access;
  uint32_t queue = program.blocks[run.block].instructions[n].queue;
  int64_t index = indexOf(access, run);
  auto [begin, end] = placed.cells[slotOf(access.slot, uint32_t(placed.cells.size()), run)];
  for (uint32_t at = begin; at < end; ++at) {
    Cell &cell = cells[at];
    if (cell.root != access.root || cell.index != index)
      return stale(run, n, placed, at);
    if (cell.time > now[queue][cell.queue])
      return race(run, n, placed, definitions[cell.definition]);
    definitions[cell.definition].read = true;
    cell.reads[queue] = now[queue][queue];
  }
  name = nameOfCells(name, begin, end);
  return std::nullopt;
}

Found Sweep::write(const Run &run, uint32_t n, const Placed &placed, uint64_t name) {
  const ByteAccess &access = placed.access;
  uint32_t queue = program.blocks[run.block].instructions[n].queue;
  auto [begin, end] = placed.cells[slotOf(access.slot, uint32_t(placed.cells.size()), run)];
  for (uint32_t at = begin; at < end; ++at) {
    Cell &cell = cells[at];
    if (cell.time > now[queue][cell.queue])
      return race(run, n, placed, definitions[cell.definition]);
    for (uint32_t other = 0; other < program.queues.size(); ++other)
      if (cell.reads[other] > now[queue][other])
        return race(run, n, placed, history[other][cell.reads[other] - 1]);
    cell.root = access.touch == Touch::Lose ? kNone : access.root;
    cell.index = indexOf(access, run);
    cell.definition = uint32_t(definitions.size() - 1);
    cell.name = name;
    cell.queue = queue;
    cell.time = now[queue][queue];
    cell.reads = {};
  }
  return std::nullopt;
}

/// A wait sees the latest signal before it in issue order; none is no wait.
void Sweep::synchronise(const Run &run, const Instruction &it) {
  Clock &event = events[it.event][slotOf(it.eventSlot, program.events[it.event].depth, run)];
  if (it.op == Op::Signal) {
    event = now[it.queue];
    return;
  }
  for (size_t queue = 0; queue < kMaxQueues; ++queue)
    now[it.queue][queue] = std::max(now[it.queue][queue], event[queue]);
}

/// What one operand of an instruction writes, no other one may touch: in place is one `rw` operand.
Found Sweep::overlaps(const Run &run, uint32_t n, const std::vector<Placed> &list) {
  for (const Placed &a : list) {
    for (const Placed &b : list) {
      if (a.access.operand >= b.access.operand ||
          (a.access.touch == Touch::Read && b.access.touch == Touch::Read))
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

Found Sweep::step(const Run &run, uint32_t n) {
  const Instruction &it = program.blocks[run.block].instructions[n];
  if (it.op == Op::Signal || it.op == Op::Wait) {
    synchronise(run, it);
    return std::nullopt;
  }
  const std::vector<Placed> &list = placed[run.block][n];
  if (list.empty())
    return std::nullopt;
  ++now[it.queue][it.queue];
  history[it.queue].push_back({&run, n});
  definitions.push_back({&run, n});
  if (Found found = overlaps(run, n, list))
    return found;
  uint64_t name = nameOf(program, it, run);
  for (const Placed &access : list) {
    if (program.buffers[access.access.root].index == Index::Mb &&
        indexOf(access.access, run) != run.microbatch)
      return Counterexample{Property::Value,
                            "microbatch " + std::to_string(run.microbatch) + " touches " +
                                value(access.access.root, indexOf(access.access, run)),
                            {line({&run, n})}};
    Found found = access.access.touch == Touch::Read
                      ? read(run, n, access, name)
                      : write(run, n, access, mix(name, access.access.operand));
    if (found)
      return found;
  }
  if (it.op == Op::Coll || it.op == Op::Send)
    lineage.entries.back().push_back({&run, n, name});
  return std::nullopt;
}

/// State is whole; notes which results of communication were read.
Found Sweep::end(const Entry &entry) {
  for (const auto &[root, whole] : roots) {
    if (program.buffers[root].kind != BufferKind::State)
      continue;
    auto [begin, last] = whole.cells[0];
    for (uint32_t at = begin; at < last; ++at) {
      const Cell &cell = cells[at];
      definitions[cell.definition].read = true;
      if (cell.root == root)
        continue;
      Counterexample found{Property::Value,
                           "overwritten: state '" + program.buffers[root].name + "' holds " +
                               (cell.root == kNone ? "nothing" : value(cell.root, cell.index)) +
                               " at the end of entry " + entry.name,
                           {}};
      if (cell.definition)
        found.notes.push_back(line(definitions[cell.definition]));
      return found;
    }
    lineage.entries.back().push_back({nullptr, root, nameOfCells(0, begin, last)});
  }
  for (size_t i = 1; i < definitions.size(); ++i) {
    const Definition &it = definitions[i];
    Op op = program.blocks[it.run->block].instructions[it.n].op;
    if (op == Op::Coll || op == Op::Recv) {
      Definition &any = received.emplace(std::pair(it.run->block, it.n), it).first->second;
      any.read = any.read || it.read;
    }
  }
  return std::nullopt;
}

Found Sweep::run() {
  place();
  for (const Entry &entry : program.entries) {
    begin();
    lineage.entries.emplace_back();
    for (const Run &run : entry.runs)
      for (uint32_t n = 0; n < program.blocks[run.block].instructions.size(); ++n)
        if (Found found = step(run, n))
          return found;
    if (Found found = end(entry))
      return found;
  }
  // One entry may leave unread what another one of the same blocks needs.
  for (const auto &[place, it] : received)
    if (!it.read)
      return Counterexample{Property::Value, "lost: the result of a communication is never read", {line(it)}};
  return std::nullopt;
}

std::optional<Counterexample> par::verify::checkMemory(const Bundle &bundle, uint32_t rank,
                                                       Lineage &lineage) {
  return Sweep(bundle, rank, lineage).run();
}
