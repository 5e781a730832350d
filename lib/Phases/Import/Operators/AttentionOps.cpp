// Attention and rotary embeddings, decomposed into matmuls, a softmax and masks.
#include "Indices.h"
#include "Operands.h"

#include <cmath>

namespace par {
namespace {

using namespace mlir;

/// [batch, sequence, heads * size] as [batch, heads, sequence, size]; four dims are that already.
FailureOr<Term> splitHeads(NodeImporter &importer, size_t i, const char *attribute) {
  FailureOr<Value> value = importer.tensor(i);
  if (failed(value))
    return failure();
  Term x = termOf(importer, *value);
  ArrayRef<int64_t> shape = x.getShape();
  if (shape.size() == 4)
    return x;
  int64_t heads = importer.node.intAttribute(attribute, 0);
  if (shape.size() != 3 || heads <= 0 || shape[2] % heads)
    return importer.error() << "input " << i << " is " << x.getType() << " and " << attribute << " " << heads
                            << ", expected 4 dims, or 3 of which the last one holds the heads";
  return x.with(importer.transpose(importer.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3}));
}

/// Every head of keys or values as often as there are queries for it.
Term repeatHeads(NodeImporter &importer, Term x, int64_t heads) {
  ArrayRef<int64_t> s = x.getShape();
  if (s[1] == heads)
    return x;
  Term wide = x.broadcast({0, 1, 3, 4}, {s[0], s[1], heads / s[1], s[2], s[3]});
  return x.with(importer.reshape(wide, {s[0], heads, s[2], s[3]}));
}

/// Concatenates the keys (values) of earlier calls and those of this one.
FailureOr<Term> withPast(NodeImporter &importer, Term x, size_t past) {
  if (!importer.has(past))
    return x;
  FailureOr<Value> earlier = importer.tensor(past);
  if (failed(earlier))
    return failure();
  SmallVector<int64_t> expected(x.getShape());
  auto type = cast<RankedTensorType>(earlier->getType());
  if (type.getRank() == 4)
    expected[2] = type.getDimSize(2);
  if (type != x.getType().clone(expected))
    return importer.error() << "its past is " << type << ", the new part " << x.getType();
  return x.with(ConcatOp::create(importer.builder, importer.loc, ValueRange{*earlier, x}, 2));
}

/// The sum that is added to the scores of `type` (batch, heads, queries, keys): 0, the mask's number, or minus
/// infinity.
struct Bias {
  NodeImporter &importer;
  RankedTensorType type;
  Value sum; ///< null while nothing is added

