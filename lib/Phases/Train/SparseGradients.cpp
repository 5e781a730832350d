// Gives the gradient of a table with only lookups as the rows that a step looks up, not in the table's shape: the
// memory and time of accumulation, reduction and update grow with the tokens of a step, not with the table.
//
//     %d = par.index_add %ct, %ids;  %g = par.gradient %d of @w
//
// becomes the rows of %ct, where the first row of each index holds the sum over that index, and the others zeros.
#include "SettleMode.h"
#include "par/Dialect/Term.h"
#include "par/Phases/Train/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_SPARSEGRADIENTSPASS
#include "par/Phases/Train/Passes.h.inc"

namespace {

/// Terms that lookups add to one table's gradient: rows, and the indices of their lookups.
struct Lookups {
  SmallVector<Value> rows, indices;
};

} // namespace

/// Takes the sum apart into lookups; null, or the op that is none.
static Operation *findLookups(Value sum, int64_t size, SmallVectorImpl<IndexAddOp> &lookups) {
  Operation *op = sum.getDefiningOp();
  if (auto convert = dyn_cast<ConvertOp>(op))
    return findLookups(convert.getOperand(), size, lookups);
  if (auto add = dyn_cast<AddOp>(op)) {
    Operation *other = findLookups(add.getLhs(), size, lookups);
    return other ? other : findLookups(add.getRhs(), size, lookups);
  }
  auto lookup = dyn_cast<IndexAddOp>(op);
  if (!lookup || lookup.getDim() != 0)
    return op;
  lookups.push_back(lookup);
  return nullptr;
}

/// Adds the rows that one op looks up in the whole batch, flattened to two dims, in the gradient's element type.
static void collect(IndexAddOp lookup, Type element, OpBuilder &builder, Lookups &all) {
  Term rows(builder, lookup.getLoc(), lookup.getUpdates()), indices = rows.with(lookup.getIndices());
  int64_t dims = indices.getType().getRank(), many = indices.getType().getNumElements();
  SmallVector<int64_t> shape{many};
  llvm::append_range(shape, rows.getShape().drop_front(dims));
  auto whole = [&](Term term, Type type) {
    return term.with(CollectOp::create(builder, lookup.getLoc(), term.convert(type), dims));
  };
  all.rows.push_back(whole(rows, element).reshape(shape));
  all.indices.push_back(whole(indices, builder.getI64Type()).reshape({many}));
}

static Value join(ArrayRef<Value> parts, OpBuilder &builder, Location loc) {
  return parts.size() == 1 ? parts.front() : ConcatOp::create(builder, loc, parts, /*dim=*/0).getResult();
}

/// The same gradient, of rows.
static void keepRows(GradientOp gradient, const Lookups &lookups, int64_t size, OpBuilder &builder) {
  Location loc = gradient.getLoc();
  Term rows(builder, loc, join(lookups.rows, builder, loc)), indices = rows.with(join(lookups.indices, builder, loc));
  Term place = indices.with(IotaOp::create(builder, loc, indices.getType(), /*dim=*/0));
  Value least = ScatterReduceOp::create(builder, loc, ReduceKind::min, place, indices, /*dim=*/0, size);
  Term first = indices.with(TakeOp::create(builder, loc, least, indices, /*dim=*/0));
  Value sums = IndexAddOp::create(builder, loc, rows, first, /*dim=*/0, indices.getShape().front());
  Value named = first.compare(Predicate::eq, place).select(indices, indices.splat(-1));
  Value kept = GradientOp::create(builder, loc, sums, named, gradient.getVariable());
  gradient.replaceAllUsesWith(kept);
}

static LogicalResult keepRows(GradientOp gradient) {
  auto type = gradient.getType();
  SmallVector<IndexAddOp> lookups;
  Operation *other = type.getRank() == 0 ? gradient.getOperand().getDefiningOp()
                                         : findLookups(gradient.getOperand(), type.getDimSize(0), lookups);
  if (other) {
    InFlightDiagnostic error =
        other->emitError()
        << "the gradient of \"" << gradient.getVariable()
        << "\" cannot be kept as looked-up rows: this is a part of it, and comes from no lookup of rows";
    error.attachNote(gradient.getLoc()) << "the plan says sparse: true of it in train.groups, which a table takes that "
                                           "is looked up along dim 0 and is used "
                                           "by nothing else, such as a tied head";
    return error;
  }
  OpBuilder builder(gradient);
  Lookups all;
  for (IndexAddOp lookup : lookups)
    collect(lookup, type.getElementType(), builder, all);
  keepRows(gradient, all, type.getDimSize(0), builder);
  gradient.erase();
  return success();
}

namespace {
struct SparseGradientsPass : impl::SparseGradientsPassBase<SparseGradientsPass> {
  using Base::Base;
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<StepOp>("train");
    if (!step)
      return;
    for (StringRef name : tables)
      if (auto variable = getOperation().lookupSymbol<VariableOp>(name);
          !variable || variable.getKind() != VariableKind::parameter) {
        step.emitOpError() << "keeps rows of @" << name << ", which is no parameter";
        return signalPassFailure();
      }
    for (GradientOp gradient : llvm::to_vector(step.getBlock().getOps<GradientOp>()))
      if (llvm::is_contained(tables, gradient.getVariable()) && failed(keepRows(gradient)))
        return signalPassFailure();
    eraseDead(step.getBlock());
  }
};
} // namespace

} // namespace par
