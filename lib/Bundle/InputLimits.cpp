// What the integers of an input may be: rows of the tables that they look up, classes that they name.
#include "par/Bundle/Bundle.h"

#include "par/Dialect/Indices.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

#include <numeric>

using namespace mlir;

namespace par {

/// How many rows or classes an integer operand of an op chooses among; 0 if it does not choose.
static int64_t choices(OpOperand &use) {
  Operation *user = use.getOwner();
  auto dim = user->getAttrOfType<IntegerAttr>("dim");
  if (isa<GatherOp, TakeOp>(user) && use.getOperandNumber() == 1)
    return cast<RankedTensorType>(user->getOperand(0).getType()).getDimSize(dim.getInt());
  if (isa<CrossEntropyOp>(user) && use.getOperandNumber() == 1)
    return cast<RankedTensorType>(user->getOperand(0).getType()).getShape().back();
  return 0;
}

/// Labels of a cross-entropy may hold one more integer, which no logit answers to.
static std::optional<int64_t> ignoredBy(OpOperand &use) {
  auto loss = dyn_cast<CrossEntropyOp>(use.getOwner());
  return loss && use.getOperandNumber() == 1 ? std::optional<int64_t>(loss.getIgnore()) : std::nullopt;
}

namespace {

/// What becomes of an integer on its way to who reads it.
struct Way {
  int64_t added = 0;     ///< to what is below 0
  bool isMasked = false; ///< of what is below 0 only low bits are left
};

/// Elements of an input by their place in it, row-major. A slice of one looks up a table of its own.
class ElementLimits {
public:
  explicit ElementLimits(RankedTensorType type)
      : shape(type.getShape()), limits(type.getNumElements(), unread) {}

  /// Lowers limits to what the uses of an input of this shape ask for.
  void readBy(Value input) {
    SmallVector<int64_t> places(limits.size());
    std::iota(places.begin(), places.end(), 0);
    follow(input, places);
  }

  InputLimits summarize() const;

private:
  static constexpr int64_t unread = -1;

  void follow(Value value, ArrayRef<int64_t> places, Way way = {});
  void lower(ArrayRef<int64_t> places, int64_t choices);
  /// The limits along a dim if they depend on the index in it alone; unread elements have any.
  std::optional<std::vector<int64_t>> along(size_t dim) const;

  SmallVector<int64_t> shape;
  /// 0: read by what chooses nothing.
  std::vector<int64_t> limits;
  bool fromEnd = true, isIndex = false; ///< some element looks up rows
  std::optional<int64_t> ignored;
};

} // namespace

/// For each element of a result that moves elements: which element of the operand it is, or -1 for none.
static std::optional<SmallVector<int64_t>> movedFrom(Operation *op) {
  if (!isa<SliceOp, TransposeOp, PadOp>(op))
    return std::nullopt;
  auto from = cast<RankedTensorType>(op->getOperand(0).getType()),
       to = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<int64_t> strides = computeSuffixProduct(from.getShape()), index(to.getRank());
  SmallVector<int64_t> moved(to.getNumElements());
  for (int64_t &place : moved) {
    place = 0;
    for (int64_t d = 0; d < to.getRank() && place >= 0; ++d) {
      int64_t at = index[d], dim = d;
      if (auto slice = dyn_cast<SliceOp>(op))
        at = slice.getStarts()[d] + at * slice.getStrides()[d];
      else if (auto transpose = dyn_cast<TransposeOp>(op))
        dim = transpose.getPermutation()[d];
      else
        at -= cast<PadOp>(op).getLow()[d];
      place = at < 0 || at >= from.getDimSize(dim) ? -1 : place + at * strides[dim];
    }
    for (int64_t d = to.getRank() - 1; d >= 0 && ++index[d] == to.getDimSize(d); --d)
      index[d] = 0;
  }
  return moved;
}

void ElementLimits::lower(ArrayRef<int64_t> places, int64_t choices) {
  for (int64_t place : places)
    if (place >= 0 && (limits[place] <= 0 || (choices > 0 && choices < limits[place])))
      limits[place] = choices;
}

/// Whether the result has the operand's integers, in other places or in another width.
static bool keepsAll(OpOperand &use) {
  Operation *user = use.getOwner();
  return isa<ReshapeOp>(user) || keepsIntegers(user) || (user->getNumResults() == 1 && matchFromEnd(user->getResult(0)));
}

/// The way on through an op.
static Way through(Operation *op, Way way) {
  if (isa<AndOp>(op))
    way.isMasked = true;
  if (std::optional<FromEnd> counted = matchFromEnd(op->getResult(0)))
    way.added = counted->size;
  return way;
}

/// Whether what is below 0 counts from the end of what has so many rows or classes.
static bool countsFrom(const Way &way, int64_t count) { return way.added == count && !way.isMasked; }

void ElementLimits::follow(Value value, ArrayRef<int64_t> places, Way way) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (keepsAll(use)) {
      follow(user->getResult(0), places, through(user, way));
    } else if (std::optional<SmallVector<int64_t>> moved = movedFrom(user)) {
      for (int64_t &place : *moved)
        place = place < 0 ? -1 : places[place];
      follow(user->getResult(0), *moved, way);
    } else {
      int64_t count = choices(use);
      fromEnd &= count == 0 || countsFrom(way, count);
      std::optional<int64_t> label = ignoredBy(use);
      ignored = label ? label : ignored;
      isIndex |= count > 0 && !label;
      if (count > 0)
        lower(places, count);
      else
        for (int64_t place : places)
          if (place >= 0 && limits[place] == unread)
            limits[place] = 0;
    }
  }
}

