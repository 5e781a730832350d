// V5: a sum over ranks has each summand once. Two ranks that give the same value to a sum would count it twice: a
// gradient that all of them have, or a sum that was already made. Other reductions than a sum would not combine partial
// sums.
#include "JointRun.h"

#include <algorithm>

using namespace par;
using namespace par::format;
using namespace par::verify;

/// No two members of a group give the same value, but zeros and constants.
std::optional<Counterexample> JointRun::summands(uint32_t comm, size_t k, const std::vector<uint32_t> &party,
                                                 const std::vector<Term> &terms) {
  // It depends on which terms are one expression, and on which data each rank has, not on the expressions.
  std::vector<uint64_t> key{comm, party.front()};
  for (const Term &term : terms) {
    auto same = [&](const Term &other) { return other.name == term.name && other.offset == term.offset; };
    key.push_back(isConstant(term) ? noIndex : uint64_t(std::ranges::find_if(terms, same) - terms.begin()));
    key.push_back(term.spread);
  }
  if (apart.count(key))
    return std::nullopt;
  std::map<uint32_t, size_t> places;
  for (size_t place = 0; place < party.size(); ++place)
    places[party[place]] = place;
  for (const std::vector<uint32_t> &group : bundle.manifest.communicators[comm].groups) {
    std::map<std::tuple<uint64_t, uint64_t, uint32_t>, uint32_t> seen;
    for (uint32_t rank : group) {
      auto place = places.find(playerOf[rank]);
      if (place == places.end())
        break;
      const Term &term = terms[place->second];
      if (isConstant(term))
        continue;
      auto [other, fresh] = seen.try_emplace({term.name, term.offset, classes.classOf(term.spread, rank)}, rank);
      if (fresh)
        continue;
      const Post &first = postOf(playerOf[other->second], comm, k), &second = postOf(playerOf[rank], comm, k);
      return Counterexample{Property::Value,
                            "twice: ranks " + std::to_string(other->second) + " and " + std::to_string(rank) +
                                " add the same value to a sum over communicator '" +
                                bundle.manifest.communicators[comm].name + "' of entry " + entry,
                            {describeStep(bundle, other->second, *first.run, first.n),
                             describeStep(bundle, rank, *second.run, second.n)}};
    }
  }
  apart.insert(std::move(key));
  return std::nullopt;
}

/// Matmuls, and sums of microbatches, are parts of sums.
std::optional<Counterexample> JointRun::reducesSum(const Cursor &player, const Run &run, uint32_t n,
                                                   const Content &content) const {
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  for (const Piece &piece : content) {
    const Made &made = player.made[piece.made];
    if (piece.made && (made.adds || instruction(player, made).op == Op::Call))
      return Counterexample{Property::Value,
                            "reduction: '" + player.program->buffers[it.operands[0].buffer].name + "' is reduced by " +
                                std::string(toString(it.reduction)) + ", but it is " +
                                (made.adds ? "a sum over microbatches" : "a matmul") +
                                ", of which ranks have partial sums",
                            {line(player, *made.run, made.n), line(player, run, n)}};
  }
  return std::nullopt;
}

/// Checks a player's operand of a collective: only a sum may reduce partial sums. Notes values computed from a part.
std::optional<Counterexample> JointRun::gives(uint32_t index, const Run &run, uint32_t n, const Content &content) {
  Cursor &player = players[index];
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  bool reduces = it.coll == CollKind::AllReduce || it.coll == CollKind::ReduceScatter || it.coll == CollKind::Reduce;
  if (!reduces)
    return std::nullopt;
  if (it.reduction != Reduction::Sum)
    return reducesSum(player, run, n, content);
  uint32_t comm = stepOf(player, run, n).comm;
  for (const Piece &piece : content) {
    if (!piece.made)
      continue;
    for (auto [first, end] : player.usersOf(piece.made))
      for (uint32_t user = first; user < end; ++user)
        early.push_back({index, piece.made, user, comm, &run, n});
    player.sums[piece.made].push_back(comm);
  }
  return std::nullopt;
}

/// A gradient is a sum over ranks: an operand of an update with as many bytes as it writes is no maximum.
std::optional<Counterexample> JointRun::updatesByExtreme(const Cursor &player, const Run &run, uint32_t n) {
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  if (!stepOf(player, run, n).moves)
    return std::nullopt;
  for (const Operand &operand : it.operands) {
    const Buffer &buffer = player.program->buffers[operand.buffer];
    if (operand.access == Access::Read || buffer.kind != BufferKind::State || buffer.bytes() <= sizeOf(buffer.type))
      continue;
    for (size_t i = 0; i < it.operands.size(); ++i)
      for (const Content &content = readings[i].content; const Piece &piece : content) {
        const Made &made = player.made[piece.made];
        bool extreme = piece.made && instruction(player, made).op == Op::Coll &&
                       instruction(player, made).reduction != Reduction::Sum;
        if (extreme && content.back().end == buffer.bytes())
          return Counterexample{Property::Value,
                                "reduction: '" + buffer.name + "' is updated by what ranks have reduced by " +
                                    std::string(toString(instruction(player, made).reduction)) + ", not by a sum",
                                {line(player, *made.run, made.n), line(player, run, n)}};
      }
  }
  return std::nullopt;
}

/// Whether two instructions read the same, but for operand `except`.
static bool readsSame(const Instruction &it, const Instruction &before, uint32_t except) {
  if (it.op != before.op || it.kernel != before.kernel || it.call != before.call || !(it.imms == before.imms))
    return false;
  for (uint32_t i = 0; i < it.operands.size(); ++i)
    if (i != except && !(it.operands[i] == before.operands[i]))
      return false;
  return it.operands[except] == before.operands[except] && it.operands.size() > 1;
}

/// A summand is added once: not by the same instruction twice in a run, of the same values.
std::optional<Counterexample> JointRun::addsTwice(const Cursor &player, const Run &run, uint32_t n) {
  const Instruction &it = player.program->blocks[run.block].instructions[n];
  bool optimizer = stepOf(player, run, n).optimizer;
  for (uint32_t i = 0; i < it.operands.size(); ++i) {
    if (it.operands[i].access == Access::Read || it.operands[i].access == Access::Write)
      continue;
    for (const Piece &piece : readings[i].content) {
      const Made &made = player.made[piece.made];
      if (!piece.made || made.run != &run)
        continue;
      bool sum = it.operands[i].access == Access::Accumulate || made.adds || optimizer;
      if (!sum || !readsSame(it, instruction(player, made), i))
        continue;
      // Its operands were not written meanwhile.
      bool same = true;
      for (uint32_t other = 0; other < it.operands.size(); ++other)
        for (const Piece &read : readings[other].content)
          same &= other == i || it.operands[other].access != Access::Read || read.made < piece.made;
      if (same)
        return Counterexample{Property::Value,
                              "twice: the same is added to '" + player.program->buffers[it.operands[i].buffer].name +
                                  "' two times in entry " + entry,
                              {line(player, *made.run, made.n), line(player, run, n)}};
    }
  }
  return std::nullopt;
}
