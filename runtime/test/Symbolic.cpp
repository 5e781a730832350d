// Runs a bundle on names of values.
#include "Symbolic.h"

#include <bit>
#include <deque>
#include <map>

using namespace par::format;
using namespace par::toy;

namespace {
/// Order-dependent hash of numbers (splitmix64's finaliser as the mixing step).
class Hash {
public:
  Hash &add(uint64_t n) {
    state = (state ^ n) + 0x9e3779b97f4a7c15;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
    state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
    state ^= state >> 31;
    return *this;
  }
  Hash &add(std::string_view text) {
    for (unsigned char c : text)
      add(uint64_t(c) + 1);
    return add(text.size());
  }
  uint64_t get() const { return state; }

private:
  uint64_t state = 0;
};

/// Bytes [offset, offset + length) of the value called `name`; name 0: undefined.
struct Piece {
  uint64_t name, offset, length;
};
using Content = std::vector<Piece>;

uint64_t hashOf(const Content &content) {
  Hash hash;
  for (const Piece &piece : content)
    hash.add(piece.name).add(piece.offset).add(piece.length);
  return hash.get();
}

/// One arena.
class Memory {
public:
  Content read(uint64_t begin, uint64_t length) const;
  void write(uint64_t begin, const Content &content);

private:
  void cut(uint64_t at);
  std::map<uint64_t, Piece> pieces; ///< by address
};

/// One rank: a position in its list and what it has posted.
struct SymbolicRank {
  uint32_t rank = 0;
  const Program *program = nullptr;
  Memory dev, host;
  uint64_t log = 0; ///< hash of all fetches

  const Entry *entry = nullptr;
  size_t run = 0, n = 0;
  bool posted = false;                                     ///< the communication at (run, n) has given its part
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> count; ///< collectives given, by communicator and group
};

class Symbolic {
public:
  explicit Symbolic(const Bundle &bundle);
  std::vector<uint64_t> run();

private:
  bool runEntry(const std::string &name, uint64_t step);
  bool advance(SymbolicRank &player, uint64_t step);
  void local(SymbolicRank &player, const Run &run, const Instruction &it, uint64_t step);
  void compute(SymbolicRank &player, const Run &run, const Instruction &it, uint64_t what,
               const std::vector<uint64_t> &bytes);
  void give(SymbolicRank &player, const Run &run, const Instruction &it);
  bool complete(const SymbolicRank &player, const Run &run, const Instruction &it) const;
  void take(SymbolicRank &player, const Run &run, const Instruction &it);

  struct Key {
    uint32_t comm, group, from, to;
    uint64_t k;
    auto operator<=>(const Key &) const = default;
  };
  Key keyOf(const SymbolicRank &player, const Run &run, const Instruction &it) const;
  const Communicator &commOf(const SymbolicRank &player, const Instruction &it, uint32_t &index) const;
  Content get(const SymbolicRank &player, const Run &run, const Operand &operand, uint64_t offset,
              uint64_t bytes) const;
  void put(SymbolicRank &player, const Run &run, const Operand &operand, uint64_t offset, const Content &content);

  const Bundle &bundle;
  std::vector<SymbolicRank> players;
  std::map<Key, std::deque<Content>> channels;         ///< sent and not yet received
  std::map<Key, std::map<uint32_t, Content>> meetings; ///< what members gave to a collective
};
} // namespace

void Memory::cut(uint64_t at) {
  auto it = pieces.upper_bound(at);
  if (it == pieces.begin())
    return;
  --it;
  Piece &piece = it->second;
  uint64_t inside = at - it->first;
  if (inside == 0 || inside >= piece.length)
    return;
  pieces[at] = {piece.name, piece.offset + inside, piece.length - inside};
  piece.length = inside;
}

Content Memory::read(uint64_t begin, uint64_t length) const {
  Content content;
  auto add = [&](Piece piece) {
    if (!content.empty() && content.back().name == piece.name &&
        (piece.name == 0 || content.back().offset + content.back().length == piece.offset))
      content.back().length += piece.length;
    else
      content.push_back(piece);
  };
  uint64_t at = begin, end = begin + length;
  auto it = pieces.upper_bound(begin);
  if (it != pieces.begin())
    --it;
  for (; it != pieces.end() && it->first < end; ++it) {
    uint64_t from = std::max(it->first, at), to = std::min(it->first + it->second.length, end);
    if (from >= to)
      continue;
    if (from > at)
      add({0, 0, from - at});
    add({it->second.name, it->second.offset + (from - it->first), to - from});
    at = to;
  }
  if (at < end)
    add({0, 0, end - at});
  return content;
}