std::optional<std::vector<int64_t>> ElementLimits::along(size_t dim) const {
  std::vector<int64_t> each(shape[dim], unread);
  int64_t inner = computeSuffixProduct(shape)[dim];
  for (auto [place, limit] : llvm::enumerate(limits)) {
    int64_t &known = each[place / inner % shape[dim]];
    if (limit != unread && known != unread && limit != known)
      return std::nullopt;
    known = limit == unread ? known : limit;
  }
  for (int64_t &limit : each)
    limit = std::max<int64_t>(limit, 0);
  return each;
}

InputLimits ElementLimits::summarize() const {
  InputLimits found;
  found.ignored = isIndex ? std::nullopt : ignored; // it would be looked up
  found.fromEnd = fromEnd && llvm::any_of(limits, [](int64_t limit) { return limit > 0; });
  bool equal = true, known = true;
  for (int64_t limit : limits) {
    known &= limit != 0;
    equal &= limit == unread || found.limit == 0 || limit == found.limit;
    found.limit = std::max(found.limit, limit);
  }
  if (equal && known)
    return found;
  // Where the limits follow no dim, what can be said of all is the largest.
  if (!known)
    found.limit = 0;
  for (size_t dim = 1; dim < shape.size(); ++dim)
    if (std::optional<std::vector<int64_t>> each = along(dim)) {
      found.dim = dim;
      found.limits = std::move(*each);
      break;
    }
  return found;
}

/// The least that an op chooses among to whom a value leads whole; 0 where ops read it that choose nothing, and nothing where
/// only some of its elements lead anywhere, which must be looked at one by one. `isIndex`: some op looks up rows by it.
static std::optional<int64_t> limitOfWhole(Value value, InputLimits &found, bool &isIndex, Way way = {}) {
  int64_t least = 0;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<SliceOp, TransposeOp, PadOp>(user))
      return std::nullopt;
    std::optional<int64_t> limit = choices(use);
    found.fromEnd &= *limit == 0 || countsFrom(way, *limit);
    if (std::optional<int64_t> label = ignoredBy(use))
      found.ignored = label;
    else if (keepsAll(use))
      limit = limitOfWhole(user->getResult(0), found, isIndex, through(user, way));
    else
      isIndex |= *limit > 0;
    if (!limit)
      return std::nullopt;
    least = *limit > 0 && (least == 0 || *limit < least) ? *limit : least;
  }
  return least;
}

/// What the uses of an input say of its integers, in all steps that it is an argument of. One of more elements than this is
/// not looked at element by element: where parts of it look up different tables, its limits stay unknown.
static InputLimits limitsOf(ArrayRef<Value> arguments) {
  constexpr int64_t mostElements = int64_t(1) << 25;
  InputLimits whole;
  whole.fromEnd = true;
  bool isWhole = true, isIndex = false;
  for (Value argument : arguments) {
    std::optional<int64_t> limit = limitOfWhole(argument, whole, isIndex);
    isWhole &= limit.has_value();
    if (limit.value_or(0) > 0)
      whole.limit = whole.limit == 0 ? *limit : std::min<int64_t>(whole.limit, *limit);
  }
  whole.fromEnd &= whole.limit > 0;
  if (isIndex)
    whole.ignored.reset(); // it would be looked up
  if (isWhole)
    return whole;
  auto type = cast<RankedTensorType>(arguments.front().getType());
  if (type.getNumElements() > mostElements)
    return {};
  ElementLimits elements(type);
  for (Value argument : arguments)
    elements.readBy(argument);
  return elements.summarize();
}

std::map<std::string, InputLimits> collectInputLimits(ModuleOp module) {
  std::map<std::string, SmallVector<Value>> integers;
  for (StepOp step : module.getOps<StepOp>()) {
    if (!step.getInputs())
      continue;
    for (auto [name, argument] : llvm::zip(step.getInputs()->getAsRange<StringAttr>(), step.getBlock().getArguments()))
      if (isa<IntegerType>(getElementTypeOrSelf(argument.getType())))
        integers[name.str()].push_back(argument);
  }
  std::map<std::string, InputLimits> limits;
  for (const auto &[name, arguments] : integers)
    limits[name] = limitsOf(arguments);
  return limits;
}

} // namespace par
