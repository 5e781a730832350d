// Splits a dim of a variable that all users slice into equal parts, as (3h, d) to (3, h, d), so that it can be sharded
// within each part. It follows the dim from the slices back to the variables and rebuilds the ops between.
#include "par/Phases/Import/Passes.h"

namespace par {

#define GEN_PASS_DEF_UNFOLDDIMSPASS
#include "par/Phases/Import/Passes.h.inc"

using namespace mlir;

namespace {

/// A dim of `value` that all its users slice into equal parts, or that its only user, `split`, reshapes into dims.
struct Cut {
  Value value;
  int64_t dim = 0, parts = 0;
  ReshapeOp split;
};

RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Shape with `dim` replaced by (parts, size / parts).
SmallVector<int64_t> unfoldedShape(ArrayRef<int64_t> shape, int64_t dim, int64_t parts) {
  SmallVector<int64_t> result(shape);
  result[dim] /= parts;
  result.insert(result.begin() + dim, parts);
  return result;
}

/// The only dim that a slice shortens; nothing if there are none or several, or if it has a stride.
std::optional<int64_t> cutDim(SliceOp slice) {
  std::optional<int64_t> found;
  RankedTensorType type = tensorType(slice.getOperand());
  for (int64_t i = 0; i < type.getRank(); ++i) {
    if (slice.getStrides()[i] != 1)
      return std::nullopt;
    bool whole = slice.getStarts()[i] == 0 && slice.getLimits()[i] == type.getDimSize(i);
    if (!whole && found)
      return std::nullopt;
    if (!whole)
      found = i;
  }
  return found;
}

/// The dim of a reshape's operand that begins where `dim` of its result does.
std::optional<int64_t> beginsAt(ReshapeOp reshape, int64_t dim) {
  ArrayRef<int64_t> from = tensorType(reshape.getOperand()).getShape(), to = tensorType(reshape).getShape();
  int64_t wanted = ShapedType::getNumElements(to.take_front(dim)), before = 1;
  for (auto [place, size] : llvm::enumerate(from)) {
    if (before == wanted && size != 1)
      return place;
    before *= size;
  }
  return std::nullopt;
}

/// The reshape that made a dim of parts: (.., 3 h d) -> (.., 3, h, d), then transposed and sliced into single elements,
/// as in torch.nn.MultiheadAttention and image transformers.
std::optional<Cut> findSplit(SliceOp first, int64_t dim) {
  Value value = first.getOperand();
  int64_t parts = tensorType(value).getDimSize(dim);
  for (Operation *user : value.getUsers())
    if (auto slice = dyn_cast<SliceOp>(user); !slice || cutDim(slice) != dim || tensorType(slice).getDimSize(dim) != 1)
      return std::nullopt;
  while (Operation *op = value.getDefiningOp()) {
    std::optional<int64_t> from;
    if (auto transpose = dyn_cast<TransposeOp>(op))
      from = transpose.getPermutation()[dim];
    else if (auto reshape = dyn_cast<ReshapeOp>(op))
      from = beginsAt(reshape, dim);
    if (!from || !op->getOperand(0).hasOneUse())
      return std::nullopt;
    value = op->getOperand(0), dim = *from;
    int64_t size = tensorType(value).getDimSize(dim);
    if (size % parts)
      return std::nullopt;
    if (size > parts)
      return Cut{value, dim, parts, cast<ReshapeOp>(op)};
  }
  return std::nullopt;
}

std::optional<Cut> findCut(SliceOp first) {
  std::optional<int64_t> dim = cutDim(first);
  if (!dim)
    return std::nullopt;
  Value value = first.getOperand();
  int64_t size = tensorType(first).getDimSize(*dim), total = tensorType(value).getDimSize(*dim);
  if (size == 0 || total % size || total / size < 2)
    return std::nullopt;
  if (size == 1)
    if (std::optional<Cut> split = findSplit(first, *dim))
      return split;
  for (Operation *user : value.getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice || cutDim(slice) != dim || tensorType(slice).getDimSize(*dim) != size || slice.getStarts()[*dim] % size)
      return std::nullopt;
  }
  return Cut{value, *dim, total / size, {}};
}

/// Follows one dim from a value back to the variables that it comes from, and rebuilds the ops in between with the dim
/// unfolded. `can` changes nothing; `build` may only follow it.
class Unfolder {
public:
  Unfolder(int64_t parts, SymbolTable &symbols, SymbolUserMap &users) : parts(parts), symbols(symbols), users(users) {}

