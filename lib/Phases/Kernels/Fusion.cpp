// Groups generated ops in one pass over a block: each op joins the groups that it reads if they can share loops and no
// cycle arises. An op's cost of being computed at several indices bounds the group's code.
#include "EarlyLoads.h"
#include "Groups.h"
#include "JoinReaders.h"
#include "Values.h"
#include "par/Dialect/Interfaces/Decomposable.h"

using namespace mlir;

namespace par {
namespace {

/// Maximum number of ops of one group: each is a level of codegen's recursion, and compile time grows more than
/// linearly with a kernel's code.
constexpr size_t maxOps = 256;
/// Times that a group's ops may stand in its code, all together: a concatenation of n inputs has each of their ops n
/// times, at n indices, and one of those again n times as many.
constexpr int64_t maxPlaces = 4096;

/// How a generated op runs through its elements.
enum class Pattern {
  Elementwise, ///< one element of the result for one of each operand
  Rows,        ///< reads and writes whole rows: a reduction along trailing dims, softmax, norms
  LayoutOp,    ///< elements from elsewhere: transposes, slices, ...
  Sum,         ///< a reduction whose rows are no rows of its operand
};

/// One pass over a block that lets each op join the groups that it reads, unless that makes a cycle. A group's depth is
/// above that of all groups on which it depends, so groups of one depth are independent. An op may join the groups of
/// maximum depth among its operands.
class GroupFuser {
public:
  GroupFuser(BlockOp block, bool gpu, llvm::DenseMap<Operation *, Group *> &groupOf,
             std::vector<std::unique_ptr<Group>> &groups)
      : block(block), gpu(gpu), groupOf(groupOf), groups(groups) {}

  void run();

private:
  struct State {
    SmallVector<int64_t> space;
    int depth = 0;
    bool open = false;        ///< others may join
    bool inlined = true;      ///< all of its ops can be computed where they are read
    bool elementwise = false; ///< only elementwise ops, on `space`
    int64_t indices = 1;      ///< at most so many indices of an element at which an op of the group is computed
    /// The group's rows are these dims of `space`, which its reductions keep; none: they are leading dims.
    SmallVector<int64_t> kept{};
  };

  /// Finds ops that only matmuls read, each of which recomputes them.
  void findCloned();
  void visitFixed(Operation *op);
  void visitOwned(Operation *op, Group *group);
  void visit(Operation *op);
  void collectSources(Operation *op, SetVector<Operation *> &sources);
  void collectSources(Operation *op, SetVector<Operation *> &sources, SmallPtrSetImpl<Operation *> &seen);
  int64_t indicesOf(Operation *op, Pattern pattern, ArrayRef<Group *> candidates);
  bool isSmall(size_t ops, int64_t indices) const { return ops <= maxOps && int64_t(ops) * indices <= maxPlaces; }
  int depthOfSource(Operation *source);
  bool mayJoin(Operation *op, Pattern pattern, ArrayRef<int64_t> space, Group *group);
  bool mayJoinAll(Operation *op, Pattern pattern, ArrayRef<int64_t> space, ArrayRef<Group *> candidates);
  bool mayShareKept(Operation *op, Pattern pattern, ArrayRef<int64_t> space, ArrayRef<Group *> candidates);
  void merge(Group *into, Group *from);
  void finish(Group *group);
  bool joinMaker(Group *reader, const JoinReaders &readers);
  void joinBeside(Group *group, const JoinReaders &readers);
  /// Whether the second one is another group of elementwise ops, on the same elements.
  bool runsAlike(Group *group, Group *other) {
    return other && other != group && states.contains(other) && states[other].elementwise &&
           states[other].space == states[group].space &&
           isSmall(group->ops.size() + other->ops.size(), std::max(states[group].indices, states[other].indices));
  }

  BlockOp block;
  bool gpu;
  llvm::DenseMap<Operation *, Group *> &groupOf;
  std::vector<std::unique_ptr<Group>> &groups;
  llvm::DenseMap<Group *, State> states;
  llvm::DenseMap<Operation *, int> fixedDepth;
  int lastFixed = 0;
  llvm::DenseSet<Operation *> cloned;
  EarlyLoads early; ///< of the block, up to the op that is visited
};

} // namespace

static Pattern patternOf(Operation *op) {
  if (op->hasTrait<OpTrait::Elementwise>())
    return Pattern::Elementwise;
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    int64_t kept = shapeOf(reduce.getResult()).size();
    for (int64_t dim : reduce.getDims())
      if (dim < kept)
        return Pattern::Sum;
    return kept == 0 ? Pattern::Sum : Pattern::Rows;
  }
  return isa<DecomposableOpInterface>(op) ? Pattern::Rows : Pattern::LayoutOp;
}

