// All programs of an entry at once, on expressions.
#include "JointRun.h"
#include "verify/Names.h"

#include <algorithm>

using namespace par;
using namespace par::format;
using namespace par::verify;

JointRun::JointRun(const Bundle &bundle, const Actors &actors, const std::string &entry)
    : bundle(bundle), classes(uint32_t(bundle.manifest.ranks.size())), microbatches(bundle.manifest.microbatches),
      playerOf(actors.of), entry(entry) {
  players.resize(actors.role.size());
  for (uint32_t rank = 0; rank < playerOf.size(); ++rank)
    players[playerOf[rank]].ranks.push_back(rank);
  for (uint32_t i = 0; i < players.size(); ++i) {
    players[i].role = actors.role[i];
    players[i].program = &bundle.programs[actors.role[i]];
    players[i].entry = &players[i].program->entries[players[i].program->findEntry(entry)];
    begin(players[i]);
  }
  meet();
}

static uint64_t keyOf(const Rectangle *part) {
  uint64_t key = 2;
  if (!part)
    return RankClasses::noKey;
  for (size_t dim = 0; dim < part->start.size(); ++dim)
    key = mix(mix(key, uint64_t(part->start[dim])), uint64_t(part->size[dim]));
  return key;
}

/// Spread of a tensor and its copies: each rank has one of them. Padding after the end is each rank's own.
RankClasses::Spread JointRun::spreadOf(const Tensor &tensor) {
  const std::string &name = tensor.kind == TensorKind::Copy ? tensor.of : tensor.name;
  auto [it, fresh] = spreads.try_emplace("tensor " + name, 0);
  if (!fresh)
    return it->second;
  std::vector<uint64_t> keys(playerOf.size(), RankClasses::noKey);
  if (copies.empty())
    for (const Tensor &other : bundle.manifest.tensors)
      copies[other.kind == TensorKind::Copy ? other.of : other.name].push_back(&other);
  for (const Tensor *other : copies[name])
    for (const Rectangle &part : other->layout.parts)
      for (uint32_t rank : part.ranks)
        keys[rank] = std::ranges::count(part.size, 0) ? mix(3, rank) : keyOf(&part);
  return it->second = classes.byKeys(keys);
}

RankClasses::Spread JointRun::spreadOf(const Input &input) {
  auto [it, fresh] = spreads.try_emplace("input " + input.name, 0);
  if (!fresh)
    return it->second;
  std::vector<uint64_t> keys(playerOf.size(), RankClasses::noKey);
  for (const Layout *layout : {&input.layout})
    for (const Rectangle &part : layout->parts)
      for (uint32_t rank : part.ranks)
        keys[rank] = keyOf(&part);
  for (const Layout &layout : input.more)
    for (const Rectangle &part : layout.parts)
      for (uint32_t rank : part.ranks)
        keys[rank] = keyOf(&part);
  return it->second = classes.byKeys(keys);
}

RankClasses::Spread JointRun::spreadOf(const std::string &axis) {
  auto [it, fresh] = spreads.try_emplace("axis " + axis, 0);
  if (!fresh)
    return it->second;
  std::vector<uint64_t> keys;
  for (uint32_t rank = 0; rank < playerOf.size(); ++rank)
    keys.push_back(coordinateOf(bundle.manifest, rank, axis).value_or(0));
  return it->second = classes.byKeys(keys);
}

/// State and hyperparameters hold their values, as in V5; a copy holds its tensor's.
void JointRun::begin(Cursor &player) {
  const Program &program = *player.program;
  player.made.assign(1, {});
  for (const Block &block : program.blocks)
    player.own.push_back(computesOwn(program, block));
  player.slots.resize(program.buffers.size());
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer &buffer = program.buffers[i];
    if (buffer.of != noIndex)
      continue;
    player.slots[i].resize(buffer.at.size());
    const Tensor *tensor = buffer.kind == BufferKind::State ? bundle.manifest.findTensor(buffer.tensor) : nullptr;
    for (uint32_t slot = 0; slot < buffer.at.size(); ++slot) {
      uint64_t name = mix(mix(mix(0, uint64_t(buffer.kind)), slot),
                          tensor && tensor->kind == TensorKind::Copy ? tensor->of : buffer.tensor);
      if (buffer.kind == BufferKind::Hyper || (tensor && tensor->kind == TensorKind::Counter))
        counters.insert(name);
      if (buffer.bytes() > 0 && (tensor || buffer.kind == BufferKind::Hyper))
        initial.insert(name), player.slots[i][slot] = whole({name, 0, tensor ? spreadOf(*tensor) : 0}, buffer.bytes());
    }
  }
}