  bool can(Value value, int64_t dim) {
    Operation *op = value.getDefiningOp();
    if (auto read = dyn_cast_if_present<ReadOp>(op))
      return canRead(read);
    if (auto broadcast = dyn_cast_if_present<BroadcastInDimOp>(op)) {
      std::optional<int64_t> from = operandDim(broadcast, dim);
      return !from || (broadcast.getOperand().hasOneUse() && can(broadcast.getOperand(), *from));
    }
    if (auto dot = dyn_cast_if_present<DotOp>(op)) {
      auto [operand, from] = operandDim(dot, dim);
      return operand && operand.hasOneUse() && can(operand, from);
    }
    if (isa_and_present<GatherOp, ReshapeOp>(op)) {
      std::optional<int64_t> from = movedFrom(op, dim);
      return from && op->getOperand(0).hasOneUse() && can(op->getOperand(0), *from);
    }
    if (!op || !op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1)
      return false;
    return llvm::all_of(op->getOperands(), [&](Value operand) { return operand.hasOneUse() && can(operand, dim); });
  }

  Value build(Value value, int64_t dim) {
    Operation *op = value.getDefiningOp();
    if (auto read = dyn_cast<ReadOp>(op))
      return buildRead(read, dim);
    if (auto broadcast = dyn_cast<BroadcastInDimOp>(op))
      return buildBroadcast(broadcast, dim);
    if (auto dot = dyn_cast<DotOp>(op))
      return buildDot(dot, dim);
    if (isa<GatherOp, ReshapeOp>(op))
      return buildMoved(op, dim);
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, build(operand, dim));
    OpBuilder builder(op);
    Operation *unfolded = builder.clone(*op, mapping);
    unfolded->getResult(0).setType(unfoldedType(value, dim));
    return unfolded->getResult(0);
  }

private:
  RankedTensorType unfoldedType(Value value, int64_t dim) {
    return tensorType(value).clone(unfoldedShape(tensorType(value).getShape(), dim, parts));
  }

  bool canRead(ReadOp read) {
    auto variable = symbols.lookup<VariableOp>(read.getVariable());
    return variable && users.getUsers(variable).size() == 1 && read->hasOneUse() && !variable.getStored() &&
           !variable.getSharding() && !variable.getAt();
  }

  /// Checkpoints keep the folded shape: row-major order is the same.
  Value buildRead(ReadOp read, int64_t dim) {
    auto variable = symbols.lookup<VariableOp>(read.getVariable());
    RankedTensorType folded = variable.getTensorType(), type = unfoldedType(read, dim);
    variable.setStoredAttr(TypeAttr::get(folded));
    variable.setTypeAttr(TypeAttr::get(type));
    if (auto value = dyn_cast_if_present<DenseElementsAttr>(variable.getValueAttr()))
      variable.setValueAttr(value.reshape(type));
    read.getResult().setType(type);
    return read;
  }

  /// The operand's dim that a result dim of a gather or a reshape of single elements comes from.
  std::optional<int64_t> movedFrom(Operation *op, int64_t dim) {
    if (auto gather = dyn_cast<GatherOp>(op)) {
      int64_t at = gather.getDim(), indices = tensorType(gather.getIndices()).getRank();
      if (dim >= at && dim < at + indices)
        return std::nullopt;
      return dim < at ? dim : dim - indices + 1;
    }
    auto large = [](RankedTensorType type) {
      SmallVector<int64_t> dims;
      for (auto [place, size] : llvm::enumerate(type.getShape()))
        if (size != 1)
          dims.push_back(place);
      return dims;
    };
    RankedTensorType from = tensorType(op->getOperand(0)), to = tensorType(op->getResult(0));
    for (auto [before, after] : llvm::zip(large(from), large(to)))
      if (from.getDimSize(before) != to.getDimSize(after))
        return std::nullopt;
      else if (int64_t(after) == dim)
        return before;
    return std::nullopt;
  }

  Value buildMoved(Operation *op, int64_t dim) {
    int64_t from = *movedFrom(op, dim);
    Value operand = build(op->getOperand(0), from);
    OpBuilder builder(op);
    auto gather = dyn_cast<GatherOp>(op);
    if (!gather)
      return ReshapeOp::create(builder, op->getLoc(), unfoldedType(op->getResult(0), dim), operand);
    int64_t at = gather.getDim();
    return GatherOp::create(builder, op->getLoc(), operand, gather.getIndices(), from < at ? at + 1 : at);
  }

  /// Dim of a broadcast's operand that the result's dim is, if it is not one that is added or stretched.
  std::optional<int64_t> operandDim(BroadcastInDimOp broadcast, int64_t dim) {
    for (auto [from, to] : llvm::enumerate(broadcast.getDims()))
      if (to == dim && tensorType(broadcast.getOperand()).getDimSize(from) != 1)
        return from;
    return std::nullopt;
  }

