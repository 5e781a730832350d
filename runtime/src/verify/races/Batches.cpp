// V5: batch, version and microbatches of a value. A buffer with slots by microbatch or version identifies them by its
// index. The rules here are for buffers without slots: parameters that several batches of an entry update, sums over
// microbatches, and values made once a batch.
#include "AccessSweep.h"

#include <algorithm>

using namespace par;
using namespace par::format;
using namespace par::verify;

/// Sums of several runs: temporary, and a block adds to a value that another one wrote.
void AccessSweep::findSums() {
  sums.assign(program.buffers.size(), false);
  for (const auto &block : program.blocks) {
    std::vector<bool> written(program.buffers.size(), false);
    for (const Instruction &it : block.instructions)
      for (const Operand &operand : it.operands) {
        uint32_t of = program.buffers[operand.buffer].of, root = of == noIndex ? operand.buffer : of;
        bool added = operand.access == Access::Accumulate || operand.access == Access::ReadWrite;
        if (added && !written[root] && program.buffers[root].kind == BufferKind::Temp &&
            program.buffers[root].index == Index::None)
          sums[root] = true;
        if (operand.access != Access::Read)
          written[root] = true;
      }
  }
}

bool par::verify::computesOwn(const Program &program, const Block &block) {
  return std::any_of(block.instructions.begin(), block.instructions.end(), [&](const Instruction &it) {
    return (it.op == Op::Kernel || it.op == Op::Call) &&
           std::any_of(it.operands.begin(), it.operands.end(), [&](const Operand &operand) {
             return operand.slot.base == SlotExpr::Mb && program.buffers[operand.buffer].index == Index::Mb;
           });
  });
}

void AccessSweep::findMicrobatches(const Entry &entry) {
  sets.assign(1, {});
  grown.clear();
  computed.clear();
  whole = {-1};
  taken.assign(program.buffers.size(), {});
  own.clear();
  for (const Block &block : program.blocks)
    own.push_back(computesOwn(program, block));
  for (const Run &run : entry.runs)
    if (own[run.block])
      computed[batchOf(run)].push_back(run.microbatch);
}

uint32_t AccessSweep::withSummand(uint32_t set, int64_t microbatch) {
  auto [known, fresh] = grown.try_emplace({set, microbatch}, set);
  for (uint32_t at = set; fresh && at; at = sets[at].parent)
    if (sets[at].microbatch == microbatch)
      return set;
  if (fresh) {
    known->second = uint32_t(sets.size());
    sets.push_back({set, microbatch});
  }
  return known->second;
}

/// The summands of a sum that a run overwrites: those that it has read there itself. It brings the sum back from the
/// place where it added its own or a collective left it; its bytes may have held something else meanwhile.
uint32_t AccessSweep::broughtBack(const Run &run, uint32_t root) const {
  return taken[root].first == &run ? taken[root].second : 0;
}

/// A sum that another run reads, other than to add to it in place, has a summand of each microbatch of its batch. The
/// last one may read it to add its own on the way to elsewhere.
Found AccessSweep::lacksSummand(const Run &run, uint32_t n, const Placed &placed, const Cell &cell) {
  std::array<int64_t, 3> asked = {cell.summands, batchOf(run), own[run.block] ? run.microbatch : -1};
  if (!sums[placed.access.root] || !cell.definition || cell.begun == &run || asked == whole)
    return std::nullopt;
  std::set<int64_t> added = {asked[2]};
  for (uint32_t at = cell.summands; at; at = sets[at].parent)
    added.insert(sets[at].microbatch);
  for (int64_t microbatch : computed[asked[1]])
    if (!added.count(microbatch))
      return Counterexample{Property::Value,
                            "lacks: " + value(placed.access.root, indexOf(placed.access, run)) +
                                " is read as a sum, but microbatch " + std::to_string(microbatch) +
                                " has not added to it",
                            {line(definitions[cell.definition]), line({&run, n})}};
  whole = asked;
  return std::nullopt;
}

