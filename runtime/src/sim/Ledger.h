// Which bytes each step of an expanded entry touches, by par-verify's table of accesses.
#pragma once

#include "par/device/Loader.h"
#include "verify/accesses/Accesses.h"

namespace par::sim {

/// One operand's bytes, read or written (or lost) by one instruction.
struct Access {
  verify::Touch touch;
  const std::byte *begin;
  uint64_t bytes;
  const core::Command *step;
  const format::Instruction *instruction; ///< the step's, or one of its group
  uint32_t operand;
};

class Ledger {
public:
  Ledger(const format::Bundle &bundle, uint32_t rank, const core::ExpandedEntry &entry);

  /// Numbers of the accesses of one piece of a step: of a group the communication, otherwise the only one.
  std::pair<uint32_t, uint32_t> of(uint32_t step, uint32_t piece) const { return ranges[step][piece]; }
  const Access &operator[](uint32_t number) const { return accesses[number]; }
  /// "stage0/forward:12  writes 'x3' on queue compute, microbatch 0".
  std::string describe(uint32_t number) const;

private:
  void add(const core::Command &step, const format::Instruction &instruction, const comm::Communication *c);
  void *operandOf(const core::Command &step, uint32_t operand, const comm::Communication *c) const;

  const format::Bundle &bundle;
  const format::Program &program;
  uint32_t rank;
  const core::ExpandedEntry &entry;
  std::vector<Access> accesses;
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> ranges; ///< [step][piece]
};

} // namespace par::sim
