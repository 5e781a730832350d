// A program laid out for one rank: entries expanded once into flat lists of steps whose operands are addresses of the
// device's arenas. Nothing here touches these bytes; the device binds each step's kernel or call by the tables of the
// program (step.instruction->kernel, step.instruction->call).
#pragma once

#include "par/comm/engine/Communicator.h"
#include "par/format/Bundle.h"

#include <memory>

namespace par::core {

/// One instruction of one run. Which fields count depends on `op`.
struct Command {
  format::Op op = format::Op::Kernel;
  uint32_t queue = 0;
  const char *id = ""; ///< "stage0/forward:12"
  int64_t microbatch = 0;
  uint32_t run = 0;                                 ///< index into ExpandedEntry::runs
  const format::Instruction *instruction = nullptr; ///< its source
  uint32_t operands = 0;                            ///< index of the first in ExpandedEntry::pointers
  // kernel
  uint32_t immediates = 0; ///< index of the first in ExpandedEntry::immediates
  // coll, send, recv, group: `units` communications from `firstUnit`
  uint32_t firstUnit = 0, units = 0;
  // wait: the step that signals, or -1
  int64_t awaited = -1;
  // copy, fill, feed, fetch
  uint64_t bytes = 0;
  format::DType type = format::DType::F32;
  double value = 0;
  const format::Input *input = nullptr;
  const format::Output *output = nullptr;
};

/// An entry as a flat list in issue order.
struct ExpandedEntry {
  std::string name;
  std::span<const format::Run> runs; ///< of the program
  std::vector<Command> steps;
  /// The index of a step: before it is issued no state has been written.
  size_t firstWrite = SIZE_MAX;
  std::vector<void *> pointers;
  std::vector<uint64_t> immediates;
  std::vector<comm::Communication> communications;
};

/// Begins of one rank's memory, as its device addresses it.
struct Arenas {
  std::byte *dev = nullptr, *host = nullptr;
};

/// The program that one rank runs, with its addresses.
class LoadedProgram {
public:
  /// `folder` is the bundle's, for messages.
  LoadedProgram(const format::Bundle &bundle, const std::string &folder, uint32_t rank, Arenas arenas);

  const format::Program &program() const { return source; }
  /// Throws Failure if the program has no such entry.
  const ExpandedEntry &entry(const std::string &name);
  bool has(const std::string &name) const { return source.findEntry(name) != format::noIndex; }
  /// Device address of slot `slot` of a buffer.
  std::byte *address(uint32_t buffer, uint32_t slot) const;

private:
  friend class Expander;

  const format::Bundle &bundle;
  const format::Program &source;
  std::string place;
  uint32_t rank;
  Arenas arenas;
  std::vector<std::vector<std::string>> ids; ///< by block, by instruction
  std::vector<std::unique_ptr<ExpandedEntry>> expanded;
};

} // namespace par::core
