// Matches attention from the softmax upwards: scale, masks, the matmul of queries and keys, and below it the matmul
// with values, through converts, transposes and repeated heads without other users.
#include "AttentionPattern.h"

#include "par/Dialect/Splat.h"

using namespace mlir;

namespace par {
namespace {

/// The parts of an attention's scores, read from the softmax upwards.
struct Scores {
  DotOp product;
  double scale = 1;
  bool causal = false;
  double hidden = 0; ///< causal: the most that a hidden score has, or has added
  Value mask;
  double bound = 0; ///< of the mask's magnitude

  /// Whether a row still attends to the keys that it may see if the mask lowers all of them, and not to keys that the
  /// causal mask hides. Then the attention need not know how low hidden scores are.
  bool areApart() const { return !causal || !mask || hidden + 2 * bound <= lowScore; }
};

/// A value times a constant factor.
struct Scaling {
  Value value;
  double factor;
};

} // namespace

static Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

/// The op if it converts between floats.
static ConvertOp floatConvert(Value value) {
  auto convert = value.getDefiningOp<ConvertOp>();
  return convert && isa<FloatType>(elementOf(convert.getOperand())) ? convert : ConvertOp();
}

static Value withoutConverts(Value value) {
  while (ConvertOp convert = floatConvert(value))
    value = convert.getOperand();
  return value;
}

/// As withoutConverts, but stops at a value with other users.
static Value withoutOwnConverts(Value value) {
  while (value.hasOneUse() && floatConvert(value))
    value = floatConvert(value).getOperand();
  return value;
}

static std::optional<Scaling> readScaling(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa<MultiplyOp, DivideOp>(op))
    return std::nullopt;
  if (std::optional<double> factor = readSplat(op->getOperand(1)))
    return Scaling{op->getOperand(0), isa<MultiplyOp>(op) ? *factor : 1 / *factor};
  if (std::optional<double> factor = readSplat(op->getOperand(0)); factor && isa<MultiplyOp>(op))
    return Scaling{op->getOperand(1), *factor};
  return std::nullopt;
}

/// Reads the scores from the softmax's operand up to the matmul. No value on the way may have other users.
static std::optional<Scores> readScores(Value value, AttentionMasks &masks);

/// With zero added, or one mask of each kind.
static std::optional<Scores> readSum(AddOp add, AttentionMasks &masks) {
  for (auto [operand, term] : {std::pair(add.getLhs(), add.getRhs()), {add.getRhs(), add.getLhs()}}) {
    std::optional<Scores> scores = readScores(operand, masks);
    if (!scores)
      continue;
    if (readSplat(term) == 0.0)
      return scores;
    std::optional<double> hidden = scores->causal ? std::nullopt : masks.causalSum(term);
    std::optional<double> bound = hidden || scores->mask ? std::nullopt : boundOf(term);
    if (hidden) {
      scores->causal = true;
      scores->hidden = *hidden;
    } else if (bound) {
      scores->mask = term;
      scores->bound = *bound;
    } else {
      return std::nullopt;
    }
    return scores;
  }
  return std::nullopt;
}

/// Scores that a causal mask replaces by a number.
static std::optional<Scores> readSelect(SelectOp select, AttentionMasks &masks) {
  for (bool meets : {true, false}) {
    auto [met, low] =
        meets ? std::pair(select.getOnTrue(), select.getOnFalse()) : std::pair(select.getOnFalse(), select.getOnTrue());
    std::optional<double> hidden = readSplat(low);
    if (!hidden || *hidden > lowScore || !masks.isCausalCondition(select.getCondition(), meets))
      continue;
    std::optional<Scores> scores = readScores(met, masks);
    if (!scores || std::exchange(scores->causal, true))
      return std::nullopt;
    scores->hidden = *hidden;
    return scores;
  }
  return std::nullopt;
}

static std::optional<Scores> readScores(Value value, AttentionMasks &masks) {
  value = withoutOwnConverts(value);
  if (!value.hasOneUse())
    return std::nullopt;
  if (auto product = value.getDefiningOp<DotOp>())
    return Scores{product};
  if (auto add = value.getDefiningOp<AddOp>())
    return readSum(add, masks);
  if (auto select = value.getDefiningOp<SelectOp>())
    return readSelect(select, masks);
  std::optional<Scaling> scaling = readScaling(value);
  std::optional<Scores> scores = scaling ? readScores(scaling->value, masks) : std::nullopt;
  if (!scores || scores->mask || (scores->causal && scaling->factor != 1))
    return std::nullopt; // the factor would be the mask's, too
  scores->scale *= scaling->factor;
  return scores;
}

