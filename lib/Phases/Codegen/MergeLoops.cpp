#include "KernelPlan.h"

using namespace mlir;

namespace par::codegen {
namespace {

/// Two loops step through a tensor as one would: one more of the outer is as far as all of the inner.
bool stepsAsOne(AffineExpr address, unsigned outer, unsigned inner, int64_t innerSize) {
  std::optional<int64_t> far = strideAlong(address, outer), near = strideAlong(address, inner);
  return far && near && *far == *near * innerSize;
}

class Merger {
public:
  explicit Merger(KernelPlan &plan) : plan(plan) {}

  void run();

private:
  bool fits(const Nest &nest, unsigned outer, unsigned inner) const;
  void mergeFree(Nest &nest, ArrayRef<unsigned> loops);
  void mergeRows();

  KernelPlan &plan;
};

} // namespace

/// Whether the nest may run one loop for two, with the outer index 0.
bool Merger::fits(const Nest &nest, unsigned outer, unsigned inner) const {
  int64_t size = nest.loops[inner];
  auto isKept = [](Place place) { return place == Place::Stack || place == Place::Scratch; };
  for (const Read &read : nest.reads) {
    auto source = plan.nestOf.find(read.source);
    bool inRow = source != plan.nestOf.end() && isKept(plan.nests[source->second].place);
    AffineExpr address = inRow ? plan.nests[source->second].addressInRow(read.index) : read.address;
    if (!stepsAsOne(address, outer, inner, size))
      return false;
  }
  Index index;
  for (unsigned loop : nest.resultLoops)
    index.push_back(getAffineDimExpr(loop, nest.op->getContext()));
  AffineExpr written =
      isKept(nest.place) ? nest.addressInRow(index) : linearize(index, shapeOf(nest.value()), nest.op->getContext());
  return stepsAsOne(written, outer, inner, size);
}

/// Loops of one kind, outer ones first; those of size 1 do not count.
void Merger::mergeFree(Nest &nest, ArrayRef<unsigned> loops) {
  SmallVector<unsigned> left =
      llvm::to_vector(llvm::make_filter_range(loops, [&](unsigned loop) { return nest.loops[loop] > 1; }));
  for (size_t i = 0; i + 1 < left.size(); ++i) {
    unsigned outer = left[i], inner = left[i + 1];
    if (!fits(nest, outer, inner))
      continue;
    nest.loops[inner] *= nest.loops[outer];
    nest.loops[outer] = 1;
    if (nest.innermost == outer)
      nest.innermost = inner;
  }
}

void Merger::mergeRows() {
  SmallVector<size_t> left;
  for (auto [row, size] : llvm::enumerate(plan.rowLoops))
    if (size > 1)
      left.push_back(row);
  for (size_t i = 0; i + 1 < left.size(); ++i) {
    size_t outer = left[i], inner = left[i + 1];
    if (!llvm::all_of(plan.nests, [&](const Nest &nest) {
          return !nest.positional && fits(nest, nest.rowLoop(outer), nest.rowLoop(inner));
        }))
      continue;
    plan.rowLoops[inner] *= plan.rowLoops[outer];
    plan.rowLoops[outer] = 1;
    for (Nest &nest : plan.nests) {
      nest.loops[nest.rowLoop(inner)] = plan.rowLoops[inner];
      nest.loops[nest.rowLoop(outer)] = 1;
    }
  }
}

void Merger::run() {
  plan.rowLoops = plan.rows;
  for (Nest &nest : plan.nests)
    nest.loops = nest.sizes();
  mergeRows();
  for (Nest &nest : plan.nests) {
    if (nest.positional)
      continue;
    mergeFree(nest, nest.freeLoops());
    mergeFree(nest, nest.reducedLoops);
  }
  auto first = llvm::find_if(plan.rowLoops, [](int64_t size) { return size != 1; });
  plan.tileLoop = first == plan.rowLoops.end() ? 0 : first - plan.rowLoops.begin();
}

void mergeLoops(KernelPlan &plan) { Merger(plan).run(); }

} // namespace par::codegen
