// Mutations of the order of runs: the schedule's table.
#include "Mutator.h"

using namespace par::format;
using namespace par::toy;

static std::string describe(const Program &program, const Run &run) {
  return "run " + program.blocks[run.block].name + " of microbatch " + std::to_string(run.microbatch);
}

/// An entry with at least two runs.
std::vector<Run> *Mutator::longEntry() {
  if (program.entries.empty())
    return nullptr;
  std::vector<Run> &runs = program.entries[random.below(program.entries.size())].runs;
  return runs.size() < 2 ? nullptr : &runs;
}

/// Two slots change places.
bool Mutator::swapRuns() {
  std::vector<Run> *runs = longEntry();
  if (!runs)
    return false;
  size_t a = random.below(runs->size()), b = random.below(runs->size());
  what = describe(program, (*runs)[a]) + " and " + describe(program, (*runs)[b]) + " swapped";
  std::swap((*runs)[a], (*runs)[b]);
  return a != b;
}

/// A slot stands elsewhere in the table.
bool Mutator::moveRun() {
  std::vector<Run> *runs = longEntry();
  if (!runs)
    return false;
  size_t from = random.below(runs->size()), to = random.below(runs->size());
  Run run = (*runs)[from];
  runs->erase(runs->begin() + from);
  runs->insert(runs->begin() + to, run);
  what = describe(program, run) + " moved from place " + std::to_string(from) + " to " + std::to_string(to);
  return from != to;
}

/// A slot runs what another one does, of another chunk or the other direction.
bool Mutator::otherBlock() {
  std::vector<Run> *runs = longEntry();
  if (!runs)
    return false;
  Run &run = (*runs)[random.below(runs->size())];
  uint32_t block = (*runs)[random.below(runs->size())].block;
  what = describe(program, run) + " became one of " + program.blocks[block].name;
  bool other = block != run.block;
  run.block = block;
  return other;
}

/// A slot is of another microbatch.
bool Mutator::otherMicrobatch() {
  std::vector<Run> *runs = longEntry();
  if (!runs)
    return false;
  Run &run = (*runs)[random.below(runs->size())];
  int64_t microbatch = (*runs)[random.below(runs->size())].microbatch;
  what = describe(program, run) + " became one of microbatch " + std::to_string(microbatch);
  bool other = microbatch != run.microbatch;
  run.microbatch = microbatch;
  return other;
}
