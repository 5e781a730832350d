// Borders: reshards between the layouts in which a parameter is stored, used, accumulated and updated. They are
// inserted before propagation, so that the layouts on both sides stay separate, and erased if both sides end up with
// the same one.
//
//     %w = par.read @w;  %c = par.reshard %w              used, if gathered once a step; after the rounding, if any
//     %g = par.loop ...                                   accumulated
//     %r = par.reshard %g;  %u = par.reshard %w           updated
//     %n = par.run @update(%u, %r, %m)
//     %v = par.reshard %n;  par.write %v to @w            stored
//
// All layouts of a parameter start from its sharding by the plan or by propagation; the plan's rules for its gradient
// or its states override that, dim by dim (LayoutRules.cpp). Each layout is then sharded over further axes on one dim.
// So weights are sharded over the batch's axes without a change to how anything is computed: activations have these
// axes already, and the weights are gathered at their use. Masters are stored as they are updated (Masters.cpp).
#include "Propagation.h"

using namespace mlir;

namespace par {

/// Inserts a reshard of unknown sharding before a use; uses of one value share it.
void Propagation::addBorder(Border::Kind kind, VariableOp parameter, OpOperand &use, ReadOp read) {
  SmallVector<Border> &known = borders[parameter.getSymName()];
  auto same = llvm::find_if(
      known, [&](Border &border) { return border.kind == kind && border.reshard.getOperand() == use.get(); });
  if (same == known.end()) {
    OpBuilder builder(use.getOwner());
    if (kind == Border::ReadToUse)
      builder.setInsertionPointAfterValue(use.get());
    auto dist = cast<DistType>(use.get().getType());
    auto reshard = ReshardOp::create(builder, use.getOwner()->getLoc(), dist.withSharding({}), use.get());
    known.push_back({kind, reshard, read});
    same = std::prev(known.end());
  }
  if (use.getOwner()->getBlock() == same->reshard->getBlock() && use.getOwner()->isBeforeInBlock(same->reshard))
    same->reshard->moveBefore(use.getOwner());
  use.set(same->reshard);
}

/// The values of a parameter that ops use: the results of its borders, or the read itself.
SmallVector<Value> Propagation::usesOf(ReadOp read) {
  SmallVector<Value> uses;
  if (VariableOp parameter = ownerOf(read.getVariable()))
    for (Border &border : borders[parameter.getSymName()])
      if (border.kind == Border::ReadToUse && border.read == read)
        uses.push_back(border.reshard);
  if (uses.empty())
    uses.push_back(read);
  return uses;
}

/// Inserts a border between a read and the loops that use it, after the rounding if there is one: fewer bytes move.
void Propagation::addUseBorder(VariableOp parameter, ReadOp read, OpOperand &use) {
  SmallVector<Value> made = madeBeforeLoops(use, symbols);
  if (made.empty())
    return addBorder(Border::ReadToUse, parameter, use, read);
  for (Value value : made)
    for (OpOperand *later : llvm::to_vector(llvm::make_pointer_range(value.getUses())))
      addBorder(Border::ReadToUse, parameter, *later, read);
}

/// Only if different layouts are requested: otherwise propagation gives all of a parameter's values one sharding.
void Propagation::placeBorders() {
  bool once = options.gatherOnce && !options.parameterAxes.empty();
  bool spreadApart = options.parameterAxes != options.stateAxes || options.gradientAxes != options.stateAxes;
  auto isApart = [&](VariableOp parameter) {
    return parameter && (spreadApart || accumulatedRule(parameter) || updatedRule(parameter));
  };
  auto isUpdate = [&](Operation *op) { return isUpdateRun(op, symbols); };
  auto uses = [](Value value) {
    return llvm::to_vector(llvm::map_range(value.getUses(), [](OpOperand &use) { return &use; }));
  };
  for (Operation &op : llvm::make_early_inc_range(step.getBlock())) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      VariableOp parameter = ownerOf(read.getVariable()), used = ownerOfVariable(read.getVariable(), symbols, once);
      for (OpOperand *use : uses(read)) {
        if (isUpdate(use->getOwner()) && isApart(parameter))
          addBorder(Border::ReadToUpdate, parameter, *use);
        else if (!isUpdate(use->getOwner()) && used && (once || masters.contains(used.getSymName())))
          addUseBorder(used, read, *use);
      }
    } else if (auto write = dyn_cast<WriteOp>(op)) {
      if (VariableOp parameter = ownerOf(write.getVariable()); isApart(parameter))
        addBorder(Border::UpdateToWrite, parameter, write->getOpOperand(0));
    } else if (auto loop = dyn_cast<LoopOp>(op); loop && loop.getLabels()) {
      for (auto [label, result] : llvm::zip(loop.getLabels()->getAsRange<StringAttr>(), loop.getResults()))
        if (VariableOp parameter = ownerOf(label.getValue()); isApart(parameter))
          for (OpOperand *use : uses(result))
            addBorder(Border::AccumulatedToUpdate, parameter, *use);
    }
  }
}