/// If several batches of an entry update a parameter, a run computes with the value of its version: as many runs have
/// written it. A run may read its own update again, but not copy it as the value before.
bool AccessSweep::isOtherVersion(const Cell &cell, const Run &run, bool copies) const {
  return isParameter(cell.root) && (cell.updater != &run || copies) && cell.updates != uint64_t(run.version);
}

bool AccessSweep::isParameter(uint32_t root) const {
  const Buffer &buffer = program.buffers[root];
  const Tensor *tensor = buffer.kind == BufferKind::State ? bundle.manifest.findTensor(buffer.tensor) : nullptr;
  return tensor && (tensor->kind == TensorKind::Parameter || tensor->kind == TensorKind::Copy);
}

/// Whether an access in place adds a microbatch's summand to those of others; a run once a batch has the index of its
/// first one.
bool AccessSweep::adds(const Cell &cell, const Run &run, Access access) const {
  if (access != Access::ReadWrite || !cell.definition)
    return access == Access::Accumulate;
  return definitions[cell.definition].run->microbatch != run.microbatch &&
         run.microbatch % bundle.manifest.microbatches != 0;
}

/// A sum is not started again before it has been read.
Found AccessSweep::leavesUnread(const Run &run, uint32_t n, const Placed &placed, const Cell &cell) const {
  const Definition &before = definitions[cell.definition];
  if (!sums[placed.access.root] || cell.root != placed.access.root || !cell.definition || before.run == &run ||
      cell.reader)
    return std::nullopt;
  return Counterexample{Property::Value,
                        "lost: " + value(placed.access.root, indexOf(placed.access, run)) +
                            " starts a new sum before its earlier sum is read",
                        {line(before), line({&run, n})}};
}

/// A value without a slot by microbatch or version belongs to one batch, and is read only for that one.
Found AccessSweep::ofOtherBatch(const Run &run, uint32_t n, const Placed &placed, const Cell &cell) const {
  const Buffer &buffer = program.buffers[placed.access.root];
  if (!versioned || buffer.kind != BufferKind::Temp || buffer.index != Index::None || !cell.definition)
    return std::nullopt;
  const Definition &maker = definitions[cell.definition];
  if (batchOf(*maker.run) == batchOf(run))
    return std::nullopt;
  return Counterexample{Property::Value,
                        "batch: " + value(placed.access.root, indexOf(placed.access, run)) + " is read for batch " +
                            std::to_string(batchOf(run)) + ", but was made for batch " +
                            std::to_string(batchOf(*maker.run)),
                        {line(maker), line({&run, n})}};
}

/// Tags of sends into copies of parameters on other ranks.
void AccessSweep::findCopies() {
  for (const Program &other : bundle.programs)
    for (const Block &block : other.blocks)
      for (const Instruction &it : block.instructions) {
        const Buffer *buffer = it.op == Op::Recv ? &other.buffers[it.operands[0].buffer] : nullptr;
        const Tensor *tensor =
            buffer && buffer->kind == BufferKind::State ? bundle.manifest.findTensor(buffer->tensor) : nullptr;
        if (tensor && tensor->kind == TensorKind::Copy)
          copies.insert(it.tag);
      }
}

/// A copy gets the value after its batch's update, or after the entry if that is one batch.
void AccessSweep::noteCopied(const Run &run, uint32_t n, const Placed &placed, uint32_t cell) {
  const Instruction &it = program.blocks[run.block].instructions[n];
  if (it.op == Op::Send && isParameter(placed.access.root) && copies.count(it.tag))
    copied.push_back({&run, n, placed.access.root, cell, cells[cell].updates});
}

Found AccessSweep::copiesAreNew() const {
  for (const Copied &it : copied) {
    uint64_t updates = bundle.manifest.calls > 1 ? uint64_t(batchOf(*it.run)) + 1 : cells[it.cell].updates;
    if (it.updates != updates && cells[it.cell].updates != 0)
      return Counterexample{Property::Value,
                            "old: parameter '" + program.buffers[it.root].tensor + "' is sent to its copy after " +
                                std::to_string(it.updates) + " of " + std::to_string(updates) + " updates",
                            {line({it.run, it.n})}};
  }
  return std::nullopt;
}