Content &JointRun::slotOf(Cursor &player, const Run &run, const Operand &operand, uint64_t &offset) {
  const Program &program = *player.program;
  const Buffer &buffer = program.buffers[operand.buffer];
  uint32_t root = buffer.of == noIndex ? operand.buffer : buffer.of;
  offset = buffer.of == noIndex ? 0 : buffer.offset;
  return player.slots[root][format::slotOf(operand.slot, depthOf(program, root), run)];
}

Content JointRun::read(Cursor &player, const Run &run, uint32_t n, uint32_t operand, uint64_t bytes) {
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  uint64_t offset = 0;
  const Content &slot = slotOf(player, run, it.operands[operand], offset);
  Content content = cut(slot, offset, offset + bytes);
  for (const Piece &piece : content)
    player.made[piece.made].read = true;
  if (!complaint)
    complaint = ofLaterMicrobatch(player, run, n, operand, content);
  return content;
}

void JointRun::noteUsers(Cursor &player, const Content &content, size_t first) {
  std::pair made(uint32_t(first), uint32_t(player.made.size()));
  for (const Piece &piece : content)
    if (auto &users = player.made[piece.made].users; piece.made && (users.empty() || users.back() != made))
      users.push_back(made);
}

/// Whether a value is computed from one that a run of an earlier microbatch has left, or, in place, from such a sum.
bool JointRun::addsUp(const Cursor &player, const Run &run, const Content &content, bool inPlace) const {
  return std::any_of(content.begin(), content.end(), [&](const Piece &piece) {
    const Made &made = player.made[piece.made];
    const Buffer *buffer =
        piece.made ? &player.program->buffers[instruction(player, made).operands[made.operand].buffer] : nullptr;
    bool kept = buffer && buffer->kind == BufferKind::Temp && buffer->index == Index::None;
    return kept && ((inPlace && made.adds) || (player.own[made.run->block] && made.run->microbatch < run.microbatch));
  });
}

/// Whether a value is made only of counters, hyperparameters and constants.
bool JointRun::counts(const Cursor &player, const Content &content) const {
  return std::ranges::all_of(content, [&](const Piece &piece) {
    return player.made[piece.made].counts || isConstant(piece.term) || counters.count(piece.term.name);
  });
}

/// The microbatches of which a run's operand has summands. A sum of all microbatches belongs to the batch: for one
/// microbatch it is a constant.
uint32_t JointRun::microbatchesOf(const Cursor &player, const Run &run, const Content &content, bool adds) {
  uint32_t set = 0;
  for (const Piece &piece : content)
    if (adds || !player.own[run.block] || player.made[piece.made].run == &run ||
        microbatches.missing(piece.term.microbatches))
      set = microbatches.both(set, piece.term.microbatches);
  return set;
}

/// A run once a batch, or one that updates state, reads sums of all microbatches.
std::optional<Counterexample> JointRun::lacksMicrobatch(const Cursor &player, const Run &run, uint32_t n,
                                                        uint32_t operand, uint32_t set) const {
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  const Buffer &buffer = player.program->buffers[it.operands[operand].buffer];
  bool updates = std::any_of(it.operands.begin(), it.operands.end(), [&](const Operand &other) {
    const Buffer &of = player.program->buffers[other.buffer];
    const Tensor *tensor = other.access != Access::Read && of.kind == BufferKind::State && of.of == noIndex
                               ? bundle.manifest.findTensor(of.tensor)
                               : nullptr;
    return tensor && (tensor->kind == TensorKind::Parameter || tensor->kind == TensorKind::State);
  });
  std::optional<int64_t> missing = microbatches.missing(set);
  if (!missing || (player.own[run.block] && !updates) || buffer.kind != BufferKind::Temp || buffer.index != Index::None)
    return std::nullopt;
  return Counterexample{Property::Value,
                        "lacks: '" + buffer.name + "' is read for a whole batch, but microbatch " +
                            std::to_string(*missing) + " has not added to it in entry " + entry,
                        {line(player, run, n)}};
}

/// A run does not read a later microbatch's value in a buffer without slots. (Sums are read for a whole batch.)
std::optional<Counterexample> JointRun::ofLaterMicrobatch(const Cursor &player, const Run &run, uint32_t n,
                                                          uint32_t operand, const Content &content) const {
  const Buffer &buffer =
      player.program->buffers[player.program->blocks[run.block].instructions[n].operands[operand].buffer];
  if (buffer.kind != BufferKind::Temp || buffer.index != Index::None || !player.own[run.block])
    return std::nullopt;
  for (const Piece &piece : content) {
    const Made &made = player.made[piece.made];
    if (piece.made && player.own[made.run->block] && made.run->microbatch > run.microbatch && !made.adds)
      return Counterexample{Property::Value,
                            "microbatch: '" + buffer.name + "' is read for microbatch " +
                                std::to_string(run.microbatch) + ", but was made for microbatch " +
                                std::to_string(made.run->microbatch),
                            {line(player, *made.run, made.n), line(player, run, n)}};
  }
  return std::nullopt;
}

