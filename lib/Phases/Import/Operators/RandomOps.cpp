// Random numbers: a function of the seed, the node, the step and the element's global index, independent of the plan.
#include "Operands.h"

#include "llvm/Support/xxhash.h"

#include <cmath>
#include <numbers>

namespace par {
namespace {

using namespace mlir;

/// The row-major index of each element of `shape`, in i64. It is a sum of one iota a dim, so that a shard counts from
/// its own start.
Term elementNumbers(NodeImporter &importer, ArrayRef<int64_t> shape) {
  OpBuilder &builder = importer.builder;
  Term number = termOf(importer, importer.splat(RankedTensorType::get(shape, builder.getI64Type()), 0));
  int64_t stride = 1;
  for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
    auto type = RankedTensorType::get({shape[dim]}, builder.getI64Type());
    Term along = number.with(IotaOp::create(builder, importer.loc, type, 0));
    number = number + (along * double(stride)).broadcast({dim}, shape);
    stride *= shape[dim];
  }
  return number;
}

Term bitwise(Term x, Term y) { return x.with(XorOp::create(x.getBuilder(), x.getLoc(), x, y)); }

/// A key from the stream's name, then seed and step in separate words, so that no two keys are equal.
Term drawKey(NodeImporter &importer, const RandomState &state, unsigned part) {
  OpBuilder &builder = importer.builder;
  Type i64 = builder.getI64Type();
  double seed = importer.node.floatAttribute("seed", 0);
  uint64_t stream = llvm::xxh3_64bits(state.stream + "/" + std::to_string(part) + "/" + std::to_string(seed));
  auto constant = SplatElementsAttr::get(RankedTensorType::get({}, i64), builder.getI64IntegerAttr(int64_t(stream)));
  Term name = termOf(importer, ConstantOp::create(builder, importer.loc, cast<ElementsAttr>(constant)));
  Term high = name.with(state.seed).convert(i64), low = name.with(state.step).convert(i64);
  high = high.with(ShiftLeftOp::create(builder, importer.loc, high, high.splat(40)));
  return bitwise(name, high + low);
}

/// Uniform in [0, 1): the upper 24 of 64 bits, which f32 holds, or 53 in f64. `part` distinguishes the draws of one
/// node.
Term uniform(NodeImporter &importer, const RandomState &state, ArrayRef<int64_t> shape, Type compute,
             unsigned part = 0) {
  OpBuilder &builder = importer.builder;
  Term numbers = elementNumbers(importer, shape), key = drawKey(importer, state, part).broadcast(shape);
  Term bits = numbers.with(RandomBitsOp::create(builder, importer.loc, numbers.getType(), key, numbers));
  int64_t kept = compute.isF64() ? 53 : 24;
  Term top = bits.with(ShiftRightOp::create(builder, importer.loc, bits, bits.splat(double(64 - kept))));
  return top.convert(compute) * std::ldexp(1.0, -int(kept));
}

/// Box and Muller 1958, of two uniform numbers; the first is kept from 0.
Term normal(NodeImporter &importer, const RandomState &state, ArrayRef<int64_t> shape, Type compute) {
  Term radius = sqrt(log(1.0 - uniform(importer, state, shape, compute, 0)) * -2.0);
  return radius * cos(uniform(importer, state, shape, compute, 1) * (2 * std::numbers::pi));
}

Type computeType(NodeImporter &importer, Type element) {
  return element.isF64() ? element : Type(importer.builder.getF32Type());
}

/// The type of a random op's result, from its own attributes or from its operand.
FailureOr<RankedTensorType> resultType(NodeImporter &importer, bool like) {
  Type element = importer.builder.getF32Type();
  SmallVector<int64_t> shape;
  if (like) {
    FailureOr<RankedTensorType> type = importer.type(0);
    if (failed(type))
      return failure();
    shape.assign(type->getShape().begin(), type->getShape().end());
    element = type->getElementType();
  } else {
    const onnx::Attribute *given = importer.node.attribute("shape");
    if (!given || llvm::any_of(given->ints, [](int64_t size) { return size < 0; }))
      return importer.error() << "has no shape";
    shape.assign(given->ints.begin(), given->ints.end());
    if (!isWithinMemory(shape))
      return importer.error() << "its shape is larger than any memory";
  }
  if (importer.node.attribute("dtype")) {
    FailureOr<Type> asked = importer.elementType("dtype");
    if (failed(asked))
      return failure();
    element = *asked;
  }
  return RankedTensorType::get(shape, element);
}

using Draw = Term (*)(NodeImporter &, const RandomState &, ArrayRef<int64_t>, Type);
Term drawUniform(NodeImporter &importer, const RandomState &state, ArrayRef<int64_t> shape, Type compute) {
  double low = importer.node.floatAttribute("low", 0), high = importer.node.floatAttribute("high", 1);
  return uniform(importer, state, shape, compute) * (high - low) + low;
}
Term drawNormal(NodeImporter &importer, const RandomState &state, ArrayRef<int64_t> shape, Type compute) {
  double mean = importer.node.floatAttribute("mean", 0), scale = importer.node.floatAttribute("scale", 1);
  return normal(importer, state, shape, compute) * scale + mean;
}

template <Draw draw, bool like>
LogicalResult importRandom(NodeImporter &importer) {
  FailureOr<RankedTensorType> type = resultType(importer, like);
  FailureOr<RandomState> state = failed(type) ? FailureOr<RandomState>(failure()) : importer.randomState();
  if (failed(state))
    return failure();
  Type element = type->getElementType();
  if (!isa<FloatType>(element))
    return importer.error() << "op " << importer.node.opType << " of " << element << ", expected floats";
  Term drawn = draw(importer, *state, type->getShape(), computeType(importer, element));
  return importer.bind(drawn.convert(element));
}

/// 1 with the operand's probability.
LogicalResult importBernoulli(NodeImporter &importer) {
  FailureOr<Value> p = importer.tensor(0);
  FailureOr<RankedTensorType> type = failed(p) ? FailureOr<RankedTensorType>(failure()) : resultType(importer, true);
  FailureOr<RandomState> state = failed(type) ? FailureOr<RandomState>(failure()) : importer.randomState();
  if (failed(state))
    return failure();
  Type compute = computeType(importer, cast<RankedTensorType>(p->getType()).getElementType());
  Term chance = termOf(importer, *p).convert(compute);
  Term drawn = uniform(importer, *state, type->getShape(), compute).compare(Predicate::lt, chance);
  return importer.bind(drawn.convert(type->getElementType()));
}

/// Classes by weights e^x: as many as running sums of the weights do not reach a uniform part of the whole.
LogicalResult importMultinomial(NodeImporter &importer) {
  FailureOr<Value> given = importer.tensor(0);
  FailureOr<RandomState> state = failed(given) ? FailureOr<RandomState>(failure()) : importer.randomState();
  if (failed(state))
    return failure();
  OpBuilder &builder = importer.builder;
  auto type = cast<RankedTensorType>(given->getType());
  int64_t count = importer.node.intAttribute("sample_size", 1);
  Type element = builder.getI32Type();
  if (importer.node.attribute("dtype")) {
    FailureOr<Type> asked = importer.elementType("dtype");
    if (failed(asked))
      return failure();
    element = *asked;
  }
  if (type.getRank() != 2 || !isa<FloatType>(type.getElementType()) || type.getDimSize(1) < 1 || count < 0)
    return importer.error() << "draws " << count << " classes by weights " << type << ", expected rows of floats";
  int64_t rows = type.getDimSize(0), classes = type.getDimSize(1);
  if (!isWithinMemory({rows, count, classes}))
    return importer.error() << "draws " << count << " times of " << type << ", more than any memory holds";
  Type compute = computeType(importer, type.getElementType());
  Term x = termOf(importer, *given).convert(compute);
  Term weights = exp(x - x.reduceKeeping(ReduceKind::max, {1}));
  Term sums =
      x.with(CumulativeOp::create(builder, importer.loc, weights.getType(), ReduceKind::sum, weights, 1, false, false));
  Term whole = weights.reduce(ReduceKind::sum, {1}).broadcast({0}, {rows, count});
  Term drawn = uniform(importer, *state, {rows, count}, compute) * whole;
  SmallVector<int64_t> pairs{rows, count, classes};
  Term passed = sums.broadcast({0, 2}, pairs).compare(Predicate::le, drawn.broadcast({0, 1}, pairs));
  Term chosen = passed.convert(element).reduce(ReduceKind::sum, {2});
  // Rounding may leave the last sum below the whole.
  return importer.bind(minimum(chosen, chosen.splat(double(classes - 1))));
}

/// A node's dropping probability, 0 if it does not drop. Before opset 12 only the mode of execution decided that.
FailureOr<double> dropoutRatio(NodeImporter &importer) {
  const StaticTensor *training = importer.known(2), *given = importer.known(1);
  if ((importer.has(2) && !training) || (importer.has(1) && !given))
    return importer.error()
           << "its ratio or training_mode depends on data, which an ahead-of-time program cannot hold; "
              "export them as constants";
  double ratio = given ? given->splat().value_or(0.5) : importer.node.floatAttribute("ratio", 0.5);
  if (importer.serves() || !training || training->splat().value_or(0) == 0)
    return 0.0;
  if (!(ratio >= 0 && ratio < 1))
    return importer.error() << "its ratio is " << ratio << ", expected at least 0 and below 1";
  return ratio;
}

/// Drops elements in steps that train; in evaluation the step is 0, and so is the ratio.
LogicalResult importDropout(NodeImporter &importer) {
  FailureOr<Value> operand = importer.tensor(0);
  FailureOr<double> ratio = failed(operand) ? FailureOr<double>(failure()) : dropoutRatio(importer);
  if (failed(ratio))
    return failure();
  Term x = termOf(importer, *operand), result = x;
  Term kept = x.with(importer.splat(x.getType().clone(importer.builder.getI1Type()), 1));
  if (*ratio != 0) {
    FailureOr<RandomState> state = importer.randomState();
    if (failed(state))
      return failure();
    Type element = x.getType().getElementType(), compute = computeType(importer, element);
    Term step = x.with(state->step).convert(compute);
    Term chance = step.compare(Predicate::gt, 0).convert(compute) * *ratio;
    Term scale = (1.0 / (1.0 - chance)).convert(element).broadcast(x.getShape());
    kept = uniform(importer, *state, x.getShape(), compute).compare(Predicate::ge, chance.broadcast(x.getShape()));
    result = kept.select(x * scale, x.splat(0));
  }
  if (importer.isUsed(1) && failed(importer.bind(kept, 1)))
    return failure();
  return importer.bind(result);
}

} // namespace

void addRandomImports(ImportTable &table) {
  table["Dropout"] = importDropout;
  table["RandomUniform"] = importRandom<drawUniform, false>;
  table["RandomUniformLike"] = importRandom<drawUniform, true>;
  table["RandomNormal"] = importRandom<drawNormal, false>;
  table["RandomNormalLike"] = importRandom<drawNormal, true>;
  table["Bernoulli"] = importBernoulli;
  table["Multinomial"] = importMultinomial;
}

} // namespace par