  Term zero() { return termOf(importer, importer.splat(type, 0)); }
  void add(Term part) { sum = sum ? Value(termOf(importer, sum) + part) : Value(part); }
  /// Adds minus infinity where the i1 tensor of the scores' shape is false.
  void mask(Term kept) { add(kept.select(zero(), importer.splat(type, -infinity))); }
};

LogicalResult addMask(Bias &bias) {
  NodeImporter &importer = bias.importer;
  if (!importer.has(3))
    return success();
  FailureOr<Value> given = importer.tensor(3);
  if (failed(given))
    return failure();
  auto type = cast<RankedTensorType>(given->getType());
  Type element = type.getElementType();
  // A mask may be shorter than the keys: keys after its end are masked out.
  int64_t keys = bias.type.getDimSize(3), have = type.getRank() ? type.getShape().back() : 0;
  Value mask = *given;
  if (have > 1 && have < keys) {
    SmallVector<int64_t> low(type.getRank(), 0), high(low);
    high.back() = keys - have;
    TypedAttr fill = element.isInteger(1) ? TypedAttr(importer.builder.getBoolAttr(false))
                                          : TypedAttr(importer.builder.getFloatAttr(element, -infinity));
    mask = PadOp::create(importer.builder, importer.loc, mask, low, high, fill);
  }
  auto padded = cast<RankedTensorType>(mask.getType());
  FailureOr<Shape> shape = broadcastShapes(padded.getShape(), bias.type.getShape());
  if (failed(shape) || ArrayRef(*shape) != bias.type.getShape() ||
      (!element.isInteger(1) && element != bias.type.getElementType()))
    return importer.error() << "its mask is " << type << ", the scores " << bias.type;
  Term wide = termOf(importer, importer.stretch(mask, bias.type.getShape()));
  if (element.isInteger(1))
    bias.mask(wide);
  else
    bias.add(wide);
  return success();
}

/// Causal masks, aligned after the past keys, and samples that end before the cache does.
LogicalResult addPositionMasks(Bias &bias, int64_t past) {
  NodeImporter &importer = bias.importer;
  auto matrix = bias.type.clone(bias.type.getShape().take_back(2));
  if (importer.node.intAttribute("is_causal", 0) != 0) {
    Term kept = positions(importer, matrix, 1).compare(Predicate::le, positions(importer, matrix, 0) + double(past));
    bias.mask(kept.broadcast({2, 3}, bias.type.getShape()));
  }
  if (!importer.has(6))
    return success();
  FailureOr<Value> lengths = importer.tensor(6);
  if (failed(lengths))
    return failure();
  auto type = cast<RankedTensorType>(lengths->getType());
  if (type.getShape() != bias.type.getShape().take_front(1))
    return importer.error() << "its nonpad_kv_seqlen is " << type << ", expected one for each of "
                            << bias.type.getDimSize(0) << " samples";
  Term length = termOf(importer, *lengths).convert(importer.builder.getI64Type());
  bias.mask(positions(importer, bias.type, 3).compare(Predicate::lt, length.broadcast({0}, bias.type.getShape())));
  return success();
}

/// The softmax along the keys, in the requested precision; a row without keys is NaN, as in the formula.
FailureOr<Term> softmaxOf(NodeImporter &importer, Term scores) {
  Type element = scores.getType().getElementType(), compute = element;
  if (importer.node.attribute("softmax_precision")) {
    FailureOr<Type> asked = importer.elementType("softmax_precision");
    if (failed(asked))
      return failure();
    compute = *asked;
  }
  Term wide = scores.convert(compute);
  return wide.with(SoftmaxOp::create(importer.builder, importer.loc, wide.getType(), wide, 3)).convert(element);
}

struct Heads {
  Term q, k, v;
};

/// After it: queries, and keys and values with their past, four dims each, one head of keys for each head of queries.
FailureOr<Heads> readHeads(NodeImporter &importer, int64_t &past) {
  FailureOr<Term> q = splitHeads(importer, 0, "q_num_heads"), k = splitHeads(importer, 1, "kv_num_heads"),
                  v = splitHeads(importer, 2, "kv_num_heads");
  if (failed(q) || failed(k) || failed(v))
    return failure();
  int64_t fresh = k->getShape()[2];
  k = withPast(importer, *k, 4);
  v = failed(k) ? FailureOr<Term>(failure()) : withPast(importer, *v, 5);
  if (failed(v))
    return failure();
  past = k->getShape()[2] - fresh;
  if ((importer.isUsed(1) && failed(importer.bind(*k, 1))) || (importer.isUsed(2) && failed(importer.bind(*v, 2))))
    return failure();
  ArrayRef<int64_t> qs = q->getShape(), ks = k->getShape(), vs = v->getShape();
  bool fits = qs[0] == ks[0] && ks[0] == vs[0] && qs[3] == ks[3] && ks[2] == vs[2] && ks[1] == vs[1] && ks[1] > 0 &&
              qs[1] % ks[1] == 0 && q->getType().getElementType() == k->getType().getElementType() &&
              isa<FloatType>(q->getType().getElementType());
  if (!fits)
    return importer.error() << "queries are " << q->getType() << ", keys " << k->getType() << ", values "
                            << v->getType();
  return Heads{*q, repeatHeads(importer, *k, qs[1]), repeatHeads(importer, *v, qs[1])};
}

/// softmax(softcap(q k^T scale) + bias) v (Vaswani and others 2017, equation 1); sqrt(scale) goes to q and to k, as in
/// ONNX, to keep narrow floats in range.
LogicalResult importAttention(NodeImporter &importer) {
  int64_t past = 0;
  FailureOr<Heads> heads = readHeads(importer, past);
  if (failed(heads))
    return failure();
  auto [q, k, v] = *heads;
  OpBuilder &builder = importer.builder;
  double scale = std::sqrt(importer.node.floatAttribute("scale", 1 / std::sqrt(double(q.getShape()[3]))));
  Term scores = q.with(buildDot(builder, importer.loc, q * scale, k * scale, {3}, {3}, {0, 1}, {0, 1}));
  int64_t mode = importer.node.intAttribute("qk_matmul_output_mode", 0);
  Term shown = scores;
  if (double cap = importer.node.floatAttribute("softcap", 0); cap > 0)
    scores = tanh(scores / cap) * cap;
  if (mode == 1)
    shown = scores;
  Bias bias{importer, scores.getType(), {}};
  if (failed(addMask(bias)) || failed(addPositionMasks(bias, past)))
    return failure();
  if (bias.sum)
    scores = scores + scores.with(bias.sum);
  if (mode == 2)
    shown = scores;
  FailureOr<Term> weights = softmaxOf(importer, scores);
  if (failed(weights))
    return failure();
  if (importer.isUsed(3) && failed(importer.bind(mode == 3 ? *weights : shown, 3)))
    return failure();
  Term result = v.with(buildDot(builder, importer.loc, *weights, v, {3}, {2}, {0, 1}, {0, 1}));
  FailureOr<RankedTensorType> given = importer.type(0);
  if (failed(given) || given->getRank() == 4)
    return failed(given) ? failure() : importer.bind(result);
  ArrayRef<int64_t> s = result.getShape();
  SmallVector<int64_t> flat{s[0], s[2], s[1] * s[3]};
  return importer.bind(importer.reshape(importer.transpose(result, {0, 2, 1, 3}), flat));
}

/// Rows of a cache for the positions, over (batch, sequence, heads, half).
FailureOr<Term> readCache(NodeImporter &importer, size_t i, ArrayRef<int64_t> shape) {
  FailureOr<Value> cache = importer.tensor(i);
  if (failed(cache))
    return failure();
  Term rows = termOf(importer, *cache);
  if (importer.has(3)) {
    FailureOr<Value> ids = importer.tensor(3);
    if (failed(ids))
      return failure();
    if (rows.getShape().size() != 2)
      return importer.error() << "input " << i << " is " << rows.getType() << ", expected a matrix beside position_ids";
    rows = rows.with(gatherAt(importer, rows, *ids, 0));
  }
  // Exporters leave one row for all samples.
  SmallVector<int64_t> expected{shape[0], shape[1], shape[3]}, shared{1, shape[1], shape[3]};
  if (rows.getShape() != ArrayRef(expected) && rows.getShape() != ArrayRef(shared))
    return importer.error() << "input " << i << " gives " << rows.getType() << ", expected "
                            << rows.getType().clone(expected);
  return rows.broadcast({0, 1, 3}, shape);
}

/// Pairs of each head turned by an angle of their position (Su and others 2021): halves, or neighbours if interleaved.
LogicalResult importRotaryEmbedding(NodeImporter &importer) {
  FailureOr<Term> split = splitHeads(importer, 0, "num_heads");
  if (failed(split))
    return failure();
  Term x = split->transpose({0, 2, 1, 3}); // batch, sequence, heads, size
  SmallVector<int64_t> shape(x.getShape());
  int64_t turned = importer.node.intAttribute("rotary_embedding_dim", 0);
  turned = turned == 0 ? shape[3] : turned;
  if (turned < 0 || turned > shape[3] || turned % 2)
    return importer.error() << "rotary_embedding_dim is " << turned << ", expected an even number up to " << shape[3];
  SmallVector<int64_t> half(shape), pairs(shape);
  half[3] = turned / 2;
  bool interleaved = importer.node.intAttribute("interleaved", 0) != 0;
  pairs[3] = interleaved ? turned / 2 : 2;
  pairs.push_back(interleaved ? 2 : turned / 2);
  int64_t side = interleaved ? 4 : 3;
  Value front = importer.reshape(importer.slice(x, 3, 0, turned), pairs);
  auto part = [&](int64_t k) { return x.with(importer.reshape(importer.slice(front, side, k, 1), half)); };
  FailureOr<Term> cosine = readCache(importer, 1, half), sine = readCache(importer, 2, half);
  if (failed(cosine) || failed(sine))
    return failure();
  Term real = *cosine * part(0) - *sine * part(1), imaginary = *sine * part(0) + *cosine * part(1);
  SmallVector<int64_t> one(half);
  one.insert(one.begin() + side, 1);
  Value joined = ConcatOp::create(importer.builder, importer.loc,
                                  ValueRange{importer.reshape(real, one), importer.reshape(imaginary, one)}, side);
  SmallVector<int64_t> whole(shape);
  whole[3] = turned;
  Value result = importer.reshape(joined, whole);
  if (turned < shape[3])
    result = ConcatOp::create(importer.builder, importer.loc,
                              ValueRange{result, importer.slice(x, 3, turned, shape[3] - turned)}, 3);
  FailureOr<RankedTensorType> given = importer.type(0);
  if (failed(given))
    return failure();
  if (given->getRank() == 4)
    return importer.bind(importer.transpose(result, {0, 2, 1, 3}));
  return importer.bind(importer.reshape(result, given->getShape()));
}

} // namespace

void addAttentionImports(ImportTable &table) {
  table["Attention"] = importAttention;
  table["RotaryEmbedding"] = importRotaryEmbedding;
}

} // namespace par