void JointRun::noteWritten(Cursor &player, const Run &run, uint32_t n, uint32_t operand, uint64_t begin,
                           uint64_t bytes) {
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  const Buffer &buffer = player.program->buffers[it.operands[operand].buffer];
  uint32_t root = buffer.of == noIndex ? it.operands[operand].buffer : buffer.of;
  if (player.program->buffers[root].kind != BufferKind::State)
    return;
  std::vector<Written> &list =
      player.state[{root, format::slotOf(it.operands[operand].slot, depthOf(*player.program, root), run)}];
  bool computes = it.op == Op::Kernel || it.op == Op::Call;
  std::vector<Written> after;
  uint64_t at = begin, end = begin + bytes;
  auto add = [&](uint64_t from, uint64_t to, const Written &before, bool here) {
    if (from < to)
      after.push_back({from, to, before.computed + (here && computes), before.moved + (here && !computes)});
  };
  for (const Written &before : list) {
    add(before.begin, std::min(before.end, begin), before, false);
    if (before.end > begin && before.begin < end) {
      add(at, std::max(before.begin, begin), {}, true);
      at = std::min(before.end, end);
      add(std::max(before.begin, begin), at, before, true);
    }
    if (before.begin >= end && at < end)
      add(at, end, {}, true), at = end;
    add(std::max(before.begin, end), before.end, before, false);
  }
  add(at, end, {}, true);
  list = std::move(after);
}

void JointRun::write(Cursor &player, const Run &run, uint32_t n, uint32_t operand, uint64_t offset, uint64_t bytes,
                     Content content) {
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  uint64_t begin = 0;
  Content &slot = slotOf(player, run, it.operands[operand], begin);
  Made made;
  made.run = &run, made.n = n, made.operand = operand;
  player.made.push_back(std::move(made));
  noteWritten(player, run, n, operand, begin + offset, bytes);
  for (Piece &piece : content)
    piece.made = uint32_t(player.made.size() - 1);
  put(slot, begin + offset, bytes, content);
}

/// Inputs of the `written`th operand that an instruction writes: those of the kernel's table, or all that is read. A
/// sum in a matmul's epilogue depends only on its operand.
static Dependence dependenceOf(const Program &program, const Instruction &it, size_t written) {
  if (it.op == Op::Kernel && !program.kernels[it.kernel].deps.empty())
    return program.kernels[it.kernel].deps[written];
  if (it.op == Op::Call && written == 0 && program.calls[it.call].sums())
    return {{program.calls[it.call].epilogue == Epilogue::SumA ? 0u : 1u}, {}};
  Dependence all;
  for (uint32_t i = 0; i < it.operands.size(); ++i)
    if (it.operands[i].access != Access::Write)
      all.operands.push_back(i);
  for (uint32_t i = 0; i < it.imms.size(); ++i)
    all.imms.push_back(i);
  return all;
}

void JointRun::compute(Cursor &player, const Run &run, uint32_t n, const std::vector<uint64_t> &bytes) {
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  std::vector<std::pair<uint64_t, Spread>> operands(it.operands.size());
  std::vector<Content> contents(it.operands.size());
  std::vector<uint32_t> sets(it.operands.size());
  for (uint32_t i = 0; i < it.operands.size(); ++i)
    if (it.operands[i].access != Access::Write && bytes[i]) {
      contents[i] = read(player, run, n, i, bytes[i]);
      operands[i].first = mixContent(i, contents[i], classes, operands[i].second);
      sets[i] = microbatchesOf(player, run, contents[i], it.operands[i].access != Access::Read);
      if (!complaint)
        complaint = lacksMicrobatch(player, run, n, i, sets[i]);
    }
  for (auto check : {&JointRun::updatesByExtreme, &JointRun::addsTwice})
    if (!complaint)
      complaint = (this->*check)(player, run, n, contents);
  size_t written = 0;
  for (uint32_t i = 0; i < it.operands.size(); ++i) {
    if (it.operands[i].access == Access::Read)
      continue;
    Dependence own = dependenceOf(*player.program, it, written++);
    Term term{mix(nameOf(*player.program, it, run), i)};
    for (uint32_t from : own.operands) {
      term.name = mix(term.name, operands[from].first);
      term.spread = classes.both(term.spread, operands[from].second);
      term.microbatches = microbatches.both(term.microbatches, sets[from]);
    }
    for (uint32_t imm : own.imms)
      if (!it.imms[imm].axis.empty())
        term.spread = classes.both(term.spread, spreadOf(it.imms[imm].axis));
    if (bytes[i])
      writeResult(player, run, n, i, whole(term, bytes[i]), own.operands, contents);
  }
}

