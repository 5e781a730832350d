//===- Batches.cpp - V5: of which batch, version and microbatches a value is --------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What has a slot by microbatch or version is known by its index. The rules here are for what has none: parameters that
// several batches of an entry update, sums over microbatches, and what a batch makes once.
//
//===----------------------------------------------------------------------===//
#include "Sweep.h"

using namespace par;
using namespace par::format;
using namespace par::verify;

/// Sums of several runs: temporary, and a block adds to what it has not written itself.
void Sweep::findSums() {
  sums.assign(program.buffers.size(), false);
  for (const auto &block : program.blocks) {
    std::vector<bool> written(program.buffers.size(), false);
    for (const Instruction &it : block.instructions)
      for (const Operand &operand : it.operands) {
        uint32_t of = program.buffers[operand.buffer].of, root = of == kNone ? operand.buffer : of;
        bool added = operand.access == Access::Accumulate || operand.access == Access::ReadWrite;
        if (added && !written[root] && program.buffers[root].kind == BufferKind::Temp && program.buffers[root].index == Index::None)
          sums[root] = true;
        if (operand.access != Access::Read)
          written[root] = true;
      }
  }
}

/// Where several batches of an entry update a parameter, a run computes with that of its version: as many runs have written
/// it. What a run has written itself it may read again, but not copy as what was there before.
bool Sweep::isOtherVersion(const Cell &cell, const Run &run, bool copies) const {
  return isParameter(cell.root) && (cell.updater != &run || copies) && cell.updates != uint64_t(run.version);
}

bool Sweep::isParameter(uint32_t root) const {
  const Buffer &buffer = program.buffers[root];
  const Tensor *tensor = buffer.kind == BufferKind::State ? bundle.manifest.findTensor(buffer.tensor) : nullptr;
  return tensor && (tensor->kind == TensorKind::Parameter || tensor->kind == TensorKind::Copy);
}

/// Whether an access in place adds a microbatch's summand to those of others; what a batch does once has its first one's number.
bool Sweep::adds(const Cell &cell, const Run &run, Access access) const {
  if (access != Access::ReadWrite || !cell.definition)
    return access == Access::Accumulate;
  return definitions[cell.definition].run->microbatch != run.microbatch && run.microbatch % bundle.manifest.microbatches != 0;
}

/// A sum is not begun anew before somebody has read it.
Found Sweep::leavesUnread(const Run &run, uint32_t n, const Placed &placed, const Cell &cell) const {
  const Definition &before = definitions[cell.definition];
  if (!sums[placed.access.root] || cell.root != placed.access.root || !cell.definition || before.run == &run || cell.reader)
    return std::nullopt;
  return Counterexample{Property::Value,
                        "lost: " + value(placed.access.root, indexOf(placed.access, run)) +
                            " is summed anew before the sum that it has is read",
                        {line(before), line({&run, n})}};
}

/// What has no slot by microbatch or version is of one batch, and read for that one.
Found Sweep::ofOtherBatch(const Run &run, uint32_t n, const Placed &placed, const Cell &cell) const {
  const Buffer &buffer = program.buffers[placed.access.root];
  if (!versioned || buffer.kind != BufferKind::Temp || buffer.index != Index::None || !cell.definition)
    return std::nullopt;
  const Definition &maker = definitions[cell.definition];
  auto batchOf = [&](const Run &of) { return of.microbatch / int64_t(bundle.manifest.microbatches); };
  if (batchOf(*maker.run) == batchOf(run))
    return std::nullopt;
  return Counterexample{Property::Value,
                        "batch: " + value(placed.access.root, indexOf(placed.access, run)) + " is read for batch " +
                            std::to_string(batchOf(run)) + ", but was made for batch " + std::to_string(batchOf(*maker.run)),
                        {line(maker), line({&run, n})}};
}
