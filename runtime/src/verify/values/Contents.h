// Contents of a buffer's slots as expressions.
#pragma once

#include "RankClasses.h"

namespace par::verify {

/// Byte `offset` and on of a value. `name` is a hash of the expression that made it; on which of the ranks' data,
/// `spread` says.
struct Term {
  uint64_t name = 0, offset = 0;
  RankClasses::Spread spread = 0;
  uint32_t microbatches = 0; ///< a set of MicrobatchSets: those whose summands it has
};

/// Values that are no expression of data.
inline constexpr uint64_t undefinedTerm = 0, zerosTerm = 1;

/// Bytes [begin, end) of a slot, or of a read.
struct Piece {
  uint64_t begin = 0, end = 0;
  Term term;
  uint32_t made = 0; ///< its writer, in the table of its program; 0: none in this entry

  uint64_t bytes() const { return end - begin; }
};

/// In order, without gaps where it was read.
using Content = std::vector<Piece>;

/// Whether `next` goes on where `piece` ends, in the same value.
bool continues(const Piece &piece, const Piece &next);
/// Bytes [begin, end), counted from `begin`; unwritten ones are undefined.
Content cut(const Content &slot, uint64_t begin, uint64_t end);
/// The same into `found`.
void cut(const Content &slot, uint64_t begin, uint64_t end, Content &found);
/// Writes `content`, of `bytes` bytes, from `begin` on. Calls `replaced` with the overwritten content.
void put(Content &slot, uint64_t begin, uint64_t bytes, const Content &content);
/// One value of so many bytes.
inline Content whole(const Term &term, uint64_t bytes, uint32_t made = 0) { return {{0, bytes, term, made}}; }
/// Places where one of the contents changes from one piece to the next, and their end.
std::vector<uint64_t> bordersOf(const std::vector<const Content *> &contents);
/// The term at a byte of a content; `place` goes on from call to call.
Term termAt(const Content &content, uint64_t at, std::size_t &place);
/// Appends names and offsets of a content to a hash, and its spreads to `spread`.
uint64_t mixContent(uint64_t name, const Content &content, RankClasses &classes, RankClasses::Spread &spread);
/// Whether two ranks have the same values there.
bool sameContent(const Content &a, uint32_t rankA, const Content &b, uint32_t rankB, const RankClasses &classes);

} // namespace par::verify