/// Writes an instruction's results from some of its operands.
void JointRun::writeResult(Cursor &player, const Run &run, uint32_t n, uint32_t operand, const Content &content,
                           const std::vector<uint32_t> &of, const std::vector<Content> &contents) {
  write(player, run, n, operand, 0, content.back().end, content);
  bool constant = true;
  player.made.back().counts = true;
  for (uint32_t from : of) {
    noteUsers(player, contents[from], player.made.size() - 1);
    player.made.back().adds |= addsUp(player, run, contents[from], from == operand);
    player.made.back().counts &= counts(player, contents[from]);
    constant &= std::ranges::all_of(
        contents[from], [&](const Piece &piece) { return piece.term.name != undefinedTerm && isConstant(piece.term); });
  }
  if (constant)
    constants.insert(content.front().term.name);
}

void JointRun::local(Cursor &player, const Run &run, uint32_t n) {
  const Program &program = *player.program;
  const Instruction &it = program.blocks[run.block].instructions[n];
  std::vector<uint64_t> bytes(it.operands.size());
  for (const ByteAccess &access : accessesOf(program, it, 0, 1))
    bytes[access.operand] = access.bytes;
  if (it.op == Op::Kernel || it.op == Op::Call)
    return compute(player, run, n, bytes);
  if (it.op == Op::Copy) {
    Content content = read(player, run, n, 0, bytes[0]);
    write(player, run, n, 1, 0, bytes[1], content);
    player.made.back().adds = addsUp(player, run, content, true);
    return noteUsers(player, content, player.made.size() - 1);
  }
  if (it.op == Op::Fetch)
    fetched[{it.name, run.microbatch}].push_back(
        {uint32_t(&player - players.data()), &run, n, read(player, run, n, 0, bytes[0])});
  if (it.op != Op::Fill && it.op != Op::Feed)
    return;
  const Input *input = it.op == Op::Feed ? bundle.manifest.findInput(it.name) : nullptr;
  Term term{it.op == Op::Fill && it.value == 0
                ? zerosTerm
                : mix(nameOf(program, it, input && !input->microbatched ? Run() : run), 0),
            0, input ? spreadOf(*input) : 0, input && input->microbatched ? microbatches.of(run.microbatch) : 0};
  if (it.op == Op::Fill)
    constants.insert(term.name);
  write(player, run, n, 0, 0, bytes[0], whole(term, bytes[0]));
}

/// One instruction, or a whole group; false where it must wait.
bool JointRun::advance(uint32_t index, Found &found) {
  Cursor &player = players[index];
  const std::vector<Run> &runs = player.entry->runs;
  while (player.run < runs.size() && player.n == player.program->blocks[runs[player.run].block].instructions.size())
    ++player.run, player.n = 0;
  if (player.run == runs.size())
    return false;
  const Run &run = runs[player.run];
  const std::vector<Instruction> &list = player.program->blocks[run.block].instructions;
  const Instruction &it = list[player.n];
  if (it.op != Op::Group && it.op != Op::Coll && it.op != Op::Send && it.op != Op::Recv) {
    local(player, run, player.n++);
    return true;
  }
  uint32_t first = player.n + (it.op == Op::Group), last = it.op == Op::Group ? first + uint32_t(it.n) : first + 1;
  for (uint32_t n = first; !player.posted && n < last && !found; ++n)
    found = give(index, run, n);
  player.posted = true;
  std::map<uint64_t, size_t> ahead;
  for (uint32_t n = first; n < last && !found; ++n)
    if (!complete(index, run, list[n], ahead))
      return false;
  for (uint32_t n = first; n < last && !found; ++n)
    found = take(index, run, n);
  player.posted = false;
  player.n = last;
  return !found;
}

std::optional<Counterexample> JointRun::run() {
  Found found;
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t player = 0; player < players.size(); ++player)
      while (!found && !complaint && advance(player, found))
        moved = true;
    if (found || complaint)
      return found ? found : complaint;
  }
  return std::nullopt;
}

bool JointRun::ended() const {
  return std::all_of(players.begin(), players.end(),
                     [](const Cursor &player) { return player.run == player.entry->runs.size(); });
}
