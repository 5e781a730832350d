#include "par/sim/World.h"

#include "par/messages/Failure.h"
#include "sim/Interleaving.h"

#include <algorithm>
#include <cstring>

namespace par::sim {

/// Content of unwritten memory: a quiet NaN in f32 and f64, an absurd index in i64.
static constexpr uint32_t poisonWord = 0x7ff5a5a5;

/// Outcome of an interleaving: all state, and the fetched values by rank and step.
struct World::Outcome {
  std::vector<std::vector<std::byte>> state;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<std::byte>> fetched;
};

World::World(uint32_t ranks, Options options) : parts(ranks), wanted(options) {}

World::~World() = default;

const Ledger &World::ledgerOf(uint32_t rank) {
  const Part &part = parts[rank];
  std::unique_ptr<Ledger> &known = ledgers[{rank, part.entry}];
  if (!known)
    known = std::make_unique<Ledger>(*part.options->bundle, rank, *part.entry);
  return *known;
}

/// State and the host arena of every rank, which outlive a run.
static std::vector<std::vector<std::byte>> stateOf(const std::vector<Part> &parts) {
  std::vector<std::vector<std::byte>> state;
  for (const Part &part : parts) {
    std::span<std::byte> dev = part.dev.first(part.options->program().arena.state);
    state.emplace_back(dev.begin(), dev.end());
    state.back().insert(state.back().end(), part.host.begin(), part.host.end());
  }
  return state;
}

/// The condition in which an entry begins: the state, hyperparameters, and nothing else.
void World::restore(const std::vector<std::vector<std::byte>> &state) {
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    Part &part = parts[rank];
    uint64_t bytes = part.options->program().arena.state;
    std::copy_n(state[rank].begin(), bytes, part.dev.begin());
    std::copy(state[rank].begin() + static_cast<ptrdiff_t>(bytes), state[rank].end(), part.host.begin());
    std::span<std::byte> pool = part.dev.subspan(bytes);
    for (size_t i = 0; i < pool.size(); ++i)
      pool[i] = static_cast<std::byte>(poisonWord >> 8 * (i % 4));
    for (const core::HyperValue &hyper : part.hypers)
      std::memcpy(hyper.to, &hyper.bits, hyper.bytes);
    part.stamps->assign(part.entry->steps.size(), {});
  }
}

void World::play() {
  std::vector<std::vector<std::byte>> begin = stateOf(parts);
  std::vector<const Ledger *> books;
  for (uint32_t rank = 0; rank < parts.size(); ++rank)
    books.push_back(&ledgerOf(rank));
  cpu::setLibraryThreads(parts[0].options->threads);
  Outcome first, last;
  ++total.runs;
  for (uint32_t i = 0; i < wanted.interleavings; ++i) {
    restore(begin);
    uint64_t number = total.interleavings++;
    auto strategy = i == 0 ? Strategy::Issue : static_cast<Strategy>(1 + (number + i) % hostileStrategies);
    std::string name =
        core::format("interleaving {} of run {} (seed {}, {})", i + 1, total.runs, wanted.seed, toString(strategy));
    last =
        playOnce(books, Adversary(strategy, (wanted.seed << 32) + number, static_cast<uint32_t>(parts.size())), name);
    if (i == 0)
      first = last;
    else
      compare(first, last, name);
  }
  deliver(last);
}

World::Outcome World::playOnce(const std::vector<const Ledger *> &books, Adversary adversary, const std::string &name) {
  std::vector<comm::Members> table = comm::tableOf(*parts[0].options->bundle);
  Interleaving order(parts, books, table, std::move(adversary));
  Outcome outcome;
  auto take = [&](uint32_t rank, uint32_t step, std::span<const std::byte> bytes) {
    outcome.fetched[{rank, step}].assign(bytes.begin(), bytes.end());
  };
  if (std::optional<Trouble> trouble = order.play(take)) {
    std::string text = trouble->what;
    for (const std::string &note : trouble->notes)
      text += "\n  note: " + note;
    throw core::Failure(parts[0].options->folder, text, core::exitRefused).note(name);
  }
  total.steps += order.steps();
  total.meetings += order.meetings();
  outcome.state = stateOf(parts);
  return outcome;
}

/// The buffer that holds a byte of stateOf().
static std::string bufferAt(const format::Program &program, uint64_t byte) {
  bool onHost = byte >= program.arena.state;
  uint64_t place = onHost ? byte - program.arena.state : byte;
  for (const format::Buffer &buffer : program.buffers)
    for (uint64_t at : buffer.at)
      if ((buffer.space == format::Space::Host) == onHost && (onHost || buffer.kind == format::BufferKind::State) &&
          place >= at && place < at + buffer.bytes())
        return buffer.name;
  return "byte " + std::to_string(byte);
}

void World::compare(const Outcome &first, const Outcome &other, const std::string &name) const {
  auto fail = [&](size_t rank, const std::string &what) {
    throw core::Failure::at(parts[0].options->folder, core::Message::interleavingsDiffer, what, rank,
                            parts[0].entry->name)
        .note(name)
        .exitsWith(core::exitRefused);
  };
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    auto [a, b] = std::mismatch(first.state[rank].begin(), first.state[rank].end(), other.state[rank].begin());
    if (a != first.state[rank].end())
      fail(rank, "state '" +
                     bufferAt(parts[rank].options->program(), static_cast<uint64_t>(a - first.state[rank].begin())) +
                     "'");
  }
  for (const auto &[place, bytes] : first.fetched)
    if (other.fetched.at(place) != bytes)
      fail(place.first, "output '" + parts[place.first].entry->steps[place.second].output->name + "'");
}

void World::deliver(const Outcome &outcome) {
  for (const auto &[place, bytes] : outcome.fetched) {
    const core::Command &step = parts[place.first].entry->steps[place.second];
    parts[place.first].results->fetch(*step.output, step.microbatch, step.type, bytes);
  }
}

} // namespace par::sim
