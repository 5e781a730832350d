// The facts that boards tell each other. Times do not cross: each host judges its own ranks by its own
// clock, and a host as a whole is judged by its link (HostRelay.cpp, HostLink.cpp).
#include "BoardDigest.h"
#include "Serialization.h"
#include "par/messages/CommMessages.h"

using namespace par::comm;

namespace {

std::string textOf(RankState &rank) {
  Writer writer;
  writer.number(uint64_t(rank.pid.load())).number(rank.finished.load()).number(rank.idle.load());
  writer.number(rank.startedSteps.load());
  writer.text(rank.coordinates.get()).text(rank.entry.get()).text(rank.instruction.get());
  writer.text(rank.waitingKind.get()).text(rank.waitingInstruction.get());
  for (const std::atomic<uint64_t> &bits : rank.waitingRanks)
    writer.number(bits.load(std::memory_order_relaxed));
  return writer.take();
}

void write(RankState &rank, Reader &reader) {
  rank.pid.store(int32_t(reader.number()));
  rank.finished.store(uint32_t(reader.number()));
  rank.idle.store(uint32_t(reader.number()));
  rank.startedSteps.store(reader.number());
  rank.coordinates.set(reader.text());
  rank.entry.set(reader.text());
  rank.instruction.set(reader.text());
  rank.waitingKind.set(reader.text());
  rank.waitingInstruction.set(reader.text());
  for (std::atomic<uint64_t> &bits : rank.waitingRanks)
    bits.store(reader.number(), std::memory_order_relaxed);
}

} // namespace

std::string BoardDigest::changes(SharedState &board) {
  Writer writer;
  writer.text(board.saved.get()).text(board.wrote.get());
  for (size_t i = 0; i < ranks.size(); ++i) {
    std::string text = textOf(board[ranks[i]]);
    if (text == last[i])
      continue;
    writer.number(ranks[i]).text(text);
    last[i] = text;
  }
  return writer.take();
}

void BoardDigest::apply(SharedState &board, std::string_view bytes) {
  Reader reader(bytes);
  std::string saved = reader.text(), wrote = reader.text();
  if (!saved.empty())
    board.saved.set(saved);
  if (!wrote.empty())
    board.wrote.set(wrote);
  while (reader.left() > 0) {
    uint64_t rank = reader.number();
    std::string text = reader.text();
    if (rank >= board.world() || !board[uint32_t(rank)].remote.load())
      throw std::runtime_error(say(Sentence::truncated));
    Reader facts(text);
    write(board[uint32_t(rank)], facts);
  }
}
