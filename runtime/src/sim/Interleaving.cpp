// Plays one order of all ranks' steps: of all that may go now one is drawn by the seed, and every touch of memory is
// checked for races, until the queues are empty or nothing can go.
#include "sim/Interleaving.h"

#include "par/messages/Failure.h"

#include <algorithm>

namespace par::sim {

using core::Command;
using format::Op;

namespace {

/// Feeds from the rank's host, and gives results to the caller.
class Relay final : public core::EntryHost {
public:
  Relay(core::EntryHost &host, uint32_t rank, uint32_t step, const Interleaving::Fetch &take)
      : host(host), rank(rank), step(step), take(take) {}
  void feed(const format::Input &input, int64_t microbatch, std::span<std::byte> to) override {
    host.feed(input, microbatch, to);
  }
  void fetch(const format::Output &, int64_t, format::DType, std::span<const std::byte> from) override {
    take(rank, step, from);
  }

private:
  core::EntryHost &host;
  uint32_t rank, step;
  const Interleaving::Fetch &take;
};

} // namespace

Interleaving::Interleaving(std::vector<Part> &parts, const std::vector<const Ledger *> &ledgers,
                           const std::vector<comm::Members> &table, Adversary adversary)
    : parts(parts), ledgers(ledgers), rendezvous(table), adversary(std::move(adversary)), ranks(parts.size()) {
  for (uint32_t rank = 0; rank < parts.size(); ++rank) {
    const std::vector<Command> &steps = parts[rank].entry->steps;
    Rank &self = ranks[rank];
    self.queues.resize(parts[rank].options->program().queues.size());
    self.now.resize(self.queues.size());
    self.signals.resize(steps.size());
    self.signalled.resize(steps.size());
    for (uint32_t step = 0; step < steps.size(); ++step) {
      self.queues[steps[step].queue].issued.push_back(step);
      if (cpu::communicates(steps[step].op))
        self.communication.push_back(step);
    }
    for (Queue &queue : self.queues)
      queue.due = this->adversary.dueNow();
    left += steps.size();
  }
}

std::optional<Trouble> Interleaving::play(const Fetch &fetch) {
  while (left > 0) {
    collect();
    if (choices.empty())
      return stuck();
    size_t chosen = adversary.pick(choices), heads = choices.size() - readyMeetings.size();
    auto trouble = chosen < heads ? runHead(choices[chosen].rank, choices[chosen].queue, fetch)
                                  : meet(readyMeetings[chosen - heads]);
    if (trouble)
      return trouble;
  }
  return std::nullopt;
}

/// All that may go now. Posting a communication moves nothing, so every head that communicates is posted.
void Interleaving::collect() {
  choices.clear();
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    for (uint32_t queue = 0; queue < ranks[rank].queues.size(); ++queue) {
      Queue &self = ranks[rank].queues[queue];
      if (mayGo(rank, self))
        choices.push_back({rank, queue, self.head(), self.due, adversary.starves(rank, queue)});
      else if (!self.empty() && !self.posted && cpu::communicates(stepOf(rank, self.head()).op))
        postHead(rank, queue);
    }
  readyMeetings = rendezvous.ready();
  for (const std::vector<Piece> &pieces : readyMeetings) {
    Choice choice{pieces[0].rank, pieces[0].queue, pieces[0].step};
    for (const Piece &piece : pieces) {
      choice.due = std::max(choice.due, ranks[piece.rank].queues[piece.queue].due);
      choice.starved |= adversary.starves(piece.rank, piece.queue);
    }
    choices.push_back(choice);
  }
}

/// Whether the head is a local step that need not wait.
bool Interleaving::mayGo(uint32_t rank, Queue &queue) {
  if (queue.empty())
    return false;
  const Command &step = stepOf(rank, queue.head());
  if (step.op == Op::Wait)
    return step.awaited < 0 || ranks[rank].signalled[static_cast<size_t>(step.awaited)];
  return !cpu::communicates(step.op);
}

void Interleaving::postHead(uint32_t rank, uint32_t queue) {
  Rank &self = ranks[rank];
  Queue &posting = self.queues[queue];
  if (adversary.oneEngine() && self.communication[self.nextCommunication] != posting.head())
    return;
  const Command &step = stepOf(rank, posting.head());
  posting.posted = true;
  posting.pieces = step.units;
  posting.before = self.now[queue];
  for (uint32_t piece = 0; piece < step.units; ++piece)
    rendezvous.post({rank, queue, posting.head(), piece, &parts[rank].entry->communications[step.firstUnit + piece]});
}

void Interleaving::endHead(uint32_t rank, Queue &queue) {
  auto at = static_cast<int64_t>(++clock);
  (*parts[rank].stamps)[queue.head()] = {at * 1000 - 1000, at * 1000};
  ++queue.next;
  queue.posted = false;
  queue.due = adversary.dueNow();
  --left;
}

std::optional<Trouble> Interleaving::runHead(uint32_t rank, uint32_t queue, const Fetch &fetch) {
  Rank &self = ranks[rank];
  Clock &now = self.now[queue];
  uint32_t index = self.queues[queue].head();
  const Command &step = stepOf(rank, index);
  if (step.op == Op::Signal) {
    self.signals[index] = now;
    self.signalled[index] = 1;
  } else if (step.op == Op::Wait) {
    for (size_t other = 0; step.awaited >= 0 && other < now.size(); ++other)
      now[other] = std::max(now[other], self.signals[static_cast<size_t>(step.awaited)][other]);
  } else {
    uint32_t own = ++now[queue];
    if (auto trouble = touch(rank, index, 0, {now, queue, own}))
      return trouble;
    Relay relay(*parts[rank].results, rank, index, fetch);
    parts[rank].local->execute(*parts[rank].entry, step, relay);
  }
  endHead(rank, self.queues[queue]);
  return std::nullopt;
}

/// The pieces of one unit happen in any order: none may rely on another.
std::optional<Trouble> Interleaving::meet(const std::vector<Piece> &pieces) {
  for (const Piece &piece : pieces) {
    Queue &queue = ranks[piece.rank].queues[piece.queue];
    uint32_t own = ++ranks[piece.rank].now[piece.queue][piece.queue];
    if (auto trouble = touch(piece.rank, piece.step, piece.piece, {queue.before, piece.queue, own}))
      return trouble;
  }
  std::vector<Piece> taken = pieces; // happen() changes the list of ready ones
  rendezvous.happen(taken);
  ++met;
  for (const Piece &piece : taken) {
    Queue &queue = ranks[piece.rank].queues[piece.queue];
    if (--queue.pieces > 0)
      continue;
    if (adversary.oneEngine())
      ++ranks[piece.rank].nextCommunication;
    endHead(piece.rank, queue);
  }
  return std::nullopt;
}

std::optional<Trouble> Interleaving::touch(uint32_t rank, uint32_t step, uint32_t piece, const View &view) {
  const Ledger &ledger = *ledgers[rank];
  auto [begin, end] = ledger.of(step, piece);
  // Writes follow reads in the list and are handled first here: reads of others in the group must still be seen.
  for (uint32_t number = end; number-- > begin;) {
    const Access &access = ledger[number];
    std::optional<uint32_t> other = ranks[rank].shadow.touch(access, number, view);
    if (!other)
      continue;
    const std::span<std::byte> &dev = parts[rank].dev;
    bool device = access.begin >= dev.data() && access.begin < dev.data() + dev.size();
    const std::span<std::byte> &arena = device ? dev : parts[rank].host;
    const Access &theirs = ledger[*other];
    auto from = std::max(access.begin, theirs.begin) - arena.data();
    auto to = std::min(access.begin + access.bytes, theirs.begin + theirs.bytes) - arena.data();
    return Trouble{core::format(core::textOf(core::Message::race), rank, parts[rank].entry->name, from, to,
                                device ? "dev" : "host"),
                   {ledger.describe(*other), ledger.describe(number)}};
  }
  return std::nullopt;
}

/// The head of every rank's queues.
Trouble Interleaving::stuck() const {
  Trouble trouble{core::format(core::textOf(core::Message::simulationStuck), parts[0].entry->name), {}};
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    for (const Queue &queue : ranks[rank].queues)
      if (!queue.empty())
        trouble.notes.push_back(core::format("rank {} waits in {} {}", rank,
                                             format::toString(stepOf(rank, queue.head()).op),
                                             stepOf(rank, queue.head()).id));
  return trouble;
}

} // namespace par::sim
