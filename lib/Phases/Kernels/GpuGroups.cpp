// Refines groups for a GPU: a reader recomputes elementwise values if that moves fewer bytes than reading them, and a
// group with more operands than registers allow is split in half.
#include "Groups.h"
#include "Values.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace par {
namespace {

/// Tensors that one kernel reads and writes: more of them may not fit the registers of a thread, and LLVM holds each
/// store against each access.
constexpr size_t maxOperands = 48, maxOperandsOfCpu = 96;
/// Maximum number of ops that a kernel recomputes rather than reads.
constexpr size_t maxClones = 64;

/// Looks for values whose recomputation costs less memory traffic than reading them.
class ProducerCloner {
public:
  ProducerCloner(BlockOp block, const llvm::DenseMap<Operation *, Group *> &groupOf,
                 const std::vector<std::unique_ptr<Group>> &groups)
      : groupOf(groupOf) {
    for (auto store : block.getOps<StoreOp>())
      stored.insert(store.getBuffer());
    for (auto &group : groups)
      for (Value argument : group->arguments)
        readers[argument].push_back(group.get());
  }

  /// Recomputes values of one group after the other in `reader`, if that pays.
  void run(Group &reader);

private:
  /// The elementwise ops of `maker` that compute `value`, and the values that they read.
  bool slice(Value value, const Group &maker, SetVector<Operation *> &ops, SetVector<Value> &inputs);
  bool isReadElsewhere(Value value, const Group &maker, const Group &reader);
  bool takeOver(Group &reader, Group &maker);
  bool isTaken(Operation *op) const { return groupOf.contains(op); }

  const llvm::DenseMap<Operation *, Group *> &groupOf;
  llvm::DenseMap<Value, SmallVector<Group *>> readers;
  llvm::StringSet<> stored;
};

} // namespace

bool ProducerCloner::slice(Value value, const Group &maker, SetVector<Operation *> &ops, SetVector<Value> &inputs) {
  Operation *op = value.getDefiningOp();
  bool own = op && (groupOf.lookup(op) == &maker || maker.clones.contains(op));
  if (!own && !(op && isFree(op) && !isTaken(op))) {
    inputs.insert(value);
    auto load = dyn_cast_or_null<LoadOp>(op);
    return !load || !stored.contains(load.getBuffer()); // else it may be overwritten before the reader runs
  }
  if (own && !op->hasTrait<OpTrait::Elementwise>())
    return false;
  if (own && !ops.insert(op))
    return true;
  return llvm::all_of(op->getOperands(), [&](Value operand) { return slice(operand, maker, ops, inputs); });
}

/// Whether anybody but these two needs the value in memory.
bool ProducerCloner::isReadElsewhere(Value value, const Group &maker, const Group &reader) {
  for (Group *group : readers.lookup(value))
    if (group != &maker && group != &reader)
      return true;
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (!isKernelOp(user))
      return true;
    if (Group *group = groupOf.lookup(user))
      return group->implementation != "generated";
    return llvm::any_of(user->getResults(), [&](Value result) { return isReadElsewhere(result, maker, reader); });
  });
}

/// True if the reader now recomputes the values of `maker` that it read, as fewer bytes are then read and written.
bool ProducerCloner::takeOver(Group &reader, Group &maker) {
  SetVector<Operation *> ops;
  SetVector<Value> inputs, values;
  for (Value argument : reader.arguments) {
    if (groupOf.lookup(argument.getDefiningOp()) != &maker)
      continue;
    SetVector<Operation *> more = ops;
    SetVector<Value> moreInputs = inputs;
    if (!slice(argument, maker, more, moreInputs) || more.size() > maxClones)
      continue;
    ops = std::move(more);
    inputs = std::move(moreInputs);
    values.insert(argument);
  }
  uint64_t saved = 0, spent = 0;
  size_t operands = reader.arguments.size() - values.size();
  for (Value value : values)
    saved += bytesOf(value) * (isReadElsewhere(value, maker, reader) ? 1 : 2);
  for (Value input : inputs)
    if (!llvm::is_contained(reader.arguments, input)) {
      spent += bytesOf(input);
      ++operands;
    }
  if (saved <= spent || operands > maxOperands)
    return false;
  for (Operation *op : ops)
    reader.clones.insert(op);
  for (Value argument : reader.arguments)
    llvm::erase(readers[argument], &reader);
  reader.close([&](Operation *op) { return isTaken(op); });
  for (Value argument : reader.arguments)
    readers[argument].push_back(&reader);
  return true;
}

void ProducerCloner::run(Group &reader) {
  if (reader.implementation != "generated")
    return;
  llvm::SmallPtrSet<Group *, 8> tried;
  for (size_t i = 0; i < reader.arguments.size(); ++i) {
    Group *maker = groupOf.lookup(reader.arguments[i].getDefiningOp());
    if (maker && maker->implementation == "generated" && tried.insert(maker).second && takeOver(reader, *maker))
      i = -1; // the arguments are others now
  }
}

/// Tensors that others read, and those that this one reads.
static size_t countOperands(const Group &group, const llvm::DenseMap<Operation *, Group *> &groupOf) {
  size_t count = group.arguments.size();
  for (Operation *op : group.ops)
    count += llvm::count_if(op->getResults(), [&](Value result) {
      return llvm::any_of(result.getUsers(), [&](Operation *user) { return groupOf.lookup(user) != &group; });
    });
  return count;
}

/// Splits the second half of a group off. No op of the first half reads one of the second, and the second half reads no
/// op outside the group that uses the first half.
static std::unique_ptr<Group> splitHalf(Group &group, llvm::DenseMap<Operation *, Group *> &groupOf) {
  auto rest = std::make_unique<Group>();
  rest->clonesFree = group.clonesFree;
  rest->clones = group.clones;
  size_t half = group.ops.size() / 2;
  rest->ops.assign(group.ops.begin() + half, group.ops.end());
  group.ops.truncate(half);
  for (Operation *op : rest->ops)
    groupOf[op] = rest.get();
  for (Group *part : {&group, rest.get()}) {
    part->anchor = part->ops.back();
    part->close([&](Operation *op) { return groupOf.contains(op); });
  }
  return rest;
}

void splitWideGroups(bool gpu, llvm::DenseMap<Operation *, Group *> &groupOf,
                     std::vector<std::unique_ptr<Group>> &groups) {
  for (size_t i = 0; i < groups.size(); ++i)
    while (groups[i]->implementation == "generated" && groups[i]->ops.size() > 1 &&
           countOperands(*groups[i], groupOf) > (gpu ? maxOperands : maxOperandsOfCpu))
      groups.push_back(splitHalf(*groups[i], groupOf));
}

void refineForGpu(BlockOp block, llvm::DenseMap<Operation *, Group *> &groupOf,
                  std::vector<std::unique_ptr<Group>> &groups) {
  ProducerCloner cloner(block, groupOf, groups);
  for (auto &group : groups)
    cloner.run(*group);
}

} // namespace par