void Memory::write(uint64_t begin, const Content &content) {
  uint64_t length = 0;
  for (const Piece &piece : content)
    length += piece.length;
  cut(begin);
  cut(begin + length);
  pieces.erase(pieces.lower_bound(begin), pieces.lower_bound(begin + length));
  for (const Piece &piece : content) {
    pieces[begin] = piece;
    begin += piece.length;
  }
}

Symbolic::Symbolic(const Bundle &bundle) : bundle(bundle) {
  for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank) {
    SymbolicRank &player = players.emplace_back();
    player.rank = rank;
    player.program = &bundle.programs[bundle.manifest.ranks[rank].role];
    for (const Buffer &buffer : player.program->buffers) {
      if (buffer.kind != BufferKind::State || buffer.of != noIndex)
        continue;
      Hash name;
      name.add("state").add(buffer.tensor);
      for (int64_t start : rectangleOf(bundle.manifest.findTensor(buffer.tensor)->layout, rank)->start)
        name.add(uint64_t(start));
      for (uint64_t at : buffer.at)
        (buffer.space == Space::Dev ? player.dev : player.host).write(at, {{name.get(), 0, buffer.bytes()}});
    }
  }
}

Content Symbolic::get(const SymbolicRank &player, const Run &run, const Operand &operand, uint64_t offset,
                      uint64_t bytes) const {
  const Memory &memory = player.program->buffers[operand.buffer].space == Space::Dev ? player.dev : player.host;
  return memory.read(addressOf(*player.program, operand, run) + offset, bytes);
}

void Symbolic::put(SymbolicRank &player, const Run &run, const Operand &operand, uint64_t offset,
                   const Content &content) {
  Memory &memory = player.program->buffers[operand.buffer].space == Space::Dev ? player.dev : player.host;
  memory.write(addressOf(*player.program, operand, run) + offset, content);
}

/// Reads all read operands, then writes a new value to each written one. An accumulated value is a sum of names: its
/// order does not count.
void Symbolic::compute(SymbolicRank &player, const Run &run, const Instruction &it, uint64_t what,
                       const std::vector<uint64_t> &bytes) {
  Hash inputs;
  inputs.add(what);
  for (size_t i = 0; i < it.operands.size(); ++i)
    if (it.operands[i].access == Access::Read || it.operands[i].access == Access::ReadWrite)
      inputs.add(hashOf(get(player, run, it.operands[i], 0, bytes[i])));
  for (size_t i = 0; i < it.operands.size(); ++i) {
    if (it.operands[i].access == Access::Read)
      continue;
    uint64_t name = Hash(inputs).add(i).get();
    if (it.operands[i].access == Access::Accumulate) {
      Content old = get(player, run, it.operands[i], 0, bytes[i]);
      name += old.size() == 1 && old[0].offset == 0 ? old[0].name : hashOf(old);
    }
    put(player, run, it.operands[i], 0, {{name, 0, bytes[i]}});
  }
}

void Symbolic::local(SymbolicRank &player, const Run &run, const Instruction &it, uint64_t step) {
  const Program &program = *player.program;
  Hash what;
  what.add(uint64_t(it.op));
  std::vector<uint64_t> bytes;
  switch (it.op) {
  case Op::Kernel: {
    const Kernel &kernel = program.kernels[it.kernel];
    what.add(kernel.symbol).add(kernel.builtin);
    for (const Imm &imm : it.imms)
      what.add(uint64_t(imm.value) +
               (imm.axis.empty() ? 0 : *coordinateOf(bundle.manifest, player.rank, imm.axis) * uint64_t(imm.scale)));
    for (const KernelOperand &operand : kernel.operands)
      bytes.push_back(operand.bytes);
    return compute(player, run, it, what.get(), bytes);
  }
  case Op::Call: {
    const Call &call = program.calls[it.call];
    uint64_t size = sizeOf(call.type);
    what.add(call.name);
    bytes = {call.extent('a') * size, call.extent('b') * size};
    if (call.bias)
      bytes.push_back(uint64_t(call.n) * size);
    bytes.push_back(call.extent('c') * size);
    if (call.workspace)
      bytes.push_back(call.workspace);
    return compute(player, run, it, what.get(), bytes);
  }
  case Op::Copy: {
    uint64_t size = it.n * sizeOf(program.buffers[it.operands[0].buffer].type);
    return put(player, run, it.operands[1], 0, get(player, run, it.operands[0], 0, size));
  }
  case Op::Fill:
    what.add(std::bit_cast<uint64_t>(it.value));
    return compute(player, run, it, what.get(), {it.n * sizeOf(program.buffers[it.operands[0].buffer].type)});
  case Op::Feed: {
    const Input &input = *bundle.manifest.findInput(it.name);
    what.add(it.name).add(step).add(input.microbatched ? uint64_t(run.microbatch) : 0);
    for (int64_t start : rectangleOf(layoutFor(input, player.rank), player.rank)->start)
      what.add(uint64_t(start));
    return compute(player, run, it, what.get(), {program.buffers[it.operands[0].buffer].bytes()});
  }
  case Op::Fetch: {
    uint64_t size = program.buffers[it.operands[0].buffer].bytes();
    player.log = Hash().add(player.log).add(it.name).add(hashOf(get(player, run, it.operands[0], 0, size))).get();
    return;
  }
  default:
    return;
  }
}

