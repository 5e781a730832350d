// Normalisations by statistics of the data, as formulas.
#include "../Graph/GraphImporter.h"
#include "Operands.h"
#include "par/Dialect/Term.h"

#include <cmath>

namespace par {
namespace {

using namespace mlir;

/// A term of at least 32 bits, in which statistics are computed.
Term wide(Term x) { return x.getType().getElementTypeBitWidth() < 32 ? x.convert(x.getBuilder().getF32Type()) : x; }

/// The first operand, floats of at least `rank` dims.
FailureOr<Term> readOperand(NodeImporter &importer, int64_t rank) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  if (type.getRank() < rank || !isa<FloatType>(type.getElementType()))
    return importer.error() << "its operand is " << type << ", expected floats of rank " << rank << " or more";
  return Term(importer.builder, importer.loc, *x);
}

/// Operand i, a vector with one number for each of `count` channels, in `element`.
FailureOr<Term> readChannels(NodeImporter &importer, size_t i, int64_t count, Type element) {
  FailureOr<Value> value = importer.tensor(i);
  if (failed(value))
    return failure();
  auto type = cast<RankedTensorType>(value->getType());
  if (type.getRank() != 1 || type.getDimSize(0) != count)
    return importer.error() << "input " << i << " is " << type << ", expected " << count << " numbers";
  return Term(importer.builder, importer.loc, *value).convert(element);
}

Term meanOver(Term x, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= x.getShape()[dim];
  return x.reduce(ReduceKind::sum, dims) * (1.0 / double(count));
}

/// Mean and variance of the samples of each group and channel, and the operand minus the mean. With one group its dim
/// is left out: statistics are [C] and samples [N, C, ...], else [groups, C] and [groups, N / groups, C, ...].
struct GroupStatistics {
  GroupStatistics(Term x, int64_t groups) : grouped(groups > 1), mean(x), variance(x), centred(x) {
    SmallVector<int64_t> shape(x.getShape());
    if (grouped) {
      shape[0] /= groups;
      shape.insert(shape.begin(), groups);
      x = x.reshape(shape);
    }
    SmallVector<int64_t> dims{grouped};
    llvm::append_range(dims, dimRange(grouped + 2, shape.size()));
    mean = meanOver(x, dims);
    centred = x - spread(mean, x);
    variance = meanOver(centred * centred, dims);
  }
  Term spread(Term statistic, Term like) const {
    return grouped ? statistic.broadcast({0, 2}, like.getShape()) : statistic.broadcast({1}, like.getShape());
  }
  /// A number for each channel, for each group of them.
  Term repeat(Term channels) const { return grouped ? channels.broadcast({1}, mean.getShape()) : channels; }
  Term meanOfGroups(Term statistic) const { return grouped ? meanOver(statistic, {0}) : statistic; }

