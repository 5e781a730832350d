#include "sim/PendingCollectives.h"

#include "comm/engine/Reduce.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace par::sim {

using comm::Communication;
using format::CollKind;
using format::Op;

PendingCollectives::PendingCollectives(const std::vector<comm::Members> &table) : table(table) {
  for (const comm::Members &members : table)
    waiting.emplace_back(members.ranks.size());
}

uint32_t PendingCollectives::memberOf(const Piece &piece) const {
  const std::vector<uint32_t> &ranks = table[piece.what->communicator].ranks;
  return static_cast<uint32_t>(std::find(ranks.begin(), ranks.end(), piece.rank) - ranks.begin());
}

void PendingCollectives::post(const Piece &piece) {
  const Communication &c = *piece.what;
  uint32_t own = memberOf(piece);
  if (c.op == Op::Coll)
    waiting[c.communicator][own].push_back(piece);
  else if (c.op == Op::Send)
    channels[{c.communicator, own, c.peer}].sends.push_back(piece);
  else
    channels[{c.communicator, c.peer, own}].recvs.push_back(piece);
}

std::vector<std::vector<Piece>> PendingCollectives::ready() const {
  std::vector<std::vector<Piece>> found;
  for (const auto &members : waiting) {
    if (std::any_of(members.begin(), members.end(), [](const auto &posted) { return posted.empty(); }))
      continue;
    found.emplace_back();
    for (const auto &posted : members)
      found.back().push_back(posted.front());
  }
  for (const auto &[ends, channel] : channels)
    if (!channel.sends.empty() && !channel.recvs.empty())
      found.push_back({channel.sends.front(), channel.recvs.front()});
  return found;
}

namespace {

/// "stage0/backward:88 of rank 3 is recv of 64 f32 with tag 7".
std::string describe(const Piece &piece) {
  const Communication &c = *piece.what;
  return std::string(c.id) + " of rank " + std::to_string(piece.rank) + " is " +
         std::string(c.op == Op::Coll ? format::toString(c.kind) : format::toString(c.op)) + " of " +
         std::to_string(c.n) + " " + std::string(format::toString(c.type)) + " with tag " + std::to_string(c.tag);
}

/// Throws unless all parts are of one communication.
void checkAlike(const std::string &communicator, const std::vector<Piece> &pieces) {
  for (const Piece &piece : pieces) {
    const Communication &a = *pieces[0].what, &b = *piece.what;
    bool alike = a.tag == b.tag && a.n == b.n && a.type == b.type;
    if (a.op == Op::Coll)
      alike = alike && a.kind == b.kind && a.reduction == b.reduction && a.peer == b.peer;
    if (!alike)
      throw comm::Mismatch(comm::say(comm::Sentence::mismatch, communicator, describe(pieces[0]), describe(piece)));
  }
}

/// Makes bytes undefined: the NaN of --check-arena.
void lose(std::byte *at, uint64_t bytes) {
  constexpr uint32_t word = 0x7ff5a5a5;
  for (uint64_t i = 0; i < bytes; ++i)
    at[i] = static_cast<std::byte>(word >> 8 * (i % 4));
}

} // namespace

void PendingCollectives::happen(const std::vector<Piece> &pieces) {
  const Communication &first = *pieces[0].what;
  checkAlike(table[first.communicator].name, pieces);
  if (first.op == Op::Coll) {
    collective(pieces);
    for (auto &posted : waiting[first.communicator])
      posted.pop_front();
    return;
  }
  Channel &channel = channels[{first.communicator, memberOf(pieces[0]), first.peer}];
  std::memcpy(pieces[1].what->out, first.in, first.n * format::sizeOf(first.type));
  channel.sends.pop_front();
  channel.recvs.pop_front();
}

/// From copies of all members' operands, so that in-place operands make no difference.
void PendingCollectives::collective(const std::vector<Piece> &pieces) const {
  const Communication &first = *pieces[0].what;
  size_t members = pieces.size();
  uint64_t part = first.n * format::sizeOf(first.type);
  bool parted = first.kind == CollKind::ReduceScatter || first.kind == CollKind::AllToAll;
  std::vector<std::vector<std::byte>> given;
  for (size_t i = 0; i < members; ++i) {
    const Communication &c = *pieces[i].what;
    auto *from = static_cast<const std::byte *>(c.in);
    if (c.kind == CollKind::AllGather && c.in == c.out)
      from += i * part;
    given.emplace_back(from, from + part * (parted ? members : 1));
  }
  auto reduceTo = [&](std::byte *to, uint64_t offset) {
    std::vector<const std::byte *> sources;
    for (const auto &bytes : given)
      sources.push_back(bytes.data() + offset);
    comm::reduce(first.type, first.reduction, to, sources, first.n);
  };
  for (size_t i = 0; i < members; ++i) {
    const Communication &c = *pieces[i].what;
    auto *to = static_cast<std::byte *>(c.out);
    switch (c.kind) {
    case CollKind::AllReduce:
      reduceTo(to, 0);
      break;
    case CollKind::AllGather:
      for (size_t j = 0; j < members; ++j)
        std::memcpy(to + j * part, given[j].data(), part);
      break;
    case CollKind::ReduceScatter:
      if (c.in == c.out)
        lose(to, part * members);
      reduceTo(c.in == c.out ? to + i * part : to, i * part);
      break;
    case CollKind::AllToAll:
      for (size_t j = 0; j < members; ++j)
        std::memcpy(to + j * part, given[j].data() + i * part, part);
      break;
    case CollKind::Broadcast:
      std::memcpy(to, given[c.peer].data(), part);
      break;
    case CollKind::Reduce:
      i == c.peer ? reduceTo(to, 0) : lose(to, part);
    }
  }
}

} // namespace par::sim
