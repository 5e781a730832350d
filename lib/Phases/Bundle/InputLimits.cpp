// Limits of an input's integers: rows of tables in which they are looked up, classes that they name.
#include "par/Phases/Bundle/Bundle.h"

#include "par/Dialect/Indices.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

#include <numeric>
#include <set>

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

/// Whether the result has the operand's integers, in other places or in another width, but for one number perhaps.
static bool keepsAll(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<ReshapeOp>(user) || keepsIntegers(user))
    return true;
  if (user->getNumResults() != 1)
    return false;
  std::optional<Replaced> replaced = matchReplaced(user->getResult(0));
  return matchFromEnd(user->getResult(0)) || (replaced && replaced->index == use.get() && replaced->other != use.get());
}

namespace {

/// Changes of an integer between the input and its user.
struct Way {
  int64_t added = 0;                    ///< to integers below 0
  bool isMasked = false;                ///< integers below 0 keep only low bits
  std::optional<int64_t> replaced = {}; ///< by another number

  Way through(Operation *op) const {
    Way way = *this;
    way.isMasked |= isa<AndOp>(op);
    if (std::optional<FromEnd> counted = matchFromEnd(op->getResult(0)))
      way.added = counted->size;
    else if (std::optional<Replaced> found = matchReplaced(op->getResult(0)); found && !added && !isMasked && !replaced)
      way.replaced = found->number;
    return way;
  }
};

/// The limit of an integer over all uses that choose by it.
struct Asked {
  int64_t limit = 0; ///< 0: nothing
  bool fromEnd = true;
  std::set<int64_t> ignored = {}; ///< accepted by all uses though out of range

  /// By one use at the end of its way.
  static Asked by(OpOperand &use, const Way &way) {
    Asked asked{choices(use)};
    if (asked.limit == 0)
      return asked;
    asked.fromEnd = way.added == asked.limit && !way.isMasked;
    for (std::optional<int64_t> number : {ignoredBy(use), way.replaced})
      if (number && !asked.isWithin(*number))
        asked.ignored.insert(*number);
    return asked;
  }
  Asked operator+(const Asked &other) const {
    if (limit == 0 || other.limit == 0)
      return limit == 0 ? other : *this;
    Asked both{std::min(limit, other.limit), fromEnd && other.fromEnd};
    for (int64_t number : ignored)
      if (other.takes(number))
        both.ignored.insert(number);
    for (int64_t number : other.ignored)
      if (takes(number))
        both.ignored.insert(number);
    return both;
  }
  bool isWithin(int64_t number) const { return number >= (fromEnd ? -limit : 0) && number < limit; }
  bool takes(int64_t number) const { return isWithin(number) || ignored.contains(number); }
  /// Labels read no other memory, so several numbers may be ignored: no limit is given then.
  format::Limits of(uint64_t count) const {
    if (limit == 0 || ignored.size() > 1)
      return {count};
    return {count, limit, fromEnd, ignored.empty() ? std::nullopt : std::optional<int64_t>(*ignored.begin())};
  }
  auto operator<=>(const Asked &) const = default;
};

} // namespace

static bool moves(Operation *op) { return isa<SliceOp, TransposeOp, PadOp, ConcatOp>(op); }

/// Offset of an operand in a concatenation.
static int64_t startOf(OpOperand &part) {
  int64_t start = 0;
  auto concat = cast<ConcatOp>(part.getOwner());
  for (Value before : concat.getOperands().take_front(part.getOperandNumber()))
    start += cast<RankedTensorType>(before.getType()).getDimSize(concat.getDim());
  return start;
}

/// For each element of a result that moves elements: which element of the operand it is, or -1 for none. If there are
/// several samples, for those of the first one.
static std::optional<SmallVector<int64_t>> movedFrom(OpOperand &use, int64_t samples) {
  Operation *op = use.getOwner();
  if (!moves(op))
    return std::nullopt;
  auto concat = dyn_cast<ConcatOp>(op);
  int64_t start = concat ? startOf(use) : 0;
  auto from = cast<RankedTensorType>(use.get().getType()), to = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<int64_t> strides = computeSuffixProduct(from.getShape()), index(to.getRank());
  SmallVector<int64_t> moved(to.getNumElements() / samples), shape(to.getShape());
  if (samples > 1)
    shape[0] /= samples;
  for (int64_t &place : moved) {
    place = 0;
    for (int64_t d = 0; d < to.getRank() && place >= 0; ++d) {
      int64_t at = index[d], dim = d;
      if (auto slice = dyn_cast<SliceOp>(op))
        at = slice.getStarts()[d] + at * slice.getStrides()[d];
      else if (auto transpose = dyn_cast<TransposeOp>(op))
        dim = transpose.getPermutation()[d];
      else if (auto pad = dyn_cast<PadOp>(op))
        at -= pad.getLow()[d];
      else
        at -= d == int64_t(concat.getDim()) ? start : 0;
      place = at < 0 || at >= from.getDimSize(dim) ? -1 : place + at * strides[dim];
    }
    for (int64_t d = to.getRank() - 1; d >= 0 && ++index[d] == shape[d]; --d)
      index[d] = 0;
  }
  return moved;
}

/// Calls visit(asked) for each use that a value leads to, and says whether all lead there whole.
static bool forEachUse(Value value, llvm::function_ref<void(const Asked &)> visit, Way way = {}) {
  bool isWhole = true;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    isWhole &= !moves(user);
    if (moves(user) || keepsAll(use))
      isWhole &= forEachUse(user->getResult(0), visit, way.through(user));
    else
      visit(Asked::by(use, way));
  }
  return isWhole;
}