  bool grouped;
  Term mean, variance, centred;
};

struct BatchNorm {
  Term x, scale, bias, mean, variance;
  double epsilon;
  ArrayRef<int64_t> shape() const { return x.getShape(); }
  Term spread(Term channels) const { return channels.broadcast({1}, shape()); }
};

/// The results of a node; null for unused ones.
using BatchNormResults = std::array<Value, 3>;

/// Normalises by the given statistics, which do not change.
BatchNormResults normByGiven(NodeImporter &importer, const BatchNorm &norm, Type element) {
  Term factor = norm.scale * rsqrt(norm.variance + norm.epsilon);
  Term shift = norm.bias - norm.mean * factor;
  Term result = (norm.x * norm.spread(factor) + norm.spread(shift)).convert(element);
  return {result, importer.isUsed(1) ? Value(norm.mean) : Value(), importer.isUsed(2) ? Value(norm.variance) : Value()};
}

/// By the statistics of the samples themselves, group by group; the moving ones take one update from the mean over
/// groups.
FailureOr<BatchNormResults> normBySamples(NodeImporter &importer, const BatchNorm &norm, Type element) {
  int64_t groups = importer.batchNormGroups(), samples = norm.shape()[0];
  if (samples % groups != 0)
    return importer.error() << "a batch of " << samples << " does not divide into " << groups
                            << " groups that share statistics";
  if (importer.trains() && countElements(norm.shape()) == norm.shape()[1] * groups)
    return importer.error()
           << "normalises each channel by one number, which leaves nothing of it: PyTorch refuses that, too; more "
              "samples must share statistics (batch.size, batch.microbatches, batch_norm)";
  GroupStatistics statistics(norm.x, groups);
  Term factor = statistics.repeat(norm.scale) * rsqrt(statistics.variance + norm.epsilon);
  Term normed = statistics.centred * statistics.spread(factor, statistics.centred);
  Term result = (statistics.grouped ? normed.reshape(norm.shape()) : normed) + norm.spread(norm.bias);
  double momentum = importer.node.floatAttribute("momentum", 0.9);
  FailureOr<Value> steps = importer.stepsAveraged(3, norm.x.getType().getElementType());
  if (failed(steps))
    return failure();
  auto moved = [&](Term before, Term now) {
    Term mean = statistics.meanOfGroups(now);
    return *steps ? before + (mean - before) / mean.with(*steps).broadcast({}, mean.getShape())
                  : before * momentum + mean * (1 - momentum);
  };
  // The stored moving variance is unbiased as in PyTorch, other than ONNX's result.
  double count = double(countElements(norm.shape())) / double(norm.shape()[1] * groups);
  Term unbiased = statistics.variance * (count / std::max(count - 1, 1.0));
  auto update = [&](size_t i, Term given, Term now) {
    Value earlier = importer.updated(i); // of a module that is called again
    importer.update(i, moved(earlier ? wide(termOf(importer, earlier)) : given, now).convert(element));
  };
  update(3, norm.mean, statistics.mean);
  update(4, norm.variance, unbiased);
  return BatchNormResults{result.convert(element),
                          importer.isUsed(1) ? Value(moved(norm.mean, statistics.mean)) : Value(),
                          importer.isUsed(2) ? Value(moved(norm.variance, statistics.variance)) : Value()};
}

/// Normalises by the samples in steps that train; in evaluation as after module.eval().
FailureOr<BatchNormResults> normByMode(NodeImporter &importer, const BatchNorm &norm, Type element) {
  FailureOr<BatchNormResults> results = normBySamples(importer, norm, element);
  if (failed(results) || !importer.trains())
    return results;
  for (auto [trained, given] : llvm::zip(*results, normByGiven(importer, norm, element))) {
    FailureOr<Value> chosen = trained ? importer.whereTrained(trained, given) : FailureOr<Value>(trained);
    if (failed(chosen))
      return failure();
    trained = *chosen;
  }
  return results;
}

LogicalResult importBatchNorm(NodeImporter &importer) {
  FailureOr<Term> given = readOperand(importer, 2);
  if (failed(given))
    return failure();
  Term x = wide(*given);
  SmallVector<Term> channels;
  for (size_t i = 1; i <= 4; ++i) {
    FailureOr<Term> one = readChannels(importer, i, x.getShape()[1], x.getType().getElementType());
    if (failed(one))
      return failure();
    channels.push_back(*one);
  }
  BatchNorm norm{x, channels[0], channels[1], channels[2], channels[3], importer.node.floatAttribute("epsilon", 1e-5)};
  bool training = importer.node.intAttribute("training_mode", 0) != 0;
  if (importer.opset() < 14)
    training = importer.isUsed(1) || importer.isUsed(2);
  Type element = given->getType().getElementType();
  FailureOr<BatchNormResults> results =
      training && !importer.serves() ? normByMode(importer, norm, element) : normByGiven(importer, norm, element);
  if (failed(results))
    return failure();
  for (auto [i, result] : llvm::enumerate(*results)) {
    if (result && failed(importer.bind(result, i)))
      return failure();
    if (result && i > 0)
      importer.handOn(i + 2, result);
  }
  return success();
}

/// [N, C, ...] normalised within each of `groups` groups of channels, then scaled and shifted.
LogicalResult bindGroupNorm(NodeImporter &importer, Term given, int64_t groups, bool perGroup, double epsilon) {
  Term x = wide(given);
  SmallVector<int64_t> shape(x.getShape());
  int64_t channels = shape[1];
  if (groups < 1 || channels % groups != 0)
    return importer.error() << channels << " channels do not divide into " << groups << " groups";
  SmallVector<int64_t> apart{shape[0], groups, countElements(ArrayRef(shape).drop_front(1)) / groups};
  Type element = x.getType().getElementType();
  auto statistic = RankedTensorType::get({shape[0], groups}, element), one = RankedTensorType::get({apart[2]}, element);
  Term joined = x.reshape(apart);
  auto norm =
      LayerNormOp::create(importer.builder, importer.loc, TypeRange{joined.getType(), statistic, statistic}, joined,
                          importer.splat(one, 1), importer.splat(one, 0), importer.builder.getF64FloatAttr(epsilon));
  int64_t numbers = perGroup ? groups : channels;
  FailureOr<Term> scale = readChannels(importer, 1, numbers, element),
                  bias = readChannels(importer, 2, numbers, element);
  if (failed(scale) || failed(bias))
    return failure();
  Term result = x.with(norm.getResult());
  if (perGroup)
    result = result * scale->broadcast({1}, apart) + bias->broadcast({1}, apart);
  result = result.reshape(shape);
  if (!perGroup)
    result = result * scale->broadcast({1}, shape) + bias->broadcast({1}, shape);
  return importer.bind(result.convert(given.getType().getElementType()));
}

LogicalResult importInstanceNorm(NodeImporter &importer) {
  FailureOr<Term> x = readOperand(importer, 3);
  if (failed(x))
    return failure();
  return bindGroupNorm(importer, *x, x->getShape()[1], false, importer.node.floatAttribute("epsilon", 1e-5));
}

LogicalResult importGroupNorm(NodeImporter &importer) {
  FailureOr<Term> x = readOperand(importer, 3);
  if (failed(x))
    return failure();
  return bindGroupNorm(importer, *x, importer.node.intAttribute("num_groups", 0), importer.opset() < 21,
                       importer.node.floatAttribute("epsilon", 1e-5));
}

/// x / sqrt(mean x^2 + epsilon) * scale over the dims from `axis` on.
LogicalResult importRmsNorm(NodeImporter &importer) {
  FailureOr<Term> given = readOperand(importer, 1);
  if (failed(given))
    return failure();
  int64_t rank = given->getShape().size();
  FailureOr<int64_t> dim = importer.dim("axis", -1, rank);
  if (failed(dim))
    return failure();
  Term x = wide(*given);
  SmallVector<int64_t> trailing = dimRange(*dim, rank);
  FailureOr<Value> scale = importer.stretched(1, x.getShape().drop_front(*dim));
  if (failed(scale))
    return failure();
  Term factor = rsqrt(meanOver(x * x, trailing) + importer.node.floatAttribute("epsilon", 1e-5));
  Term normed = (x * factor.broadcast(dimRange(0, *dim), x.getShape())).convert(given->getType().getElementType());
  Term weight = x.with(*scale);
  Type element = weight.getType().getElementType();
  return importer.bind(normed.convert(element) * weight.broadcast(trailing, x.getShape()));
}

/// x / (bias + alpha / size * sum of the squares of `size` neighbouring channels)^beta.
LogicalResult importLrn(NodeImporter &importer) {
  FailureOr<Term> x = readOperand(importer, 2);
  if (failed(x))
    return failure();
  int64_t size = importer.node.intAttribute("size", 1), rank = x->getShape().size();
  if (size < 1 || size > INT32_MAX)
    return importer.error() << "its size is " << size;
  SmallVector<int64_t> last{0}, back{0, rank - 1};
  llvm::append_range(last, dimRange(2, rank));
  last.push_back(1);
  llvm::append_range(back, dimRange(1, rank - 1));
  Term squares = (*x * *x).transpose(last);
  SmallVector<int64_t> shape(squares.getShape());
  shape.push_back(size);
  TypedAttr zero = importer.builder.getZeroAttr(squares.getType().getElementType());
  Term patches =
      squares.with(PatchesOp::create(importer.builder, importer.loc, squares.getType().clone(shape), squares,
                                     ArrayRef<int64_t>{size}, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{(size - 1) / 2},
                                     ArrayRef<int64_t>{size / 2}, ArrayRef<int64_t>{1}, zero));
  Term sum = patches.reduce(ReduceKind::sum, {rank}).transpose(back);
  Term base =
      sum * (importer.node.floatAttribute("alpha", 1e-4) / double(size)) + importer.node.floatAttribute("bias", 1);
  return importer.bind(*x / power(base, base.splat(importer.node.floatAttribute("beta", 0.75))));
}

LogicalResult importMeanVariance(NodeImporter &importer) {
  FailureOr<Term> x = readOperand(importer, 1);
  if (failed(x))
    return failure();
  int64_t rank = x->getShape().size();
  SmallVector<int64_t> dims{0, 2, 3};
  if (const onnx::Attribute *axes = importer.node.attribute("axes"))
    dims.assign(axes->ints.begin(), axes->ints.end());
  for (int64_t &dim : dims) {
    if (dim < -rank || dim >= rank)
      return importer.error() << "axis " << dim << " does not fit " << x->getType();
    dim += dim < 0 ? rank : 0;
  }
  llvm::sort(dims);
  if (auto twice = std::adjacent_find(dims.begin(), dims.end()); twice != dims.end())
    return importer.error() << "axis " << *twice << " is named twice";
  SmallVector<int64_t> kept = otherDims(rank, dims);
  Term centred = *x - meanOver(*x, dims).broadcast(kept, x->getShape());
  Term deviation = sqrt(meanOver(centred * centred, dims)) + 1e-9;
  return importer.bind(centred / deviation.broadcast(kept, x->getShape()));
}

/// x over its norm along one dim; a vector of zeros stays.
LogicalResult importLpNorm(NodeImporter &importer) {
  FailureOr<Term> x = readOperand(importer, 1);
  if (failed(x))
    return failure();
  int64_t rank = x->getShape().size(), p = importer.node.intAttribute("p", 2);
  FailureOr<int64_t> dim = importer.dim("axis", -1, rank);
  if (failed(dim))
    return failure();
  if (p != 1 && p != 2)
    return importer.error() << "its p is " << p << ", expected 1 or 2";
  Term sum =
      (p == 2 ? *x * *x : x->with(AbsOp::create(importer.builder, importer.loc, *x))).reduce(ReduceKind::sum, {*dim});
  sum = sum.compare(Predicate::eq, 0).select(sum.splat(1), sum);
  Term norm = p == 2 ? sqrt(sum) : sum;
  return importer.bind(*x / norm.broadcast(otherDims(rank, {*dim}), x->getShape()));
}

} // namespace

void addStatisticsImports(ImportTable &table) {
  table["BatchNormalization"] = importBatchNorm;
  table["InstanceNormalization"] = importInstanceNorm;
  table["GroupNormalization"] = importGroupNorm;
  table["RMSNormalization"] = importRmsNorm;
  table["LRN"] = importLrn;
  table["MeanVarianceNormalization"] = importMeanVariance;
  table["LpNormalization"] = importLpNorm;
}

} // namespace par