  Value buildBroadcast(BroadcastInDimOp broadcast, int64_t dim) {
    std::optional<int64_t> from = operandDim(broadcast, dim);
    Value operand = broadcast.getOperand();
    SmallVector<int64_t> dims;
    for (int64_t to : broadcast.getDims()) {
      if (to == dim && from)
        dims.push_back(dim);
      dims.push_back(to < dim ? to : to + 1);
    }
    if (from)
      operand = build(operand, *from);
    OpBuilder builder(broadcast);
    return BroadcastInDimOp::create(builder, broadcast.getLoc(), unfoldedType(broadcast, dim), operand, dims);
  }

  /// The operand, and its free dim, that a dim of the matmul comes from; null for a batching dim.
  std::pair<Value, int64_t> operandDim(DotOp dot, int64_t dim) {
    SmallVector<int64_t> lhsFree = dot.getLhsFree(), rhsFree = dot.getRhsFree();
    int64_t place = dim - int64_t(dot.getLhsBatching().size());
    if (place < 0)
      return {Value(), 0};
    if (place < int64_t(lhsFree.size()))
      return {dot.getLhs(), lhsFree[place]};
    return {dot.getRhs(), rhsFree[place - lhsFree.size()]};
  }

  Value buildDot(DotOp dot, int64_t dim) {
    auto [operand, from] = operandDim(dot, dim);
    bool isLhs = operand == dot.getLhs();
    Value unfolded = build(operand, from);
    auto shifted = [&](ArrayRef<int64_t> dims, bool shift) {
      SmallVector<int64_t> result(dims);
      for (int64_t &entry : result)
        entry += shift && entry > from;
      return result;
    };
    OpBuilder builder(dot);
    return DotOp::create(builder, dot.getLoc(), unfoldedType(dot, dim), isLhs ? unfolded : dot.getLhs(),
                         isLhs ? dot.getRhs() : unfolded, shifted(dot.getLhsContracting(), isLhs),
                         shifted(dot.getRhsContracting(), !isLhs), shifted(dot.getLhsBatching(), isLhs),
                         shifted(dot.getRhsBatching(), !isLhs));
  }

  int64_t parts;
  SymbolTable &symbols;
  SymbolUserMap &users;
};

/// Replaces every slice of the folded value by one part of the unfolded one, also in a later cut of such a slice.
void replaceSlices(const Cut &cut, Value unfolded, MutableArrayRef<Cut> later) {
  if (ReshapeOp split = cut.split) { // row-major order is the same
    split->setOperand(0, unfolded);
    return;
  }
  int64_t size = tensorType(cut.value).getDimSize(cut.dim) / cut.parts;
  for (Operation *user : llvm::make_early_inc_range(cut.value.getUsers())) {
    auto slice = cast<SliceOp>(user);
    RankedTensorType type = tensorType(unfolded);
    SmallVector<int64_t> starts(type.getRank(), 0), limits(type.getShape()), strides(type.getRank(), 1), shape(limits);
    starts[cut.dim] = slice.getStarts()[cut.dim] / size;
    limits[cut.dim] = starts[cut.dim] + 1;
    shape[cut.dim] = 1;
    OpBuilder builder(slice);
    Value part = SliceOp::create(builder, slice.getLoc(), type.clone(shape), unfolded, starts, limits, strides);
    Value folded = par::buildReshape(builder, slice.getLoc(), part, tensorType(slice).getShape());
    slice.replaceAllUsesWith(folded);
    for (Cut &other : later)
      if (other.value == slice.getResult())
        other.value = folded;
    slice.erase();
    for (Operation *next : llvm::make_early_inc_range(folded.getUsers()))
      if (isa<ReshapeOp>(next)) // two reshapes are one
        next->setOperand(0, part);
    if (folded.use_empty())
      folded.getDefiningOp()->erase();
  }
}

/// Erases ops that only fed the rebuilt ones.
void eraseUnused(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !op->use_empty() || isa<ReadOp>(op))
    return;
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : operands)
    eraseUnused(operand);
}

struct UnfoldDimsPass : impl::UnfoldDimsPassBase<UnfoldDimsPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SymbolTableCollection tables;
    SymbolUserMap users(tables, getOperation());
    SmallVector<Cut> cuts;
    llvm::SmallPtrSet<Value, 8> seen;
    getOperation().walk([&](SliceOp slice) {
      // All slices of a value must agree, so that the first one speaks for them.
      if (!seen.insert(slice.getOperand()).second)
        return;
      if (std::optional<Cut> cut = findCut(slice))
        cuts.push_back(*cut);
    });
    for (auto [index, cut] : llvm::enumerate(cuts)) {
      Unfolder unfolder(cut.parts, symbols, users);
      // Skips a slice of a variable itself, and dims that cannot be unfolded.
      if (isa_and_present<ReadOp>(cut.value.getDefiningOp()) || !unfolder.can(cut.value, cut.dim))
        continue;
      replaceSlices(cut, unfolder.build(cut.value, cut.dim), MutableArrayRef(cuts).drop_front(index + 1));
      eraseUnused(cut.value);
    }
  }
};

} // namespace
} // namespace par