/// Whether each element can be computed at its use: not worth it for a matmul.
static bool isComputedAnywhere(Operation *op, Pattern pattern) {
  return (pattern == Pattern::Elementwise || pattern == Pattern::LayoutOp) && !isa<DotOp>(op);
}

/// The dims that the op's loops run over.
static ArrayRef<int64_t> spaceOf(Operation *op, Pattern pattern) {
  if (pattern == Pattern::Rows || pattern == Pattern::Sum)
    return shapeOf(op->getOperand(0));
  return shapeOf(op->getResult(0));
}

/// Whether loops over both have leading dims in common, up to the end of one of them.
static bool sharesRows(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  if (a.empty() || b.empty())
    return a.empty() && b.empty();
  size_t common = std::min(a.size(), b.size());
  return a.take_front(common) == b.take_front(common);
}

/// The dims that a sum keeps, where loops over them can stand outside all others: none if the last dim of the operand,
/// whose elements lie side by side, is among them.
static SmallVector<int64_t> findKept(Operation *op, Pattern pattern) {
  SmallVector<int64_t> kept;
  auto reduce = dyn_cast<ReduceOp>(op);
  if (!reduce || pattern != Pattern::Sum)
    return kept;
  ArrayRef<int64_t> shape = shapeOf(reduce.getOperand());
  int64_t last = -1;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (size > 1)
      last = dim;
    if (!llvm::is_contained(reduce.getDims(), int64_t(dim)))
      kept.push_back(dim);
  }
  if (llvm::is_contained(kept, last))
    kept.clear();
  return kept;
}

static SmallVector<int64_t> takeDims(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims, [&](int64_t dim) { return shape[dim]; });
}

void GroupFuser::collectSources(Operation *op, SetVector<Operation *> &sources) {
  llvm::SmallPtrSet<Operation *, 16> seen;
  collectSources(op, sources, seen);
}

void GroupFuser::collectSources(Operation *op, SetVector<Operation *> &sources, SmallPtrSetImpl<Operation *> &seen) {
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (source && !groupOf.contains(source) && (isFree(source) || cloned.contains(source))) {
      if (seen.insert(source).second)
        collectSources(source, sources, seen);
    } else if (source && !early.contains(source))
      sources.insert(source);
  }
}

/// At how many indices of one element the op's groups are computed with it: a layout op reads each operand at another
/// one, others read one element, and perhaps those that a broadcast or a reshape leads to.
int64_t GroupFuser::indicesOf(Operation *op, Pattern pattern, ArrayRef<Group *> candidates) {
  int64_t before = 1, operands = 0;
  llvm::SmallPtrSet<Operation *, 4> ways;
  for (Group *group : candidates)
    before = group ? std::max(before, states[group].indices) : before;
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp(), *way = nullptr;
    for (; source && !groupOf.contains(source) && isFree(source) && source->getNumOperands() == 1;
         source = source->getOperand(0).getDefiningOp())
      if (isa<BroadcastInDimOp, ReshapeOp>(source))
        way = source;
    if (Group *group = groupOf.lookup(source); !group || !llvm::is_contained(candidates, group))
      continue;
    ++operands;
    ways.insert(way);
  }
  return before * std::max<int64_t>(1, pattern == Pattern::LayoutOp ? operands : ways.size());
}

int GroupFuser::depthOfSource(Operation *source) {
  if (Group *group = groupOf.lookup(source))
    return states[group].depth;
  return fixedDepth.lookup(source);
}

void GroupFuser::visitFixed(Operation *op) {
  if (early.pass(op))
    return;
  SetVector<Operation *> sources;
  collectSources(op, sources);
  // These keep their order, so that each depends on the one before.
  for (Operation *source : sources)
    lastFixed = std::max(lastFixed, depthOfSource(source));
  fixedDepth[op] = ++lastFixed;
}

void GroupFuser::visitOwned(Operation *op, Group *group) {
  SetVector<Operation *> sources;
  collectSources(op, sources);
  int depth = states[group].depth;
  for (Operation *source : sources)
    if (groupOf.lookup(source) != group)
      depth = std::max(depth, depthOfSource(source) + 1);
  states[group].depth = depth;
}

