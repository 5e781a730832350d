// All programs of an entry at once, on expressions.
#include "JointRun.h"
#include "verify/Names.h"

#include <algorithm>
#include <numeric>

using namespace par;
using namespace par::format;
using namespace par::verify;

/// The ranks of a player one after the other.
static std::vector<uint32_t> inPlayers(const Actors &actors) {
  std::vector<uint32_t> order(actors.of.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](uint32_t rank) { return std::pair(actors.of[rank], rank); });
  return order;
}

JointRun::JointRun(const Bundle &bundle, const Actors &actors, const std::string &entry)
    : bundle(bundle), classes(inPlayers(actors)), microbatches(bundle.manifest.microbatches), steps(bundle),
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

/// State and hyperparameters hold their values, as in V5; a copy holds its tensor's.
void JointRun::begin(Cursor &player) {
  const Program &program = *player.program;
  player.made.assign(1, {});
  player.uses.assign(1, {});
  for (const Block &block : program.blocks)
    player.own.push_back(computesOwn(program, block));
  player.slots.resize(program.buffers.size());
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer &buffer = program.buffers[i];
    if (buffer.of != noIndex)
      continue;
    player.slots[i].resize(buffer.at.size());
    const Tensor *tensor = buffer.kind == BufferKind::State ? steps.findTensor(buffer.tensor) : nullptr;
    for (uint32_t slot = 0; slot < buffer.at.size(); ++slot) {
      uint64_t name = mix(mix(mix(0, uint64_t(buffer.kind)), slot),
                          tensor && tensor->kind == TensorKind::Copy ? tensor->of : buffer.tensor);
      if (buffer.kind == BufferKind::Hyper || (tensor && tensor->kind == TensorKind::Counter))
        counters.insert(name);
      if (buffer.bytes() > 0 && (tensor || buffer.kind == BufferKind::Hyper))
        initial.insert(name),
            player.slots[i][slot] = whole({name, 0, tensor ? spreads.of(*tensor) : 0}, buffer.bytes());
    }
  }
}

void JointRun::read(Cursor &player, const Run &run, uint32_t n, uint32_t operand, uint64_t bytes, Content &content) {
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  const Step::Place &place = stepOf(player, run, n).operands[operand];
  const Content &slot = player.slots[place.root][slotOf(it.operands[operand], place, run)];
  cut(slot, place.offset, place.offset + bytes, content);
  for (const Piece &piece : content)
    player.made[piece.made].read = true;
  if (!complaint)
    complaint = ofLaterMicrobatch(player, run, n, operand, content);
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
                                                        uint32_t operand, uint32_t set) {
  const Step &step = stepOf(player, run, n);
  std::optional<int64_t> missing = step.operands[operand].kept && (step.updates || !player.own[run.block])
                                       ? microbatches.missing(set)
                                       : std::nullopt;
  if (!missing)
    return std::nullopt;
  const Operand &read = player.program->blocks[run.block].instructions[n].operands[operand];
  return Counterexample{Property::Value,
                        "lacks: '" + player.program->buffers[read.buffer].name +
                            "' is read for a whole batch, but microbatch " + std::to_string(*missing) +
                            " has not added to it in entry " + entry,
                        {line(player, run, n)}};
}

/// A run does not read a later microbatch's value in a buffer without slots. (Sums are read for a whole batch.)
std::optional<Counterexample> JointRun::ofLaterMicrobatch(const Cursor &player, const Run &run, uint32_t n,
                                                          uint32_t operand, const Content &content) {
  const Made *later = nullptr;
  if (!stepOf(player, run, n).operands[operand].kept || !player.own[run.block])
    return std::nullopt;
  auto isLater = [&](const Made &made) {
    bool found = player.own[made.run->block] && made.run->microbatch > run.microbatch && !made.adds;
    later = found ? &made : nullptr;
    return found;
  };
  if (!player.anyFamily(content, isLater))
    return std::nullopt;
  const Operand &read = player.program->blocks[run.block].instructions[n].operands[operand];
  return Counterexample{Property::Value,
                        "microbatch: '" + player.program->buffers[read.buffer].name + "' is read for microbatch " +
                            std::to_string(run.microbatch) + ", but was made for microbatch " +
                            std::to_string(later->run->microbatch),
                        {line(player, *later->run, later->n), line(player, run, n)}};
}

void JointRun::write(Cursor &player, const Run &run, uint32_t n, uint32_t operand, uint64_t offset, uint64_t bytes,
                     Content &content, bool apart) {
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  const Step::Place &place = stepOf(player, run, n).operands[operand];
  auto add = [&] {
    Made &made = player.made.emplace_back();
    made.run = &run, made.n = n, made.operand = operand;
    made.family = player.family ? player.family : uint32_t(player.made.size() - 1);
  };
  if (!apart)
    add();
  for (Piece &piece : content) {
    if (apart)
      add();
    piece.made = uint32_t(player.made.size() - 1);
  }
  uint32_t slot = slotOf(it.operands[operand], place, run);
  if (place.state)
    player.noteWritten(it.op == Op::Kernel || it.op == Op::Call, place.root, slot, place.offset + offset, bytes);
  put(player.slots[place.root][slot], place.offset + offset, bytes, content);
}

