// Chooses the dims that are a kernel's rows, over which it is split into tiles or threads. The first reduction's kept
// dims seed the choice, which is carried from nest to nest along their reads; if it does not reach all nests, the rows
// are the leading dims that all results share.
#include "KernelPlan.h"

using namespace mlir;

namespace par::codegen {
namespace {

/// Row dims of every nest while they are looked for: by nest, the dim of its result that is each row dim.
using RowDims = std::vector<SmallVector<unsigned>>;

/// Looks for dims that reductions keep, in the results of all nests.
class KeptDims {
public:
  explicit KeptDims(const KernelPlan &plan) : plan(plan), dims(plan.nests.size()), known(plan.nests.size()) {}

  /// False if there are no such dims, or loops that should be innermost run along them.
  bool find();
  ArrayRef<int64_t> sizes() const { return rows; }
  const RowDims &rowDims() const { return dims; }

private:
  bool seed();
  bool propagate(unsigned reader, const Read &read);
  bool reachAll();
  bool isUsable() const;
  AffineExpr rowIndex(unsigned nest, size_t row) const {
    return getAffineDimExpr(plan.nests[nest].resultLoops[dims[nest][row]], plan.nests[nest].op->getContext());
  }

  const KernelPlan &plan;
  RowDims dims;
  std::vector<bool> known;
  SmallVector<int64_t> rows;
};

} // namespace

/// The first reduction with more than one result defines the rows: all dims that it keeps.
bool KeptDims::seed() {
  for (auto [number, nest] : llvm::enumerate(plan.nests)) {
    ArrayRef<int64_t> shape = shapeOf(nest.value());
    if (!nest.isReduction() || ShapedType::getNumElements(shape) <= 1)
      continue;
    rows.assign(shape.begin(), shape.end());
    for (unsigned dim = 0; dim < shape.size(); ++dim)
      dims[number].push_back(dim);
    known[number] = true;
    return true;
  }
  return false;
}

/// From a nest to one that it reads, or back. True if something new is known.
bool KeptDims::propagate(unsigned reader, const Read &read) {
  auto found = plan.nestOf.find(read.source);
  if (found == plan.nestOf.end() || known[reader] == known[found->second])
    return false;
  unsigned source = found->second;
  const Nest &nest = plan.nests[reader];
  SmallVector<unsigned> result;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (known[reader]) {
      auto dim = llvm::find(read.index, rowIndex(reader, row));
      if (dim == read.index.end())
        return false;
      result.push_back(dim - read.index.begin());
    } else {
      auto loop = dyn_cast<AffineDimExpr>(read.index[dims[source][row]]);
      auto dim = loop ? llvm::find(nest.resultLoops, loop.getPosition()) : nest.resultLoops.end();
      if (dim == nest.resultLoops.end())
        return false;
      result.push_back(dim - nest.resultLoops.begin());
    }
  }
  unsigned learnt = known[reader] ? source : reader;
  dims[learnt] = result;
  known[learnt] = true;
  return true;
}

/// The rows of a nest that reads none that is known, and is read by none, are its shape.
bool KeptDims::reachAll() {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [number, nest] : llvm::enumerate(plan.nests))
      for (const Read &read : nest.reads)
        changed |= propagate(number, read);
    for (unsigned number = 0; !changed && number < plan.nests.size(); ++number)
      if (!known[number] && shapeOf(plan.nests[number].value()) == ArrayRef(rows)) {
        llvm::append_range(dims[number], llvm::seq<unsigned>(0, rows.size()));
        changed = known[number] = true;
      }
  }
  return !llvm::is_contained(known, false);
}

/// Every nest has rows of these sizes, reads only its own row of the others, and has its innermost loop
/// inside.
bool KeptDims::isUsable() const {
  for (auto [number, nest] : llvm::enumerate(plan.nests)) {
    ArrayRef<int64_t> shape = shapeOf(nest.value());
    for (size_t row = 0; row < rows.size(); ++row) {
      unsigned dim = dims[number][row];
      if (shape[dim] != rows[row] || nest.wholeLoop() == nest.resultLoops[dim])
        return false;
      if (nest.resultLoops[dim] == nest.innermost &&
          ShapedType::getNumElements(nest.sizes()) != ShapedType::getNumElements(rows))
        return false;
      for (const Read &read : nest.reads) {
        auto source = plan.nestOf.find(read.source);
        if (source != plan.nestOf.end() && rows[row] != 1 &&
            read.index[dims[source->second][row]] != rowIndex(number, row))
          return false;
      }
    }
  }
  return true;
}

bool KeptDims::find() { return seed() && reachAll() && isUsable(); }

/// The leading dims that the results of all nests share.
static SmallVector<int64_t> findLeadingRows(const KernelPlan &plan) {
  SmallVector<int64_t> rows = llvm::to_vector(shapeOf(plan.nests.front().value()));
  auto cut = [&](size_t count) { rows.truncate(std::min(rows.size(), count)); };
  for (const Nest &nest : plan.nests) {
    ArrayRef<int64_t> shape = shapeOf(nest.value());
    size_t same = 0;
    while (same < std::min(shape.size(), rows.size()) && shape[same] == rows[same])
      ++same;
    // A loop that should be innermost inside a reduction is none of rows.
    auto inner = llvm::find(nest.resultLoops, nest.innermost);
    cut(nest.isReduction() ? std::min<size_t>(same, inner - nest.resultLoops.begin()) : same);
    if (std::optional<unsigned> whole = nest.wholeLoop())
      cut(llvm::find(nest.resultLoops, *whole) - nest.resultLoops.begin());
  }
  for (const Nest &nest : plan.nests)
    for (const Read &read : nest.reads)
      if (plan.nestOf.contains(read.source))
        for (size_t dim = 0; dim < rows.size(); ++dim)
          if (rows[dim] != 1 && read.index[dim] != getAffineDimExpr(nest.resultLoops[dim], nest.op->getContext()))
            cut(dim);
  return rows;
}

/// All dims of a lone nest's result but the one that its elements do not run along one by one.
static void chooseRowsAround(KernelPlan &plan, unsigned whole) {
  Nest &nest = plan.nests.front();
  for (auto [dim, size] : llvm::enumerate(shapeOf(nest.value())))
    if (nest.resultLoops[dim] != whole) {
      plan.rows.push_back(size);
      nest.rowDims.push_back(dim);
    }
}

void chooseRows(KernelPlan &plan, bool manyRows) {
  if (plan.nests.empty())
    return;
  const Nest &first = plan.nests.front();
  bool lone = plan.nests.size() == 1 && first.isReduction();
  if (manyRows && lone && first.wholeLoop())
    return chooseRowsAround(plan, *first.wholeLoop());
  plan.rows = manyRows && lone ? llvm::to_vector(shapeOf(first.value())) : findLeadingRows(plan);
  KeptDims kept(plan);
  if (ShapedType::getNumElements(plan.rows) <= 1 && plan.nests.size() > 1 && kept.find()) {
    plan.rows = llvm::to_vector(kept.sizes());
    for (auto [nest, dims] : llvm::zip(plan.nests, kept.rowDims()))
      nest.rowDims = dims;
    return;
  }
  for (Nest &nest : plan.nests)
    for (unsigned dim = 0; dim < plan.rows.size(); ++dim)
      nest.rowDims.push_back(dim);
}

} // namespace par::codegen
