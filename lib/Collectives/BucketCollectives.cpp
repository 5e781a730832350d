#include "Reductions.h"
#include "par/Collectives/Passes.h"
#include "par/Interfaces/Cost.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_BUCKETCOLLECTIVESPASS
#include "par/Collectives/Passes.h.inc"

namespace {

/// All-reduces that may be one.
struct Bucket {
  SmallVector<AllReduceOp> members;
  size_t values = 0;
  int64_t bytes = 0;
  Operation *place = nullptr; ///< its last operand's
  Operation *need = nullptr;  ///< the first op that needs a result
};

struct BucketCollectivesPass : impl::BucketCollectivesPassBase<BucketCollectivesPass> {
  using BucketCollectivesPassBase::BucketCollectivesPassBase;

  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>())
        runOnBlock(block);
  }

  void runOnBlock(BlockOp block);
  bool join(Bucket &bucket, AllReduceOp reduce);
};

} // namespace

static int64_t bytesOf(AllReduceOp reduce) {
  int64_t bytes = 0;
  for (Type type : reduce.getResultTypes())
    bytes += getByteSize(type);
  return bytes;
}

static Operation *later(Operation *a, Operation *b) { return !a || (b && a->isBeforeInBlock(b)) ? b : a; }
static Operation *earlier(Operation *a, Operation *b) { return !a || (b && b->isBeforeInBlock(a)) ? b : a; }

/// Adds a reduction if it is of the bucket's kind and nobody needs a result before the last operand is there.
bool BucketCollectivesPass::join(Bucket &bucket, AllReduceOp reduce) {
  Operation *place = later(bucket.place, lastOperand(reduce));
  Operation *need = earlier(bucket.need, firstNeed(reduce));
  if (!bucket.members.empty()) {
    AllReduceOp first = bucket.members.front();
    bool alike = first.getKind() == reduce.getKind() && first.getAxes() == reduce.getAxes() &&
                 isScalar(first) == isScalar(reduce);
    bool fits = bytes > 0 && (isScalar(reduce) || bucket.bytes + bytesOf(reduce) <= bytes) &&
                bucket.values + reduce.getNumResults() <= mostMembers;
    if (!alike || !fits || (need && !place->isBeforeInBlock(need)))
      return false;
  }
  bucket.members.push_back(reduce);
  bucket.values += reduce.getNumResults();
  bucket.bytes += bytesOf(reduce);
  bucket.place = place;
  bucket.need = need;
  return true;
}

/// One op for all members, where the last operand is made.
static void merge(const Bucket &bucket) {
  if (bucket.members.size() < 2)
    return;
  SmallVector<Value> inputs;
  SmallVector<Location> locations;
  for (AllReduceOp member : bucket.members) {
    llvm::append_range(inputs, member.getInputs());
    locations.push_back(member.getLoc());
  }
  AllReduceOp first = bucket.members.front();
  OpBuilder builder(first);
  auto merged = AllReduceOp::create(builder, builder.getFusedLoc(locations), TypeRange(ValueRange(inputs)),
                                    inputs, first.getKind(), first.getAxes());
  size_t at = 0;
  for (AllReduceOp member : bucket.members) {
    member->replaceAllUsesWith(merged.getResults().slice(at, member.getNumResults()));
    at += member.getNumResults();
    member.erase();
  }
  moveBehind(merged, bucket.place);
}

void BucketCollectivesPass::runOnBlock(BlockOp block) {
  SmallVector<AllReduceOp> reduces;
  for (AllReduceOp reduce : block.getOps<AllReduceOp>())
    if (lastOperand(reduce) && (isScalar(reduce) || onlyLeaves(reduce)))
      reduces.push_back(reduce);
  // In the order in which they could start.
  llvm::stable_sort(
      reduces, [](AllReduceOp a, AllReduceOp b) { return lastOperand(a)->isBeforeInBlock(lastOperand(b)); });
  SmallVector<Bucket> buckets;
  for (AllReduceOp reduce : reduces) {
    bool joined = false;
    for (size_t i = buckets.size(); i-- > 0 && !joined;)
      joined = join(buckets[i], reduce);
    if (!joined)
      join(buckets.emplace_back(), reduce);
  }
  llvm::for_each(buckets, merge);
}

} // namespace par
