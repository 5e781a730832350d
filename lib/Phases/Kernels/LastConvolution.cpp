// Reads a convolution with channels last and the ops after it as one call of the builtin, for groups and for kernels.
#include "LastConvolution.h"

#include "CallBuilder.h"

#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace par {

SmallVector<int64_t> channelsLast(int64_t rank) {
  SmallVector<int64_t> dims{0};
  llvm::append_range(dims, llvm::seq<int64_t>(2, rank));
  dims.push_back(1);
  return dims;
}

SmallVector<int64_t> channelsFirst(int64_t rank) {
  SmallVector<int64_t> dims{0, rank - 1};
  llvm::append_range(dims, llvm::seq<int64_t>(1, rank - 1));
  return dims;
}

static bool permutes(TransposeOp op, ArrayRef<int64_t> permutation) { return op && op.getPermutation() == permutation; }

Value LastConvolution::readChannels(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastInDimOp>();
  if (!broadcast || broadcast.getOperand().getType().getRank() != 1 ||
      broadcast.getDims().front() != broadcast.getType().getRank() - 1 ||
      broadcast.getOperand().getType().getDimSize(0) != broadcast.getType().getShape().back())
    return {};
  clones.insert(broadcast);
  return broadcast.getOperand();
}

std::optional<double> LastConvolution::readSplat(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastInDimOp>();
  Value number = broadcast ? broadcast.getOperand() : value;
  DenseElementsAttr constant;
  if (!matchPattern(number, m_Constant(&constant)) || !constant.isSplat() || !constant.getElementType().isF32())
    return std::nullopt;
  clones.insert(number.getDefiningOp());
  if (broadcast)
    clones.insert(broadcast);
  return constant.getSplatValue<APFloat>().convertToDouble();
}

void LastConvolution::advance(Operation *op) {
  ops.push_back(op);
  result = op->getResult(0);
}

bool LastConvolution::takeScale() {
  auto product = result.hasOneUse() ? dyn_cast<MultiplyOp>(*result.getUsers().begin()) : MultiplyOp();
  if (!product || scale || bias || residual || product.getLhs() == product.getRhs())
    return false;
  scale = readChannels(product.getLhs() == result ? product.getRhs() : product.getLhs());
  if (scale)
    advance(product);
  return bool(scale);
}

/// A bias, or a tensor.
bool LastConvolution::takeSummand(IsTaken isTaken) {
  auto add = result.hasOneUse() ? dyn_cast<AddOp>(*result.getUsers().begin()) : AddOp();
  if (!add || residual || add.getLhs() == add.getRhs() || isTaken(add))
    return false;
  Value other = add.getLhs() == result ? add.getRhs() : add.getLhs();
  Value channels = bias ? Value() : readChannels(other);
  Operation *source = other.getDefiningOp();
  if (!channels && source && isFree(source))
    return false; // a kernel would have to write all of it first
  (channels ? bias : residual) = channels ? channels : other;
  advance(add);
  return true;
}

/// select(compare(x, bound), bound, x).
bool LastConvolution::takeBound(IsTaken isTaken) {
  SelectOp select;
  CompareOp compare;
  for (Operation *user : result.getUsers()) {
    if (auto one = dyn_cast<SelectOp>(user))
      select = one;
    else if (auto other = dyn_cast<CompareOp>(user))
      compare = other;
  }
  if (!select || !compare || !result.hasNUses(2) || isTaken(select) || isTaken(compare) || !compare->hasOneUse() ||
      select.getCondition() != compare.getResult() || select.getOnFalse() != result || compare.getLhs() != result)
    return false;
  std::optional<double> limit = readSplat(compare.getRhs()), value = readSplat(select.getOnTrue());
  if (!limit || limit != value || !std::isfinite(*limit))
    return false;
  switch (compare.getPredicate()) {
  case Predicate::lt:
  case Predicate::le:
    low = std::max(low, *limit);
    break;
  case Predicate::gt:
  case Predicate::ge:
    high = std::min(high, *limit);
    break;
  default:
    return false;
  }
  if (low > high)
    return false; // the one that comes last counts, which a pair of bounds does not tell
  ops.push_back(compare);
  advance(select);
  return true;
}

std::optional<LastConvolution> LastConvolution::read(ConvolutionOp op, IsTaken isTaken) {
  auto enters = op.getOperand().getDefiningOp<TransposeOp>();
  int64_t rank = op.getType().getRank();
  auto leaves = op->hasOneUse() ? dyn_cast<TransposeOp>(*op->getUsers().begin()) : TransposeOp();
  if (!permutes(enters, channelsFirst(rank)) || !permutes(leaves, channelsLast(rank)) || isTaken(leaves))
    return std::nullopt;
  LastConvolution found;
  found.convolution = op;
  found.input = enters.getOperand();
  found.clones.insert(enters);
  found.ops.push_back(op);
  found.advance(leaves);
  found.takeScale();
  while (found.takeSummand(isTaken))
    ;
  LastConvolution bounded = found;
  while (bounded.takeBound(isTaken))
    found = bounded;
  return found;
}

bool LastConvolution::mayAddInPlace() {
  return residual && residual != input && residual != convolution.getFilter() && residual != scale && residual != bias;
}

std::unique_ptr<Group> formLastConvolution(Operation *op, IsTaken isTaken) {
  auto convolution = dyn_cast<ConvolutionOp>(op);
  std::optional<LastConvolution> found =
      convolution ? LastConvolution::read(convolution, isTaken) : std::optional<LastConvolution>();
  if (!found || !convolutionSizes(convolution))
    return nullptr;
  auto group = std::make_unique<Group>();
  group->implementation = "builtin:convolution_last";
  group->anchor = op;
  group->ops = found->ops;
  group->clones.insert(found->clones.begin(), found->clones.end());
  group->results.push_back(found->result);
  if (found->mayAddInPlace()) {
    group->implementation += "_add";
    group->tied = {{found->result, found->residual}};
  }
  group->close(isTaken);
  return group;
}

std::optional<BuiltinCall> describeLastConvolution(KernelOp kernel) {
  auto convolutions = kernel.getBlock().getOps<ConvolutionOp>();
  if (convolutions.empty())
    return std::nullopt;
  std::optional<LastConvolution> found =
      LastConvolution::read(*convolutions.begin(), [](Operation *) { return false; });
  if (!found || kernel.getTerminator()->getNumOperands() != 1 || kernel.getTerminator()->getOperand(0) != found->result)
    return std::nullopt;
  std::optional<SmallVector<int64_t>> sizes = convolutionSizes(found->convolution);
  if (!sizes)
    return std::nullopt;
  bool isInPlace = kernel.getTied().has_value();
  if (isInPlace && !found->mayAddInPlace())
    return std::nullopt;
  CallBuilder call(kernel, isInPlace ? "convolution_last_add" : "convolution_last");
  call.read(found->input).read(found->convolution.getFilter());
  isInPlace ? call.update(found->residual, found->result) : call.write(found->result);
  for (Value optional : {found->scale, found->bias, isInPlace ? Value() : found->residual})
    if (optional)
      call.read(optional);
  // One op of the body and the return are counted already.
  for (size_t more = 1; more < found->ops.size() + found->clones.size(); ++more)
    call.besides();
  return call.integers(*sizes)
      .integers({bool(found->scale), bool(found->bias), bool(found->residual)})
      .reals({found->low, found->high})
      .finish();
}

} // namespace par