const Communicator &Symbolic::commOf(const SymbolicRank &player, const Instruction &it, uint32_t &index) const {
  const std::string &name = player.program->comms[it.comm].name;
  for (index = 0; bundle.manifest.communicators[index].name != name;)
    ++index;
  return bundle.manifest.communicators[index];
}

/// Channel of a send or receive; meeting of a collective (its k counts what this rank has given before).
Symbolic::Key Symbolic::keyOf(const SymbolicRank &player, const Run &run, const Instruction &it) const {
  uint32_t index = 0;
  Membership own = *membershipOf(commOf(player, it, index), player.rank);
  if (it.op == Op::Coll) {
    auto count = player.count.find({index, own.group});
    return {index, own.group, noIndex, noIndex, count == player.count.end() ? 0 : count->second};
  }
  uint32_t peer = it.peer[uint64_t(run.microbatch) % it.peer.size()];
  return {index, own.group, it.op == Op::Send ? own.member : peer, it.op == Op::Send ? peer : own.member, 0};
}

void Symbolic::give(SymbolicRank &player, const Run &run, const Instruction &it) {
  Key key = keyOf(player, run, it);
  uint64_t part = it.n * sizeOf(it.type);
  if (it.op == Op::Send)
    channels[key].push_back(get(player, run, it.operands[0], 0, part));
  if (it.op != Op::Coll)
    return;
  uint32_t index = 0;
  const Communicator &comm = commOf(player, it, index);
  Membership own = *membershipOf(comm, player.rank);
  bool gather = it.coll == CollKind::AllGather;
  bool parted = it.coll == CollKind::ReduceScatter || it.coll == CollKind::AllToAll;
  uint64_t offset = gather && it.operands.size() == 1 ? part * own.member : 0;
  meetings[key][own.member] =
      get(player, run, it.operands[0], offset, parted ? part * comm.groups[own.group].size() : part);
}

bool Symbolic::complete(const SymbolicRank &player, const Run &run, const Instruction &it) const {
  if (it.op == Op::Send)
    return true;
  Key key = keyOf(player, run, it);
  if (it.op == Op::Recv) {
    auto found = channels.find(key);
    return found != channels.end() && !found->second.empty();
  }
  auto found = meetings.find(key);
  return found != meetings.end() &&
         found->second.size() == bundle.manifest.communicators[key.comm].groups[key.group].size();
}

void Symbolic::take(SymbolicRank &player, const Run &run, const Instruction &it) {
  Key key = keyOf(player, run, it);
  uint64_t part = it.n * sizeOf(it.type);
  if (it.op == Op::Recv) {
    put(player, run, it.operands[0], 0, channels[key].front());
    channels[key].pop_front();
  }
  if (it.op != Op::Coll)
    return;
  ++player.count[{key.comm, key.group}];
  const std::map<uint32_t, Content> &given = meetings[key];
  Membership own = *membershipOf(bundle.manifest.communicators[key.comm], player.rank);
  const Operand &result = it.operands.back();
  Hash all;
  all.add(uint64_t(it.coll)).add(uint64_t(it.reduction)).add(it.root);
  for (const auto &[member, content] : given)
    all.add(hashOf(content));
  bool inPlace = it.operands.size() == 1;
  if (given.size() == 1) // whatever the kind and the reduction, a single rank keeps its value
    return put(player, run, result, 0, given.begin()->second);
  switch (it.coll) {
  case CollKind::AllGather:
    for (const auto &[member, content] : given)
      put(player, run, result, part * member, content);
    return;
  case CollKind::ReduceScatter:
    if (inPlace)
      put(player, run, result, 0, {{0, 0, part * given.size()}});
    return put(player, run, result, inPlace ? part * own.member : 0, {{all.add(own.member).get(), 0, part}});
  case CollKind::AllToAll:
    return put(player, run, result, 0, {{all.add(own.member).get(), 0, part * given.size()}});
  case CollKind::Broadcast:
    return put(player, run, result, 0, given.at(it.root));
  case CollKind::Reduce:
    return put(player, run, result, 0, {{own.member == it.root ? all.get() : 0, 0, part}});
  case CollKind::AllReduce:
    return put(player, run, result, 0, {{all.get(), 0, part}});
  }
}