/// The softmax that gives the probabilities. No value on the way may have other users.
static SoftmaxOp readProbabilities(Value value) {
  value = withoutOwnConverts(value);
  return value.hasOneUse() ? value.getDefiningOp<SoftmaxOp>() : SoftmaxOp();
}

/// Keys or values before they are repeated for the heads that share them, if they are.
static void readGroups(AttentionSide &side) {
  auto reshape = withoutConverts(side.value).getDefiningOp<ReshapeOp>();
  auto repeat = reshape ? withoutConverts(reshape.getOperand()).getDefiningOp<BroadcastInDimOp>() : BroadcastInDimOp();
  if (!repeat || repeat.getDims() != ArrayRef<int64_t>{0, 1, 3, 4})
    return;
  ArrayRef<int64_t> all = repeat.getType().getShape(), merged = reshape.getType().getShape();
  SmallVector<int64_t> heads{all[0], all[1] * all[2], all[3], all[4]}, groups{all[0], all[1], all[3], all[4]};
  if (side.order[1] != 1 || merged != ArrayRef(heads) || repeat.getOperand().getType().getShape() != ArrayRef(groups))
    return;
  side.value = repeat.getOperand();
}

static int64_t countGroups(const AttentionSide &side) {
  return cast<RankedTensorType>(side.value.getType()).getDimSize(side.order[1]);
}

/// An operand of a matmul without factors and transposes.
static AttentionSide readSide(Value operand, ArrayRef<int64_t> batching, int64_t sequence, int64_t width) {
  AttentionSide side{operand, {batching[0], batching[1], sequence, width}};
  while (true) {
    Value value = withoutConverts(side.value);
    if (std::optional<Scaling> scaling = readScaling(value)) {
      side.value = scaling->value;
      side.factor *= scaling->factor;
    } else if (auto transpose = value.getDefiningOp<TransposeOp>()) {
      for (int64_t &dim : side.order)
        dim = transpose.getPermutation()[dim];
      side.value = transpose.getOperand();
    } else {
      break;
    }
  }
  readGroups(side);
  return side;
}

/// A matmul over one dim of two tensors of one format, each with two batching dims and a free dim.
static bool isPerHead(DotOp dot) {
  return elementOf(dot.getLhs()) == elementOf(dot.getRhs()) && dot.getLhs().getType().getRank() == 4 &&
         dot.getRhs().getType().getRank() == 4 && dot.getLhsBatching().size() == 2 &&
         dot.getLhsContracting().size() == 1;
}

std::optional<AttentionPattern> readAttention(DotOp values, AttentionMasks &masks) {
  // The matmul's dims are then those of the attention.
  if (!isPerHead(values) || elementOf(values) != elementOf(values.getLhs()) || values.getLhsContracting()[0] != 3 ||
      values.getLhsBatching() != ArrayRef<int64_t>{0, 1})
    return std::nullopt;
  SoftmaxOp softmax = readProbabilities(values.getLhs());
  std::optional<Scores> scores =
      softmax && softmax.getDim() == 3 ? readScores(softmax.getOperand(), masks) : std::nullopt;
  if (!scores || !scores->areApart() || !isPerHead(scores->product) ||
      elementOf(scores->product.getLhs()) != elementOf(values))
    return std::nullopt;
  DotOp product = scores->product;
  AttentionPattern pattern;
  pattern.query =
      readSide(product.getLhs(), product.getLhsBatching(), product.getLhsFree()[0], product.getLhsContracting()[0]);
  pattern.key =
      readSide(product.getRhs(), product.getRhsBatching(), product.getRhsFree()[0], product.getRhsContracting()[0]);
  pattern.value =
      readSide(values.getRhs(), values.getRhsBatching(), values.getRhsContracting()[0], values.getRhsFree()[0]);
  if (countGroups(pattern.key) != countGroups(pattern.value) || pattern.value.factor != 1)
    return std::nullopt;
  pattern.scale = scores->scale * pattern.query.factor * pattern.key.factor;
  pattern.causal = scores->causal;
  pattern.mask = scores->mask;
  return pattern;
}

} // namespace par
