// Chooses blocks and threads of a GPU kernel: rows a thread, threads a row or columns a thread, from the row's length,
// the number of rows and the values that one thread can hold in registers. The thresholds at the top were measured
// (bench/README.md).
#include "LaunchPlan.h"

#include "../Combiner.h"
#include "RegisterRow.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace par::cuda {

using codegen::KernelPlan;
using codegen::Nest;
using codegen::Place;

namespace {

/// Threads that keep a large GPU busy: some 130 processors of 1,024 each.
constexpr int64_t busy = 128 * 1024;
/// Threads that give each processor a warp: with fewer, none has several rows.
constexpr int64_t fewThreads = 128 * warp;
/// Blocks that take rows in turn, where each needs memory of its own.
constexpr int64_t maxBlocks = 1024;
/// Blocks with which every processor has one, and from which on all have about as many.
constexpr int64_t fewBlocks = 128, manyBlocks = 264;
/// Elements of a row from which on several threads share it.
constexpr int64_t sharedWork = 32;
/// Elements that a thread loads at once in loops over a row, and over columns; and with low register pressure.
constexpr unsigned rowItems = 16, columnItems = 32, minItems = 4;
/// Elements that a thread of several rows loads and stores: they are in registers at the same time.
constexpr int64_t maxHeld = 64;
/// Values of a row that a thread of a block holds; of one with more than 256 threads, where it has 128
/// registers.
constexpr unsigned maxKept = 96, maxKeptInLarge = 48, maxElements = 32;
/// Bytes of values that one thread keeps for its row.
constexpr uint64_t ownBytes = 1024;

/// Work for several threads of one row in the nests of a plan.
struct RowWork {
  int64_t elements = 1;    ///< the most elements of one nest that are no reductions
  int64_t reduced = 1;     ///< the longest reduction that can be joined from parts
  bool acrossRows = false; ///< that one reads memory in the order of rows
  bool updates = false;    ///< some nest goes from index to element
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
    work.updates |= nest.addressed.has_value();
    if (reduced <= work.reduced || !codegen::findCombiner(nest.op))
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
    narrowest = std::min(narrowest, getElementBytes(getElementTypeOrSelf(value.getType())));
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

unsigned countReductions(const KernelPlan &plan) {
  return llvm::count_if(plan.nests, [](const Nest &nest) { return nest.isReduction(); });
}

/// Size of the row loop along which rows are neighbours.
int64_t lastRowLoop(const KernelPlan &plan) {
  for (int64_t size : llvm::reverse(plan.rowLoops))
    if (size != 1)
      return size;
  return 1;
}

/// One thread a row, or several rows where there are enough of them and they lie together.
void shareRows(LaunchPlan &launch, const KernelPlan &plan, bool lowRegisterPressure) {
  int64_t last = lastRowLoop(plan);
  launch.kind = LaunchPlan::Rows;
  for (unsigned several = lowRegisterPressure || countReductions(plan) ? 1 : elementsOfAccess(plan); several > 1;
       several /= 2)
    if (last % several == 0 && launch.rows / several >= fewThreads && several * countTensors(plan) <= maxHeld) {
      launch.perThread = several;
      break;
    }
  launch.blockRows = 256;
  int64_t threads = launch.rows / launch.perThread;
  while (launch.blockRows > 2 * warp && threads < manyBlocks * launch.blockRows)
    launch.blockRows /= 2;
  launch.grid = std::max<int64_t>(llvm::divideCeil(threads, int64_t(launch.blockRows)), 1);
}

/// Threads for `extent` elements of a row, `each` of them one after another where rows are many.
unsigned membersFor(int64_t extent, int64_t rows, int64_t each) {
  if (rows * extent / each < busy)
    each = 1;
  return std::clamp<int64_t>(llvm::PowerOf2Ceil(std::max<int64_t>(extent / each, 1)), warp, maxThreadsPerRow);
}

/// Several neighbouring columns a thread, as many threads down as the sum is long and the GPU wants; across,
/// 8 at least, which with 16 bytes each is a line of the cache, or half of that for the sake of more blocks.
void shareColumns(LaunchPlan &launch, const KernelPlan &plan, const RowWork &work, bool lowRegisterPressure) {
  launch.kind = LaunchPlan::Columns;
  int64_t last = lastRowLoop(plan);
  launch.itemsPerThread = lowRegisterPressure ? minItems : columnItems;
  launch.perThread = std::min(elementsInOrder(plan), launch.itemsPerThread);
  while (last % launch.perThread)
    launch.perThread /= 2;
  int64_t columns = launch.rows / launch.perThread;
  launch.threadsPerRow = 1;
  while (columns * launch.threadsPerRow < busy && launch.threadsPerRow * 4 <= work.reduced && launch.threadsPerRow < 64)
    launch.threadsPerRow *= 2;
  launch.blockRows = std::max(256 / launch.threadsPerRow, 8u);
  while (launch.blockRows > 8 && launch.threads() > 2 * warp && columns < manyBlocks * launch.blockRows)
    launch.blockRows /= 2;
  if (launch.blockRows == 8 && launch.threads() > 2 * warp && columns < fewBlocks * launch.blockRows)
    launch.blockRows = 4;
  launch.grid = std::max<int64_t>(llvm::divideCeil(columns, int64_t(launch.blockRows)), 1);
  uint64_t parts = launch.threadsPerRow * std::min(launch.blockRows, warp) / warp;
  if (launch.threadsPerRow > 1)
    launch.sharedBytes = parts * launch.blockRows * launch.perThread * partBytes;
}

/// False where the row is too long for registers.
bool shareRegisterRow(LaunchPlan &launch, const RegisterRow &row) {
  int64_t chunks = row.elements / row.access;
  auto turnsWithin = [&](unsigned kept) {
    return std::max<int64_t>(std::min(kept / row.kept, maxElements) / row.access, 1);
  };
  int64_t most = turnsWithin(maxKept);
  if (chunks > most * 256)
    most = turnsWithin(maxKeptInLarge);
  if (chunks > most * maxThreadsPerRow || row.kept * row.access > maxKeptInLarge)
    return false;
  int64_t chunksPerThread = std::clamp<int64_t>(launch.rows * chunks / busy, 1, most);
  chunksPerThread = std::max<int64_t>(chunksPerThread, llvm::divideCeil(chunks, int64_t(maxThreadsPerRow)));
  int64_t threadsPerRow = llvm::divideCeil(chunks, chunksPerThread);
  launch.kind = LaunchPlan::InRegisters;
  launch.threadsPerRow = threadsPerRow <= warp ? llvm::PowerOf2Ceil(threadsPerRow) : llvm::alignTo(threadsPerRow, warp);
  launch.perThread = row.access;
  launch.chunksPerThread = llvm::divideCeil(chunks, int64_t(launch.threadsPerRow));
  launch.blockRows = std::max(256 / launch.threadsPerRow, 1u);
  if (launch.threadsPerRow > warp)
    launch.blockRows = 1; // a row has the block's syncs for itself
  while (launch.blockRows > 1 && launch.threads() > 2 * warp && launch.rows < manyBlocks * launch.blockRows)
    launch.blockRows /= 2;
  launch.grid = std::max<int64_t>(llvm::divideCeil(launch.rows, int64_t(launch.blockRows)), 1);
  return true;
}

/// A lone nest whose threads have a row each for good: one that goes from element to element, or whose neighbouring
/// rows are neighbours in memory.
bool goesInOrder(const LaunchPlan &launch, const KernelPlan &plan) {
  const Nest &nest = plan.nests.front();
  if (plan.nests.size() > 1 || !nest.wholeLoop())
    return false;
  std::optional<unsigned> last = lastLoop(nest, nest.resultLoops);
  return nest.running || (last != nest.wholeLoop() && launch.rows >= fewThreads);
}

/// Each thread looks at all indices of its row and takes those of its own elements: a warp does as one thread would,
/// and more are for GPUs that are not busy with the rows.
unsigned membersForUpdates(int64_t elements, int64_t rows) {
  unsigned threadsPerRow = warp;
  while (threadsPerRow < maxThreadsPerRow && threadsPerRow < elements && rows * threadsPerRow < busy)
    threadsPerRow *= 2;
  return threadsPerRow;
}

void shareInGroups(LaunchPlan &launch, const KernelPlan &plan, const RowWork &work, bool lowRegisterPressure) {
  launch.kind = LaunchPlan::Cooperative;
  launch.itemsPerThread = lowRegisterPressure ? minItems : rowItems;
  launch.perThread = std::min(elementsInOrder(plan), launch.itemsPerThread);
  launch.threadsPerRow =
      work.updates ? membersForUpdates(work.elements, launch.rows)
                   : membersFor(std::max(work.elements, work.reduced), launch.rows, std::max(launch.perThread, 4u));
  launch.blockRows = launch.threadsPerRow == warp && launch.rowBytes * 8 <= sharedLimit / 2 ? 8 : 1;
  int64_t blocks = llvm::divideCeil(std::max<int64_t>(launch.rows, 1), int64_t(launch.blockRows));
  launch.grid = plan.scratchBytes ? std::min(blocks, maxBlocks) : blocks;
  launch.scratchBytes = plan.scratchBytes;
  launch.sharedBytes = launch.blockRows * launch.rowBytes + slotBytes; // after the rows' values
}

} // namespace

codegen::PlanOptions planOptions() {
  codegen::PlanOptions options;
  options.sideBySide = busy;
  options.stackLimit = 32 << 10;
  options.manyRows = true;
  return options;
}

LaunchPlan chooseLaunch(const KernelPlan &plan, bool lowRegisterPressure) {
  LaunchPlan launch;
  launch.oneBlock = launch.joinsAtOnce = lowRegisterPressure;
  for (int64_t size : plan.rowLoops)
    launch.rows *= size;
  for (const Nest &nest : plan.nests)
    if (nest.place == Place::Stack)
      launch.rowBytes += llvm::alignTo(plan.bytesPerRow(nest), 16);
  RowWork work = measure(plan);
  bool alone = launch.rowBytes <= ownBytes && !plan.scratchBytes;
  if (alone && work.elements == 1 && work.acrossRows) {
    shareColumns(launch, plan, work, lowRegisterPressure);
    return launch;
  }
  bool few = work.elements < sharedWork && work.reduced < sharedWork;
  if (alone && (few || goesInOrder(launch, plan))) {
    shareRows(launch, plan, lowRegisterPressure);
    return launch;
  }
  std::optional<RegisterRow> row = findRegisterRow(plan);
  if (!lowRegisterPressure && row && shareRegisterRow(launch, *row))
    launch.sharedBytes = launch.threadsPerRow > warp ? slotBytes * countReductions(plan) : 0;
  else
    shareInGroups(launch, plan, work, lowRegisterPressure);
  return launch;
}

} // namespace par::cuda
