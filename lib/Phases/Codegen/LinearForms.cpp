#include "LinearForms.h"

#include "Combiner.h"
#include "par/Dialect/Lower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace par::codegen {
namespace {

/// The comparison of a body that combines its accumulator with (comparison ? value : identity); null otherwise.
arith::CmpIOp findCondition(linalg::GenericOp op) {
  std::optional<Combiner> combiner = findCombiner(op);
  if (!combiner)
    return {};
  BlockArgument accumulator = op.getMatchingBlockArgument(op.getDpsInitOperand(0));
  Value part = combiner->op->getOperand(combiner->op->getOperand(0) == accumulator ? 1 : 0);
  auto select = part.getDefiningOp<arith::SelectOp>();
  Attribute otherwise;
  if (!select || !matchPattern(select.getFalseValue(), m_Constant(&otherwise)) || otherwise != combiner->identity)
    return {};
  return select.getCondition().getDefiningOp<arith::CmpIOp>();
}

/// The loop of the generic that the value is the index of.
std::optional<unsigned> loopOf(Value value) {
  if (auto index = value.getDefiningOp<linalg::IndexOp>())
    return index.getDim();
  return std::nullopt;
}

/// The input that is read by the value, which may be a cast of it.
std::optional<unsigned> inputOf(linalg::GenericOp op, Value value) {
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != op.getBody() || argument.getArgNumber() >= op.getNumDpsInputs())
    return std::nullopt;
  return argument.getArgNumber();
}

bool isOfResult(linalg::GenericOp op, unsigned loop) {
  return op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isFunctionOfDim(loop);
}

} // namespace

std::optional<Addressing> findAddressing(linalg::GenericOp op) {
  arith::CmpIOp here = findCondition(op);
  if (!here || here.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  std::optional<unsigned> index = inputOf(op, here.getLhs()), loop = loopOf(here.getRhs());
  if (!index || !loop || !isOfResult(op, *loop))
    return std::nullopt;
  // All reads are the same for every element of the result.
  for (OpOperand *input : op.getDpsInputOperands())
    if (op.getMatchingIndexingMap(input).isFunctionOfDim(*loop))
      return std::nullopt;
  return Addressing{*loop, *index};
}

std::optional<Running> findRunning(linalg::GenericOp op) {
  arith::CmpIOp counts = findCondition(op);
  if (!counts)
    return std::nullopt;
  std::optional<unsigned> reduced = loopOf(counts.getLhs()), loop = loopOf(counts.getRhs());
  if (!reduced || !loop || isOfResult(op, *reduced) || !isOfResult(op, *loop) || op.getNumReductionLoops() != 1)
    return std::nullopt;
  for (OpOperand *input : op.getDpsInputOperands())
    if (op.getMatchingIndexingMap(input).isFunctionOfDim(*loop))
      return std::nullopt;
  using P = arith::CmpIPredicate;
  P predicate = counts.getPredicate();
  if (predicate != P::slt && predicate != P::sle && predicate != P::sgt && predicate != P::sge)
    return std::nullopt;
  return Running{*loop, *reduced, predicate == P::sgt || predicate == P::sge,
                 predicate == P::slt || predicate == P::sgt};
}

std::optional<Sorting> findSorting(linalg::GenericOp op) {
  if (!op->hasAttr(countsEarlier) || op.getNumReductionLoops() != 1)
    return std::nullopt;
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  // The dim along which the other elements are is the one along which the result's are.
  AffineMap own = op.getMatchingIndexingMap(op.getDpsInputOperand(0)),
            other = op.getMatchingIndexingMap(op.getDpsInputOperand(1));
  for (auto [mine, others] : llvm::zip(own.getResults(), other.getResults()))
    if (others == getAffineDimExpr(reduced.front(), op.getContext()))
      return Sorting{cast<AffineDimExpr>(mine).getPosition(), reduced.front()};
  return std::nullopt;
}

} // namespace par::codegen
