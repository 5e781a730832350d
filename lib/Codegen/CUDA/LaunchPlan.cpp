#include "LaunchPlan.h"

#include "Combiner.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace par::cuda {

using codegen::KernelPlan;
using codegen::Nest;
using codegen::Place;

namespace {

constexpr unsigned warp = 32, mostMembers = 512;
/// Threads that keep a large GPU busy: some 130 processors of 1,024 each.
constexpr int64_t busy = 128 * 1024;
/// Blocks that take rows in turn, where each needs memory of its own.
constexpr int64_t mostBlocks = 1024;
/// Elements of a row from which on several threads share it.
constexpr int64_t sharedWork = 32;
/// Elements that a thread of several rows loads and stores: they are in registers at the same time.
constexpr int64_t mostHeld = 64;
/// Bytes of values that one thread keeps for its row.
constexpr uint64_t ownBytes = 1024;

/// What the nests of a plan have for several threads of one row.
struct RowWork {
  int64_t elements = 1;    ///< the most elements of one nest that are no reductions
  int64_t reduced = 1;     ///< the longest reduction that can be joined from parts
  bool acrossRows = false; ///< that one reads memory in the order of rows
};

int64_t countIterations(const Nest &nest, ArrayRef<unsigned> loops) {
  int64_t all = 1;
  for (unsigned loop : loops)
    all *= nest.loops[loop];
  return all;
}

RowWork measure(const KernelPlan &plan) {
  RowWork work;
  for (const Nest &nest : plan.nests) {
    int64_t reduced = countIterations(nest, nest.reducedLoops);
    work.elements = std::max(work.elements, countIterations(nest, nest.freeLoops()));
    if (reduced <= work.reduced || !findCombiner(nest.op))
      continue;
    work.reduced = reduced;
    work.acrossRows = llvm::is_contained(nest.resultLoops, nest.innermost);
  }
  return work;
}

/// Elements of 16 bytes in the narrowest format that the kernel reads or writes.
unsigned elementsOfAccess(const KernelPlan &plan) {
  uint64_t narrowest = 8;
  auto see = [&](Value value) {
    narrowest = std::min(narrowest, codegen::elementBytes(getElementTypeOrSelf(value.getType())));
  };
  for (const Nest &nest : plan.nests) {
    see(nest.value());
    for (const codegen::Read &read : nest.reads)
      see(read.source);
  }
  return 16 / std::max<uint64_t>(narrowest, 2);
}

/// Places in memory that one row reads or writes, as far as they are different tensors.
int64_t countTensors(const KernelPlan &plan) {
  llvm::DenseSet<Value> read;
  int64_t written = 0;
  for (const Nest &nest : plan.nests) {
    written += nest.results.size();
    for (const codegen::Read &each : nest.reads)
      read.insert(each.source);
  }
  return written + int64_t(read.size());
}

/// One thread a row, or several rows where there are enough of them and they lie together.
void shareRows(LaunchPlan &launch, const KernelPlan &plan) {
  int64_t last = 1;
  for (int64_t size : plan.rowLoops)
    if (size > 1)
      last = size;
  launch.kind = LaunchPlan::Rows;
  bool reduces = llvm::any_of(plan.nests, [](const Nest &nest) { return nest.isReduction(); });
  for (unsigned several = reduces ? 1 : elementsOfAccess(plan); several > 1; several /= 2)
    if (last % several == 0 && launch.rows / several >= busy && several * countTensors(plan) <= mostHeld) {
      launch.perThread = several;
      break;
    }
  launch.blockRows = 256;
  launch.grid =
      std::max<int64_t>(llvm::divideCeil(launch.rows, int64_t(launch.blockRows) * launch.perThread), 1);
}

/// Threads for `extent` elements of a row: about four each where rows are many.
unsigned membersFor(int64_t extent, int64_t rows) {
  int64_t each = rows * extent / 4 >= busy ? 4 : 1;
  return std::clamp<int64_t>(llvm::PowerOf2Ceil(std::max<int64_t>(extent / each, 1)), warp, mostMembers);
}

void shareColumns(LaunchPlan &launch, const RowWork &work) {
  launch.kind = LaunchPlan::Columns;
  launch.blockRows = warp;
  launch.members = std::clamp<int64_t>(llvm::PowerOf2Ceil(work.reduced / 8), 2, 16);
  launch.grid = std::max<int64_t>(llvm::divideCeil(launch.rows, int64_t(launch.blockRows)), 1);
  launch.sharedBytes = uint64_t(launch.threads()) * 8;
}

void shareInTeams(LaunchPlan &launch, const KernelPlan &plan, const RowWork &work) {
  launch.kind = LaunchPlan::Team;
  launch.members = membersFor(std::max(work.elements, work.reduced), launch.rows);
  launch.blockRows = launch.members == warp && launch.rowBytes * 8 <= sharedLimit / 2 ? 8 : 1;
  int64_t blocks = llvm::divideCeil(std::max<int64_t>(launch.rows, 1), int64_t(launch.blockRows));
  launch.grid = plan.scratchBytes ? std::min(blocks, mostBlocks) : blocks;
  // Behind the rows' values: eight bytes a warp for reductions.
  launch.sharedBytes = launch.blockRows * launch.rowBytes + mostMembers / warp * 8;
}

} // namespace

codegen::PlanOptions planOptions() {
  codegen::PlanOptions options;
  options.stackLimit = 32 << 10;
  options.manyRows = true;
  return options;
}

LaunchPlan chooseLaunch(const KernelPlan &plan) {
  LaunchPlan launch;
  for (int64_t size : plan.rowLoops)
    launch.rows *= size;
  for (const Nest &nest : plan.nests)
    if (nest.place == Place::Stack)
      launch.rowBytes += llvm::alignTo(plan.bytesPerRow(nest), 16);
  RowWork work = measure(plan);
  bool alone = launch.rowBytes <= ownBytes && !plan.scratchBytes;
  if (alone && work.elements < sharedWork &&
      (work.reduced < sharedWork || (work.acrossRows && launch.rows >= busy)))
    shareRows(launch, plan);
  else if (work.elements == 1 && work.acrossRows && alone)
    shareColumns(launch, work);
  else
    shareInTeams(launch, plan, work);
  return launch;
}

} // namespace par::cuda