/// Reads what a kernel or a call reads, and checks it.
void JointRun::readOperands(Cursor &player, const Run &run, uint32_t n) {
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  const Step &step = stepOf(player, run, n);
  readings.resize(std::max(readings.size(), it.operands.size()));
  for (uint32_t i = 0; i < it.operands.size(); ++i) {
    Reading &reading = readings[i];
    reading.content.clear();
    reading.name = 0, reading.spread = 0, reading.microbatches = 0;
    if (it.operands[i].access == Access::Write || !step.operands[i].bytes)
      continue;
    read(player, run, n, i, step.operands[i].bytes, reading.content);
    reading.name = mixContent(i, reading.content, classes, reading.spread);
    reading.microbatches = microbatchesOf(player, run, reading.content, it.operands[i].access != Access::Read);
    if (!complaint)
      complaint = lacksMicrobatch(player, run, n, i, reading.microbatches);
  }
  for (auto check : {&JointRun::updatesByExtreme, &JointRun::addsTwice})
    if (!complaint)
      complaint = (this->*check)(player, run, n);
}

void JointRun::compute(Cursor &player, const Run &run, uint32_t n) {
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  const Step &step = stepOf(player, run, n);
  readOperands(player, run, n);
  size_t written = 0;
  for (uint32_t i = 0; i < it.operands.size(); ++i) {
    if (it.operands[i].access == Access::Read)
      continue;
    const Dependence &own = step.written[written++];
    Term term{mix(step.name, i)};
    for (uint32_t from : own.operands) {
      term.name = mix(term.name, readings[from].name);
      term.spread = classes.both(term.spread, readings[from].spread);
      term.microbatches = microbatches.both(term.microbatches, readings[from].microbatches);
    }
    for (uint32_t imm : own.imms)
      if (!it.imms[imm].axis.empty())
        term.spread = classes.both(term.spread, spreads.ofAxis(it.imms[imm].axis));
    if (step.operands[i].bytes)
      writeResult(player, run, n, i, term, own.operands);
  }
}

/// Writes an instruction's result from some of its operands.
void JointRun::writeResult(Cursor &player, const Run &run, uint32_t n, uint32_t operand, const Term &term,
                           const std::vector<uint32_t> &of) {
  writeWhole(player, run, n, operand, 0, stepOf(player, run, n).operands[operand].bytes, term);
  bool constant = true;
  player.made.back().counts = true;
  for (uint32_t from : of) {
    const Content &content = readings[from].content;
    player.noteUsers(content, player.made.size() - 1);
    player.made.back().adds |= player.addsUp(run, content, from == operand);
    player.made.back().counts &= counts(player, content);
    constant = constant && std::ranges::all_of(content, [&](const Piece &piece) {
                 return piece.term.name != undefinedTerm && isConstant(piece.term);
               });
  }
  if (constant)
    constants.insert(term.name);
}

void JointRun::local(Cursor &player, const Run &run, uint32_t n) {
  const Program &program = *player.program;
  const Instruction &it = program.blocks[run.block].instructions[n];
  const Step &step = stepOf(player, run, n);
  if (it.op == Op::Kernel || it.op == Op::Call)
    return compute(player, run, n);
  if (it.op == Op::Copy) {
    Content content;
    read(player, run, n, 0, step.operands[0].bytes, content);
    write(player, run, n, 1, 0, step.operands[1].bytes, one = content);
    player.made.back().adds = player.addsUp(run, content, true);
    return player.noteUsers(content, player.made.size() - 1);
  }
  if (it.op == Op::Fetch) {
    Fetched &here = fetched[{it.name, run.microbatch}].emplace_back();
    here.player = uint32_t(&player - players.data()), here.run = &run, here.n = n;
    return read(player, run, n, 0, step.operands[0].bytes, here.content);
  }
  if (it.op != Op::Fill && it.op != Op::Feed)
    return;
  const Input *input = it.op == Op::Feed ? bundle.manifest.findInput(it.name) : nullptr;
  Term term{it.op == Op::Fill && it.value == 0
                ? zerosTerm
                : mix(nameOf(program, it, input && !input->microbatched ? Run() : run), 0),
            0, input ? spreads.of(*input) : 0, input && input->microbatched ? microbatches.of(run.microbatch) : 0};
  if (it.op == Op::Fill)
    constants.insert(term.name);
  writeWhole(player, run, n, 0, 0, step.operands[0].bytes, term);
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
    if (!complete(index, run, n, ahead))
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
