#include "RegisterRow.h"

#include "../Combiner.h"

using namespace mlir;

namespace par::cuda {

using codegen::KernelPlan;
using codegen::Nest;
using codegen::Read;

std::optional<unsigned> lastLoop(const Nest &nest, ArrayRef<unsigned> loops) {
  for (unsigned loop : llvm::reverse(loops))
    if (nest.loops[loop] > 1)
      return loop;
  return std::nullopt;
}

SmallVector<unsigned> sharedLoops(const Nest &nest) {
  return nest.isReduction() ? nest.reducedLoops : nest.freeLoops();
}

unsigned elementsInOrder(const KernelPlan &plan) {
  uint64_t narrowest = 8;
  auto see = [&](Value value) {
    narrowest = std::min(narrowest, getElementBytes(getElementTypeOrSelf(value.getType())));
  };
  for (const Nest &nest : plan.nests) {
    if (!nest.results.empty())
      see(nest.value());
    for (const Read &read : nest.reads)
      if (!plan.nestOf.contains(read.source) && codegen::strideAlong(read.address, nest.innermost) == 1)
        see(read.source);
  }
  return 16 / std::max<uint64_t>(narrowest, 2);
}

namespace {

/// Looks at one nest after another.
class RegisterRowFinder {
public:
  explicit RegisterRowFinder(const KernelPlan &plan) : plan(plan) { row.access = elementsInOrder(plan); }

  bool add(const Nest &nest);
  RegisterRow finish();

private:
  static int64_t count(const Nest &nest, ArrayRef<unsigned> loops) {
    int64_t all = 1;
    for (unsigned loop : loops)
      all *= nest.loops[loop];
    return all;
  }
  bool isWhole(const Nest &nest) const { return wholes.contains(nest.value()); }
  bool readsOwnElement(const Nest &nest, ArrayRef<unsigned> loops, const Read &read, const Nest &source) const;

  const KernelPlan &plan;
  RegisterRow row;
  /// Values of nests that have all elements of a row.
  llvm::DenseSet<Value> wholes;
};

} // namespace

/// Along each dim that is none of rows the reader is where its own loops are, in their order.
bool RegisterRowFinder::readsOwnElement(const Nest &nest, ArrayRef<unsigned> loops, const Read &read,
                                        const Nest &source) const {
  SmallVector<int64_t> sizes = nest.sizes();
  SmallVector<unsigned> left =
      llvm::to_vector(llvm::make_filter_range(loops, [&](unsigned loop) { return sizes[loop] != 1; }));
  size_t next = 0;
  for (auto [dim, size] : llvm::enumerate(codegen::shapeOf(source.value()))) {
    if (size == 1 || llvm::is_contained(source.rowDims, dim))
      continue;
    if (next == left.size() || read.index[dim] != getAffineDimExpr(left[next], nest.op->getContext()))
      return false;
    ++next;
  }
  return next == left.size();
}

bool RegisterRowFinder::add(const Nest &nest) {
  SmallVector<unsigned> loops = sharedLoops(nest);
  int64_t elements = count(nest, loops);
  if (nest.isReduction() && (count(nest, nest.freeLoops()) > 1 || !codegen::findCombiner(nest.op)))
    return false;
  for (const Read &read : nest.reads) {
    auto source = plan.nestOf.find(read.source);
    if (source != plan.nestOf.end() && isWhole(plan.nests[source->second]) &&
        !readsOwnElement(nest, loops, read, plan.nests[source->second]))
      return false;
  }
  if (elements <= 1)
    return elements == 1;
  unsigned last = *lastLoop(nest, loops);
  if (nest.innermost != last || (row.elements > 1 && row.elements != elements))
    return false;
  row.elements = elements;
  while (nest.loops[last] % row.access)
    row.access /= 2;
  if (!nest.isReduction())
    wholes.insert(nest.value());
  return true;
}

RegisterRow RegisterRowFinder::finish() {
  llvm::DenseMap<Value, unsigned> readers;
  for (const Nest &nest : plan.nests) {
    if (!lastLoop(nest, sharedLoops(nest)))
      continue;
    llvm::DenseSet<Value> seen;
    for (const Read &read : nest.reads)
      if (wholes.contains(read.source) ||
          (!plan.nestOf.contains(read.source) && codegen::strideAlong(read.address, nest.innermost) != 0))
        if (seen.insert(read.source).second)
          ++readers[read.source];
  }
  unsigned kept = 0;
  for (auto [source, number] : readers)
    kept += wholes.contains(source) || number > 1;
  row.kept = std::max(kept, 1u);
  return row;
}

std::optional<RegisterRow> findRegisterRow(const KernelPlan &plan) {
  RegisterRowFinder finder(plan);
  for (const Nest &nest : plan.nests)
    if (!finder.add(nest))
      return std::nullopt;
  return finder.finish();
}

} // namespace par::cuda