/// The dim to shard over further axes: one with little padding, then one whose shards are contiguous in memory, so that
/// a gather needs no copy on the rank, then one without axes so far, then the longest.
static std::optional<unsigned> chooseDim(RankedTensorType type, const Layout &layout, ArrayRef<StringAttr> axes,
                                         MeshAttr mesh) {
  using Merit = std::tuple<bool, bool, bool, int64_t>;
  std::optional<unsigned> best;
  Merit most;
  int64_t outer = 1;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    int64_t before = mesh.getSize(layout.dims[dim]), shards = before * mesh.getSize(axes);
    int64_t padded = (size + shards - 1) / shards * shards;
    // Shards of a dim that its axes do not divide cannot be gathered over a part of these.
    bool can = size >= shards && !layout.fixed[dim] && (before == 1 || size % shards == 0);
    Merit merit{(padded - size) * 10 <= size, outer == 1, before == 1, size};
    if (can && (!best || merit > most)) {
      best = dim;
      most = merit;
    }
    outer *= size;
  }
  return best;
}

/// The layout with as many of the axes as the mesh has and no dim has yet, all on one dim; if none is long enough, as
/// it is.
static SmallVector<Axes> spreadOver(RankedTensorType type, const Layout &layout, const Axes &axes, MeshAttr mesh) {
  SmallVector<Axes> dims(layout.dims);
  Axes fresh;
  for (StringAttr axis : axes)
    if (mesh.getSize(axis) && llvm::none_of(dims, [&](const Axes &dim) { return llvm::is_contained(dim, axis); }))
      fresh.push_back(axis);
  if (fresh.empty())
    return dims;
  if (std::optional<unsigned> dim = chooseDim(type, layout, fresh, mesh))
    llvm::append_range(dims[*dim], fresh);
  return dims;
}

void Propagation::extendAll(Value value, ArrayRef<Axes> dims) {
  for (auto [dim, axes] : llvm::enumerate(dims))
    layouts.extend(value, dim, axes);
}

/// The dims of a layout after the rule, if there is one, sharded over the remaining axes.
static SmallVector<Axes> layAndSpread(VariableOp parameter, Layout layout, ShardingAttr rule, Axes axes, MeshAttr mesh,
                                      bool large) {
  // A closed dim of the parameter may be sharded further here.
  layout.fixed.assign(layout.fixed.size(), false);
  if (rule) {
    layout.dims = layRule(layout.dims, rule);
    for (auto [fixed, dim] : llvm::zip(layout.fixed, rule.getDims()))
      fixed = !dim.getOpen();
    llvm::erase_if(axes, [&](StringAttr axis) { return llvm::is_contained(rule.getUnreduced(), axis); });
  }
  return large ? spreadOver(parameter.getTensorType(), layout, axes, mesh) : layout.dims;
}

bool isOfUpdate(const Border &border) { return border.kind != Border::ReadToUse; }

Value updateSide(Border &border) {
  return border.kind == Border::UpdateToWrite ? border.reshard.getOperand() : border.reshard.getResult();
}

void Propagation::spreadParameter(VariableOp parameter, Value stored) {
  RankedTensorType type = parameter.getTensorType();
  MeshAttr mesh = layouts.meshOf(stored);
  bool large = type.getNumElements() >= options.minSize;
  Layout base = layouts.of(usesOf(stored.getDefiningOp<ReadOp>()).front());
  extendAll(stored, base.dims);
  bool master = masters.contains(parameter.getSymName());
  if (large && !master)
    extendAll(stored, spreadOver(type, base, axesOf(options.parameterAxes), mesh));
  ShardingAttr accumulated = accumulatedRule(parameter), updated = updatedRule(parameter);
  SmallVector<Axes> gradient = layAndSpread(parameter, base, accumulated, axesOf(options.gradientAxes), mesh, large);
  SmallVector<Axes> state = layAndSpread(parameter, base, updated, axesOf(options.stateAxes), mesh, large);
  if (master)
    extendAll(stored, state);
  for (Border &border : borders[parameter.getSymName()]) {
    if (!isOfUpdate(border))
      continue;
    if (border.kind == Border::AccumulatedToUpdate && accumulated)
      gradients.push_back({border.reshard.getOperand(), gradient});
    else if (border.kind == Border::AccumulatedToUpdate)
      extendAll(border.reshard.getOperand(), gradient);
    extendAll(updateSide(border), state);
  }
}

/// Runs after all propagation: an accumulated gradient's layout does not affect how values are computed.
void Propagation::placeGradients() {
  for (auto &[value, dims] : gradients)
    layouts.change(value).dims = dims;
}

void Propagation::spreadParameters() {
  bool any =
      !options.parameterAxes.empty() || !options.gradientAxes.empty() || !options.stateAxes.empty() || !borders.empty();
  if (!any)
    return;
  llvm::StringMap<Value> done;
  step.walk([&](ReadOp read) {
    VariableOp parameter = ownerOf(read.getVariable());
    if (parameter && done.try_emplace(parameter.getSymName(), read).second && !parameter.getAt())
      spreadParameter(parameter, read);
  });
}

} // namespace par
