// A program on its way through an entry: what its slots hold, and what its instructions have made.
#pragma once

#include "Contents.h"
#include "par/format/Program.h"

#include <deque>
#include <map>
#include <unordered_map>

namespace par::verify {

/// An operand, or a part of one, that an instruction of a run has written, and its readers. Parts that a collective
/// writes are a *family*: only their readers may differ.
struct Made {
  const format::Run *run = nullptr;
  uint32_t n = 0, operand = 0;
  uint32_t family = 0; ///< the first part
  uint32_t uses = 0;   ///< of the family: the last of them, 0: none
  bool read = false;
  bool adds = false;   ///< to a value that a run of another microbatch has left there
  bool counts = false; ///< made only of counters, hyperparameters and constants
};

/// Kernels, calls and copies have made [first, end) of each of [from, to), which are of one family.
struct Use {
  uint32_t from, to, first, end;
  uint32_t before; ///< the one before of the family
};

/// Bytes [begin, end) of a state's slot: how often kernels and calls have written them, and how often others.
struct Written {
  uint64_t begin, end;
  uint32_t computed, moved;
};

/// A program on its way through an entry.
struct Cursor {
  uint32_t role = 0;
  std::vector<uint32_t> ranks;
  const format::Program *program = nullptr;
  const format::Entry *entry = nullptr;
  std::vector<std::vector<Content>> slots; ///< [buffer][slot], of those that are no alias
  std::deque<Made> made;                   ///< from 1 on; it grows without a copy
  std::vector<Use> uses;                   ///< from 1 on
  std::unordered_map<uint32_t, std::vector<uint32_t>>
      sums;            ///< by what was made: communicators over which it was summed
  uint32_t family = 0; ///< that is being made
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Written>> state; ///< by buffer and slot
  std::vector<bool> own; ///< [block]: it computes with values of one microbatch
  size_t run = 0;
  uint32_t n = 0;
  bool posted = false; ///< the communication there has given its operand

  const format::Instruction &instruction(const Made &it) const {
    return program->blocks[it.run->block].instructions[it.n];
  }
  /// Ranges of what is made of something, in the order in which it was made.
  std::vector<std::pair<uint32_t, uint32_t>> usersOf(uint32_t made) const;
  /// Notes that what is made from `first` on, up to now, is computed from a content.
  void noteUsers(const Content &content, size_t first);
  /// Notes that an instruction writes bytes of a slot of a state.
  void noteWritten(bool computes, uint32_t buffer, uint32_t slot, uint64_t begin, uint64_t bytes);
  /// Whether a value is computed from one that a run of an earlier microbatch has left, or, in place, from such a sum.
  bool addsUp(const format::Run &run, const Content &content, bool inPlace) const;
  /// Whether `ask` holds for one of what the pieces of a content were made as. One of each family is asked.
  template <typename Ask>
  bool anyFamily(const Content &content, Ask ask) const;
};

template <typename Ask>
bool Cursor::anyFamily(const Content &content, Ask ask) const {
  uint32_t before = 0;
  for (const Piece &piece : content) {
    if (piece.made == 0 || (before && made[piece.made].family == before))
      continue;
    before = made[piece.made].family;
    if (ask(made[piece.made]))
      return true;
  }
  return false;
}

} // namespace par::verify