namespace {

/// Elements of an input by their place in it, row-major. A slice of one looks up a table of its own. Few things are
/// asked, of many elements.
class ElementLimits {
public:
  /// Follows the first of so many samples that are treated alike.
  ElementLimits(int64_t size, int64_t samples) : samples(samples), kinds(size / samples) {}

  void readBy(Value input) {
    SmallVector<int64_t> places(kinds.size());
    std::iota(places.begin(), places.end(), 0);
    follow(input, places, {});
  }
  std::vector<format::Limits> summarize() const;

private:
  void follow(Value value, ArrayRef<int64_t> places, Way way);
  void ask(ArrayRef<int64_t> places, const Asked &asked);
  uint32_t kindOf(const Asked &asked);

  int64_t samples;
  std::vector<uint32_t> kinds;
  std::vector<Asked> table{{}}; ///< the first one: nothing
};

} // namespace

uint32_t ElementLimits::kindOf(const Asked &asked) {
  auto found = llvm::find(table, asked);
  if (found == table.end())
    found = table.insert(found, asked);
  return found - table.begin();
}

void ElementLimits::ask(ArrayRef<int64_t> places, const Asked &asked) {
  std::map<uint32_t, uint32_t> next;
  for (int64_t place : places) {
    if (place < 0 || asked.limit == 0)
      continue;
    auto [known, isNew] = next.try_emplace(kinds[place]);
    if (isNew)
      known->second = kindOf(table[kinds[place]] + asked);
    kinds[place] = known->second;
  }
}

void ElementLimits::follow(Value value, ArrayRef<int64_t> places, Way way) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (keepsAll(use)) {
      follow(user->getResult(0), places, way.through(user));
    } else if (std::optional<SmallVector<int64_t>> moved = movedFrom(use, samples)) {
      for (int64_t &place : *moved)
        place = place < 0 ? -1 : places[place];
      follow(user->getResult(0), *moved, way);
    } else {
      ask(places, Asked::by(use, way));
    }
  }
}

/// The runs of the shortest piece that, repeated, makes all.
std::vector<format::Limits> ElementLimits::summarize() const {
  size_t period = 1;
  auto repeats = [&] {
    return kinds.size() % period == 0 && std::equal(kinds.begin() + period, kinds.end(), kinds.begin());
  };
  while (period < kinds.size() && !repeats())
    ++period;
  std::vector<format::Limits> runs;
  for (size_t i = 0; i < period; ++i)
    if (i > 0 && kinds[i] == kinds[i - 1])
      ++runs.back().count;
    else
      runs.push_back(table[kinds[i]].of(1));
  return runs;
}

/// Whether what follows from a value treats so many parts of its first dim alike, and each for itself: samples of a
/// batch.
static bool treatsAlike(Value value, int64_t samples) {
  auto isDivided = [&](Value each) {
    auto type = cast<RankedTensorType>(each.getType());
    return type.getRank() > 0 && type.getDimSize(0) % samples == 0;
  };
  auto isKept = [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto slice = dyn_cast<SliceOp>(user))
      return slice.getStarts()[0] == 0 && slice.getStrides()[0] == 1 &&
             slice.getType().getDimSize(0) == cast<RankedTensorType>(use.get().getType()).getDimSize(0);
    if (auto transpose = dyn_cast<TransposeOp>(user))
      return transpose.getPermutation()[0] == 0;
    if (auto pad = dyn_cast<PadOp>(user))
      return pad.getLow()[0] == 0 &&
             pad.getType().getDimSize(0) == cast<RankedTensorType>(use.get().getType()).getDimSize(0);
    if (auto concat = dyn_cast<ConcatOp>(user))
      return concat.getDim() != 0;
    return cast<RankedTensorType>(user->getResult(0).getType()).getNumElements() ==
           cast<RankedTensorType>(use.get().getType()).getNumElements();
  };
  return isDivided(value) && llvm::all_of(value.getUses(), [&](OpOperand &use) {
           bool follows = keepsAll(use) || moves(use.getOwner());
           return !follows || (isKept(use) && treatsAlike(use.getOwner()->getResult(0), samples));
         });
}

/// Limits of an input's integers by its uses, in all steps of which it is an argument. A sample of more than
/// `maxElements` is not followed element by element.
static InputLimits limitsOf(ArrayRef<Value> arguments) {
  constexpr int64_t maxElements = int64_t(1) << 25;
  Asked all;
  bool isWhole = true, isOne = true;
  for (Value argument : arguments)
    isWhole &= forEachUse(argument, [&](const Asked &asked) {
      isOne &= asked.limit == 0 || all.limit == 0 || asked.limit == all.limit;
      all = all + asked;
    });
  int64_t size = cast<RankedTensorType>(arguments.front().getType()).getNumElements();
  if (all.limit == 0 || size == 0)
    return std::vector<format::Limits>();
  auto type = cast<RankedTensorType>(arguments.front().getType());
  int64_t samples = type.getRank() ? type.getDimSize(0) : 1;
  if (!llvm::all_of(arguments, [&](Value argument) { return treatsAlike(argument, samples); }))
    samples = 1;
  if (isWhole || (size / samples > maxElements && isOne))
    return std::vector<format::Limits>{all.of(1)};
  if (size / samples > maxElements)
    return std::nullopt;
  ElementLimits elements(size, samples);
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
