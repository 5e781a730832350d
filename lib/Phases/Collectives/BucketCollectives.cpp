// Joins collectives of a block that do the same into buckets of a maximum size. A collective joins if no result of the
// bucket is needed before its last operand is computed; the joined op stands where the first result is needed, or after
// the last operand.
#include "Grouping.h"
#include "par/Phases/Collectives/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_BUCKETCOLLECTIVESPASS
#include "par/Phases/Collectives/Passes.h.inc"

namespace {

/// A collective that may be one with others.
struct Member {
  Operation *op;
  std::optional<SmallVector<Operation *>> sources; ///< if it can start at the block's begin and something needs it
  Operation *need = nullptr;                       ///< the first op that needs a result, before any bucket is merged
  int64_t bytes = bytesOf(op);
  bool isScalar = par::isScalar(op);
};

/// Collectives that may be one.
struct Bucket {
  SmallVector<Member> members;
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
  bool join(Bucket &bucket, const Member &member);
};

} // namespace

static Operation *later(Operation *a, Operation *b) { return !a || (b && a->isBeforeInBlock(b)) ? b : a; }
static Operation *earlier(Operation *a, Operation *b) { return !a || (b && b->isBeforeInBlock(a)) ? b : a; }

/// Whether two collectives do the same with their operands. A list of numbers has one for each operand.
static bool doTheSame(const Member &a, const Member &b) {
  if (a.op->getName() != b.op->getName() || a.isScalar != b.isScalar)
    return false;
  for (NamedAttribute attribute : a.op->getAttrs())
    if (!isa<DenseI64ArrayAttr>(attribute.getValue()) && b.op->getAttr(attribute.getName()) != attribute.getValue())
      return false;
  return true;
}

/// Adds a collective of the bucket's kind, unless a result is needed before the last operand is available. Collectives
/// that start early come in the order of their first uses, so the bucket's first use is that of its first member.
bool BucketCollectivesPass::join(Bucket &bucket, const Member &member) {
  bool early = member.sources.has_value();
  Operation *place = early ? nullptr : later(bucket.place, lastOperand(member.op));
  Operation *need = earlier(bucket.need, member.need);
  if (!bucket.members.empty()) {
    const Member &first = bucket.members.front();
    bool fits = bytes > 0 && (member.isScalar || bucket.bytes + member.bytes <= bytes) &&
                bucket.values + member.op->getNumResults() <= maxMembers;
    if (!fits || first.sources.has_value() != early || !doTheSame(first, member))
      return false;
    bool chained = llvm::any_of(
        bucket.members, [&](const Member &other) { return llvm::is_contained(other.op->getUsers(), member.op); });
    if (chained || (!early && need && !place->isBeforeInBlock(need)))
      return false;
  }
  bucket.members.push_back(member);
  bucket.values += member.op->getNumResults();
  bucket.bytes += member.bytes;
  bucket.place = place;
  bucket.need = need;
  return true;
}

/// One op for all members: each operand is treated as its member treated it.
static Operation *makeOne(const Bucket &bucket) {
  Operation *first = bucket.members.front().op;
  OperationState state(first->getLoc(), first->getName());
  SmallVector<Location> locations;
  for (const Member &member : bucket.members) {
    llvm::append_range(state.operands, member.op->getOperands());
    llvm::append_range(state.types, member.op->getResultTypes());
    locations.push_back(member.op->getLoc());
  }
  OpBuilder builder(first);
  state.location = builder.getFusedLoc(locations);
  for (NamedAttribute attribute : first->getAttrs()) {
    Attribute value = attribute.getValue();
    if (isa<DenseI64ArrayAttr>(value)) {
      SmallVector<int64_t> all;
      for (const Member &member : bucket.members)
        llvm::append_range(all, member.op->getAttrOfType<DenseI64ArrayAttr>(attribute.getName()).asArrayRef());
      value = builder.getDenseI64ArrayAttr(all);
    }
    state.addAttribute(attribute.getName(), value);
  }
  return builder.create(state);
}

/// The members become one: where the first result is needed if they can start early, else where the last operand is
/// made.
static void merge(const Bucket &bucket) {
  if (bucket.members.size() < 2)
    return;
  // Found again from the members: producers and users may have joined other buckets since the bucket was formed.
  Operation *place = nullptr, *need = nullptr;
  for (const Member &member : bucket.members) {
    place = later(place, lastOperand(member.op));
    need = earlier(need, firstNeed(member.op));
  }
  bool early = bucket.members.front().sources.has_value();
  if (!early && need && !place->isBeforeInBlock(need))
    return;
  if (early)
    for (const Member &member : bucket.members)
      moveBefore(member.op, *member.sources, need);
  Operation *merged = makeOne(bucket);
  if (early)
    merged->moveBefore(need);
  size_t at = 0;
  for (const Member &member : bucket.members) {
    member.op->replaceAllUsesWith(merged->getResults().slice(at, member.op->getNumResults()));
    at += member.op->getNumResults();
    member.op->erase();
  }
  if (early)
    takeFollowersAlong(merged);
  else
    moveBehind(merged, place);
}

/// Collectives that can move: all-reduces of scalars, collectives without a use in the block, and those that can start
/// early.
static SmallVector<Member> membersOf(BlockOp block) {
  SmallVector<Member> early, late;
  for (Operation *op : collectivesOf(block)) {
    Operation *need = firstNeed(op);
    if (need && !isScalar(op)) {
      if (auto sources = sourcesOf(op))
        early.push_back({op, sources, need});
    } else if (lastOperand(op) && (isScalar(op) || !need)) {
      late.push_back({op, std::nullopt, need});
    }
  }
  // In the order in which they are needed, or could start.
  llvm::stable_sort(early, [](const Member &a, const Member &b) { return a.need->isBeforeInBlock(b.need); });
  llvm::stable_sort(
      late, [](const Member &a, const Member &b) { return lastOperand(a.op)->isBeforeInBlock(lastOperand(b.op)); });
  llvm::append_range(early, late);
  return early;
}

void BucketCollectivesPass::runOnBlock(BlockOp block) {
  SmallVector<Bucket> buckets;
  for (const Member &member : membersOf(block)) {
    bool joined = false;
    for (size_t i = buckets.size(); i-- > 0 && !joined;)
      joined = join(buckets[i], member);
    if (!joined)
      join(buckets.emplace_back(), member);
  }
  llvm::for_each(buckets, merge);
}

} // namespace par