bool GroupFuser::mayJoin(Operation *op, Pattern pattern, ArrayRef<int64_t> space, Group *group) {
  State &state = states[group];
  if (!state.open || !state.kept.empty())
    return false;
  if (pattern != Pattern::LayoutOp && pattern != Pattern::Sum)
    return sharesRows(space, state.space);
  // A value that is computed at its use may have no other users.
  bool onlyHere = state.inlined && llvm::all_of(group->ops, [&](Operation *other) {
                    return llvm::all_of(other->getUsers(), [&](Operation *user) {
                      while (isFree(user) && !groupOf.contains(user) && user->hasOneUse())
                        user = *user->getUsers().begin();
                      return user == op || groupOf.lookup(user) == group;
                    });
                  });
  // A matmul reads each element many times, and in its own order.
  bool reordered =
      isa<DotOp>(op) && llvm::any_of(group->ops, [](Operation *other) { return isa<PatchesOp, TransposeOp>(other); });
  return onlyHere && !reordered;
}

/// Whether the op and the groups can have the dims that reductions keep as their rows: every value has either all dims,
/// or only the kept ones.
bool GroupFuser::mayShareKept(Operation *op, Pattern pattern, ArrayRef<int64_t> space, ArrayRef<Group *> candidates) {
  SmallVector<int64_t> kept = findKept(op, pattern), whole(space);
  for (Group *group : candidates)
    if (group && kept.empty()) {
      kept = states[group].kept;
      whole = states[group].space;
    }
  if (kept.empty())
    return false;
  SmallVector<int64_t> rows = takeDims(whole, kept);
  bool reduces = pattern == Pattern::Sum && findKept(op, pattern) == kept;
  bool computes = pattern == Pattern::Elementwise && (space == ArrayRef(whole) || space == ArrayRef(rows));
  return (reduces || computes) && llvm::all_of(candidates, [&](Group *group) {
           if (!group)
             return false;
           State &state = states[group];
           if (!state.kept.empty())
             return state.kept == kept && state.space == whole;
           return state.open && state.elementwise && (state.space == whole || state.space == rows);
         });
}

bool GroupFuser::mayJoinAll(Operation *op, Pattern pattern, ArrayRef<int64_t> space, ArrayRef<Group *> candidates) {
  return llvm::all_of(candidates, [&](Group *group) {
    return group && mayJoin(op, pattern, space, group) &&
           (pattern == Pattern::LayoutOp || pattern == Pattern::Sum ||
            sharesRows(states[group].space, states[candidates.front()].space));
  });
}

void GroupFuser::merge(Group *into, Group *from) {
  for (Operation *op : from->ops)
    groupOf[op] = into;
  into->ops.append(from->ops);
  State &state = states[into], &other = states[from];
  if (other.space.size() > state.space.size())
    state.space = other.space;
  state.inlined &= other.inlined;
  state.elementwise &= other.elementwise;
  state.indices = std::max(state.indices, other.indices);
  if (state.kept.empty())
    state.kept = other.kept;
  from->ops.clear();
}

void GroupFuser::visit(Operation *op) {
  Pattern pattern = patternOf(op);
  ArrayRef<int64_t> space = spaceOf(op, pattern);
  SetVector<Operation *> sources;
  collectSources(op, sources);
  int depth = 0;
  for (Operation *source : sources)
    depth = std::max(depth, depthOfSource(source));
  SetVector<Group *> candidates;
  for (Operation *source : sources)
    if (depthOfSource(source) == depth)
      candidates.insert(groupOf.lookup(source));
  size_t ops = 1;
  for (Group *group : candidates)
    ops += group ? group->ops.size() : 0;
  int64_t indices = indicesOf(op, pattern, candidates.getArrayRef());
  bool small = isSmall(ops, indices);
  bool shares = small && !sources.empty() && mayShareKept(op, pattern, space, candidates.getArrayRef());
  bool joins = shares || (small && !sources.empty() && mayJoinAll(op, pattern, space, candidates.getArrayRef()));
  SmallVector<int64_t> kept = findKept(op, pattern);
  if (!joins) {
    groups.push_back(std::make_unique<Group>());
    Group *group = groups.back().get();
    group->clonesFree = true;
    group->ops.push_back(op);
    groupOf[op] = group;
    states[group] = {SmallVector<int64_t>(space),
                     depth + 1,
                     pattern != Pattern::Sum || !kept.empty(),
                     isComputedAnywhere(op, pattern),
                     pattern == Pattern::Elementwise,
                     /*indices=*/1,
                     kept};
    return;
  }
  Group *group = candidates.front();
  for (Group *other : candidates.getArrayRef().drop_front())
    merge(group, other);
  group->ops.push_back(op);
  groupOf[op] = group;
  State &state = states[group];
  state.indices = indices;
  if (pattern == Pattern::LayoutOp || space.size() > state.space.size())
    state.space.assign(space.begin(), space.end());
  if (shares && state.kept.empty())
    state.kept = kept;
  state.open = pattern != Pattern::Sum || shares;
  state.inlined &= isComputedAnywhere(op, pattern);
  state.elementwise &= pattern == Pattern::Elementwise;
}