/// One instruction, or a whole group; false when it must wait.
bool Symbolic::advance(SymbolicRank &player, uint64_t step) {
  while (player.run < player.entry->runs.size() &&
         player.n == player.program->blocks[player.entry->runs[player.run].block].instructions.size())
    ++player.run, player.n = 0;
  if (player.run == player.entry->runs.size())
    return false;
  const Run &run = player.entry->runs[player.run];
  const std::vector<Instruction> &list = player.program->blocks[run.block].instructions;
  const Instruction &it = list[player.n];
  size_t first = player.n, last = player.n + 1;
  if (it.op == Op::Group)
    ++first, last += it.n;
  if (it.op != Op::Group && it.op != Op::Coll && it.op != Op::Send && it.op != Op::Recv) {
    local(player, run, it, step);
    ++player.n;
    return true;
  }
  // Collectives of one group on one communicator are told apart by counting them one after the other.
  auto counts = player.count;
  auto walk = [&](auto &&each) {
    bool all = true;
    for (size_t i = first; i < last; ++i) {
      uint32_t index = 0;
      if (isSentToNobody(commOf(player, list[i], index), list[i], run.microbatch, player.rank))
        continue;
      all = each(list[i]) && all;
      if (list[i].op == Op::Coll) {
        Key key = keyOf(player, run, list[i]);
        ++player.count[{key.comm, key.group}];
      }
    }
    player.count = counts;
    return all;
  };
  if (!player.posted)
    walk([&](const Instruction &one) { return give(player, run, one), true; });
  player.posted = true;
  if (!walk([&](const Instruction &one) { return complete(player, run, one); }))
    return false;
  for (size_t i = first; i < last; ++i)
    if (list[i].op != Op::Send)
      take(player, run, list[i]);
  player.posted = false;
  player.n = last;
  return true;
}

bool Symbolic::runEntry(const std::string &name, uint64_t step) {
  for (SymbolicRank &player : players) {
    player.entry = &player.program->entries[player.program->findEntry(name)];
    player.run = player.n = 0;
    for (const Buffer &buffer : player.program->buffers)
      for (size_t slot = 0; buffer.kind == BufferKind::Hyper && buffer.of == noIndex && slot < buffer.at.size(); ++slot)
        (buffer.space == Space::Dev ? player.dev : player.host)
            .write(buffer.at[slot],
                   {{Hash().add("hyper").add(buffer.tensor).add(step).add(slot).get(), 0, buffer.bytes()}});
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (SymbolicRank &player : players)
      while (advance(player, step))
        moved = true;
  }
  for (const SymbolicRank &player : players)
    if (player.run != player.entry->runs.size())
      return false;
  return true;
}

std::vector<uint64_t> Symbolic::run() {
  uint64_t step = 0;
  for (const Entry &entry : bundle.programs[0].entries)
    for (int repeat = 0; repeat < 2; ++repeat)
      if (!runEntry(entry.name, ++step))
        return {};
  std::vector<uint64_t> ends;
  for (const SymbolicRank &player : players) {
    Hash hash;
    hash.add(player.log);
    for (const Tensor &tensor : bundle.manifest.tensors)
      for (const Buffer &buffer : player.program->buffers)
        if (buffer.kind == BufferKind::State && buffer.of == noIndex && buffer.tensor == tensor.name)
          for (uint64_t at : buffer.at)
            hash.add(hashOf((buffer.space == Space::Dev ? player.dev : player.host).read(at, buffer.bytes())));
    ends.push_back(hash.get());
  }
  return ends;
}

std::vector<uint64_t> par::toy::runSymbolically(const Bundle &bundle) { return Symbolic(bundle).run(); }
