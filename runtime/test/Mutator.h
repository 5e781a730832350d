// Mutates one program.
#pragma once

#include "Mutations.h"

namespace par::toy {

/// An instruction of a block that some entry runs.
struct Spot {
  uint32_t block, n;
};

/// Mutations of communication, of memory, of queues and of runs have a file each: MutateCommunications.cpp, ...
class Mutator {
public:
  Mutator(const format::Manifest &manifest, format::Program &program, uint32_t rank, Random &random)
      : manifest(manifest), program(program), rank(rank), random(random) {}
  bool apply(Mutation mutation);
  std::string what;

private:
  bool drop(Spot spot);
  bool duplicate(Spot spot);
  bool swap(Spot spot);
  bool peer(Spot spot);
  bool count(Spot spot);
  bool type(Spot spot);
  bool reduction(Spot spot);
  bool group(Spot spot);
  bool order(Spot spot);
  bool slot(Spot spot);
  bool depth();
  bool offset();
  bool place();
  bool alias();
  bool dropEvent(format::Op op);
  bool event();
  bool queue();
  bool queueOfComm(uint32_t comm, uint32_t to);
  bool move();
  bool swapRuns();
  bool moveRun();
  bool otherBlock();
  bool otherMicrobatch();
  std::vector<format::Run> *longEntry();

  template <typename Wanted>
  std::vector<Spot> spotsWhere(Wanted wanted) const;
  std::vector<Spot> spots(bool communications) const;
  std::vector<uint32_t> usedBuffers(bool slotted) const;
  std::vector<format::Instruction> &list(Spot spot) { return program.blocks[spot.block].instructions; }
  format::Instruction &at(Spot spot) { return list(spot)[spot.n]; }
  format::Instruction *groupOf(Spot spot);
  template <typename T>
  const T &pick(const std::vector<T> &from) {
    return from[random.below(from.size())];
  }
  void say(Spot spot, const std::string &text) {
    what = format::instructionId(program, spot.block, spot.n) + " " + text;
  }

  const format::Manifest &manifest;
  format::Program &program;
  uint32_t rank;
  Random &random;
};

inline bool isCommunication(const format::Instruction &it) {
  return it.op == format::Op::Coll || it.op == format::Op::Send || it.op == format::Op::Recv;
}

template <typename Wanted>
std::vector<Spot> Mutator::spotsWhere(Wanted wanted) const {
  std::vector<bool> runs(program.blocks.size());
  for (const format::Entry &entry : program.entries)
    for (const format::Run &run : entry.runs)
      runs[run.block] = true;
  std::vector<Spot> found;
  for (uint32_t block = 0; block < program.blocks.size(); ++block)
    for (uint32_t n = 0; runs[block] && n < program.blocks[block].instructions.size(); ++n) {
      if (wanted(program.blocks[block].instructions[n]))
        found.push_back({block, n});
    }
  return found;
}

} // namespace par::toy