/// Whether an elementwise op shares an operand with another one: one loop over it can compute both.
static bool hasSibling(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() && llvm::any_of(op->getOperands(), [&](Value operand) {
           return llvm::any_of(operand.getUsers(), [&](Operation *other) {
             return other != op && isKernelOp(other) && !isFree(other) && other->hasTrait<OpTrait::Elementwise>() &&
                    shapeOf(other->getResult(0)) == shapeOf(op->getResult(0));
           });
         });
}

/// On a CPU also ops without a sibling, if all their users are such ops.
void GroupFuser::findCloned() {
  llvm::DenseSet<Operation *> inCalls;
  for (auto &group : groups)
    inCalls.insert(group->clones.begin(), group->clones.end());
  for (Operation &op : llvm::reverse(block.getBody().front())) {
    bool mayBe = isKernelOp(&op) && !groupOf.contains(&op) && (inCalls.contains(&op) || (!gpu && !hasSibling(&op)));
    if (mayBe && llvm::all_of(op.getUsers(), [&](Operation *user) {
          Group *group = groupOf.lookup(user);
          return cloned.contains(user) || (group && group->clones.contains(&op));
        }))
      cloned.insert(&op);
  }
}

/// Sorts the group's ops, and sets its anchor and arguments.
void GroupFuser::finish(Group *group) {
  llvm::sort(group->ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  group->anchor = group->ops.back();
  group->close([&](Operation *other) { return groupOf.contains(other); });
}

/// Delays a group of elementwise ops until a group that reads it (an activation's derivative until the gradient that
/// comes back to it): their common values are then not written. True if there was one.
bool GroupFuser::joinMaker(Group *reader, const JoinReaders &readers) {
  const State &state = states[reader];
  if (!state.open || (state.inlined && !state.elementwise))
    return false;
  for (Value argument : reader->arguments) {
    Group *maker = groupOf.lookup(argument.getDefiningOp());
    if (!runsAlike(reader, maker) || !readers.mayWait(*maker, *reader))
      continue;
    merge(reader, maker);
    finish(reader);
    return true;
  }
  return false;
}

/// Delays a group of elementwise ops until one that reads the same arguments and more (an activation recomputed in
/// backward until its gradient): large arguments are read once, and common ops are computed once.
void GroupFuser::joinBeside(Group *group, const JoinReaders &readers) {
  constexpr uint64_t large = 1 << 20; // beyond a core's own caches
  if (!states[group].elementwise)
    return;
  for (Value argument : group->arguments)
    for (Operation *user : argument.getUsers()) {
      Group *other = groupOf.lookup(user);
      if (bytesOf(argument) < large || !runsAlike(group, other) || !readers.mayWaitBeside(*group, *other))
        continue;
      merge(other, group);
      finish(other);
      return;
    }
}

void GroupFuser::run() {
  findCloned();
  for (Operation &op : block.getBody().front()) {
    if (!isKernelOp(&op))
      visitFixed(&op);
    else if (Group *group = groupOf.lookup(&op))
      visitOwned(&op, group);
    else if (!isFree(&op) && !cloned.contains(&op))
      visit(&op);
  }
  SmallVector<Group *> own;
  for (auto &group : groups)
    if (!group->anchor && !group->ops.empty())
      finish(own.emplace_back(group.get()));
  auto isCloned = [&](Operation *op) { return cloned.contains(op); };
  JoinReaders readers(block, groupOf, isCloned);
  for (Group *group : own)
    while (!group->ops.empty() && joinMaker(group, readers))
      ;
  if (!gpu)
    for (Group *group : own)
      if (!group->ops.empty())
        joinBeside(group, readers);
  llvm::erase_if(groups, [](const std::unique_ptr<Group> &group) { return group->ops.empty(); });
}

void fuseGroups(BlockOp block, bool gpu, llvm::DenseMap<Operation *, Group *> &groupOf,
                std::vector<std::unique_ptr<Group>> &groups) {
  GroupFuser(block, gpu, groupOf, groups).run();
}

} // namespace par
