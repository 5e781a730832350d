// Ops that carry a state along a sequence, as operand and result (opset 27).
#include "Operands.h"

#include <cmath>

namespace par {
namespace {

using namespace mlir;

/// Each channel by its own kernel, looking back: output t is the sum over j of w[j] padded[t + j].
LogicalResult importCausalConvWithState(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0), filter = importer.tensor(1);
  if (failed(x) || failed(filter))
    return failure();
  auto type = cast<RankedTensorType>(x->getType()), filterType = cast<RankedTensorType>(filter->getType());
  if (type.getRank() != 3 || filterType.getRank() != 3 || filterType.getDimSize(0) != type.getDimSize(1) ||
      filterType.getDimSize(1) != 1 || filterType.getDimSize(2) < 1 || !isa<FloatType>(type.getElementType()) ||
      filterType.getElementType() != type.getElementType())
    return importer.error() << "convolves " << type << " with " << filterType << ", expected (channels, 1, width)";
  int64_t channels = type.getDimSize(1), length = type.getDimSize(2), taps = filterType.getDimSize(2);
  if (failed(importer.unroll(taps, 6)))
    return failure();
  RankedTensorType stateType = type.clone({type.getDimSize(0), channels, taps - 1});
  FailureOr<Value> state = importer.has(3) ? importer.tensor(3) : FailureOr<Value>(importer.splat(stateType, 0));
  if (failed(state))
    return failure();
  if (state->getType() != stateType)
    return importer.error() << "its state is " << state->getType() << ", expected " << stateType;
  Value padded =
      taps == 1 ? *x : ConcatOp::create(importer.builder, importer.loc, ValueRange{*state, *x}, 2).getResult();
  std::optional<Term> sum;
  for (int64_t j = 0; j < taps; ++j) {
    Term weight = termOf(importer, importer.reshape(importer.slice(*filter, 2, j, 1), {channels}));
    Term part = weight.with(importer.slice(padded, 2, j, length)) * weight.broadcast({1}, type.getShape());
    sum = sum ? *sum + part : part;
  }
  if (importer.has(2)) {
    FailureOr<Value> bias = importer.tensor(2);
    if (failed(bias))
      return failure();
    if (bias->getType() != type.clone(channels))
      return importer.error() << "its bias is " << bias->getType() << ", it has " << channels << " channels";
    sum = *sum + sum->with(*bias).broadcast({1}, type.getShape());
  }
  StringRef activation(importer.node.stringAttribute("activation", "none"));
  if (activation == "silu" || activation == "swish")
    sum = *sum * sigmoid(*sum);
  else if (activation != "none")
    return importer.error() << "activation is \"" << activation << "\", expected silu, swish or none";
  if (failed(importer.bind(*sum)))
    return failure();
  return importer.bind(importer.slice(padded, 2, length, taps - 1), 1);
}

/// Linear attention: the state of a head is a matrix (keys, values) to which every step adds.
struct LinearAttention {
  int64_t batch, length, heads, sharing, keys, values; ///< `sharing` queries read one head's state
  double scale;
  bool gated, corrected;
  std::optional<Term> q, k, v, decay, beta; ///< (batch, length, heads, ..)
};

/// Input i (batch, length, heads * n) with its heads apart.
FailureOr<Term> headsOf(NodeImporter &importer, size_t i, int64_t heads) {
  FailureOr<Value> x = importer.tensor(i);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  if (type.getRank() != 3 || heads <= 0 || type.getDimSize(2) % heads || !isa<FloatType>(type.getElementType()))
    return importer.error() << "input " << i << " is " << type << ", expected (batch, length, " << heads
                            << " heads * width)";
  Term apart = termOf(
      importer, importer.reshape(*x, {type.getDimSize(0), type.getDimSize(1), heads, type.getDimSize(2) / heads}));
  return type.getElementTypeBitWidth() < 32 ? apart.convert(importer.builder.getF32Type()) : apart;
}

/// Fails with an error unless `x` has the batch, steps and element type of the queries, and one of `widths` a
/// head.
LogicalResult checkSteps(NodeImporter &importer, size_t i, Term x, Term q, ArrayRef<int64_t> widths) {
  if (x.getShape().take_front(2) == q.getShape().take_front(2) && llvm::is_contained(widths, x.getShape()[3]) &&
      x.getType().getElementType() == q.getType().getElementType())
    return success();
  return importer.error() << "input " << i << " with its heads apart is " << x.getType() << ", the queries are "
                          << q.getType();
}

LogicalResult readGates(NodeImporter &importer, LinearAttention &attention) {
  SmallVector<int64_t> shape{attention.batch, attention.length, attention.heads, attention.keys};
  if (attention.gated) {
    FailureOr<Term> decay = headsOf(importer, 4, attention.heads);
    if (failed(decay) || failed(checkSteps(importer, 4, *decay, *attention.q, {1, attention.keys})))
      return failure();
    attention.decay = exp(*decay);
    if (decay->getShape().back() == 1) // one decay a head
      attention.decay = decay->with(importer.stretch(*attention.decay, shape));
  }
  if (attention.corrected) {
    FailureOr<RankedTensorType> type = importer.type(5);
    bool shared = succeeded(type) && type->getRank() == 3 && type->getDimSize(2) == 1;
    FailureOr<Term> beta =
        failed(type) ? FailureOr<Term>(failure()) : headsOf(importer, 5, shared ? 1 : attention.heads);
    if (failed(beta) || failed(checkSteps(importer, 5, *beta, *attention.q, {1})))
      return failure();
    shape.back() = attention.values;
    attention.beta = beta->with(importer.stretch(*beta, shape));
  }
  return success();
}

FailureOr<LinearAttention> readLinearAttention(NodeImporter &importer) {
  const onnx::Node &node = importer.node;
  int64_t queries = node.intAttribute("q_num_heads", 0), heads = node.intAttribute("kv_num_heads", 0);
  StringRef rule(node.stringAttribute("update_rule", "gated_delta"));
  bool gated = rule.contains("gated"), corrected = rule.contains("delta");
  if (!llvm::is_contained({"linear", "gated", "delta", "gated_delta"}, rule) || gated != importer.has(4) ||
      corrected != importer.has(5) || heads <= 0 || queries % heads)
    return importer.error() << "update_rule \"" << rule << "\" of " << queries << " heads over " << heads << " with"
                            << (importer.has(4) ? "" : "out") << " decay and with" << (importer.has(5) ? "" : "out")
                            << " beta";
  FailureOr<Term> q = headsOf(importer, 0, queries), k = headsOf(importer, 1, heads), v = headsOf(importer, 2, heads);
  if (failed(q) || failed(k) || failed(v))
    return failure();
  int64_t length = q->getShape()[1];
  if (length < 1 || failed(checkSteps(importer, 1, *k, *q, {q->getShape()[3]})) ||
      failed(checkSteps(importer, 2, *v, *q, {v->getShape()[3]})))
    return length < 1 ? importer.error() << "input 0 is " << q->getType() << ", which has no steps" : failure();
  LinearAttention attention{q->getShape()[0],
                            q->getShape()[1],
                            heads,
                            queries / heads,
                            q->getShape()[3],
                            v->getShape()[3],
                            node.floatAttribute("scale", 0),
                            gated,
                            corrected,
                            *q,
                            *k,
                            *v,
                            {},
                            {}};
  if (attention.scale == 0)
    attention.scale = 1 / std::sqrt(double(attention.keys));
  if (failed(readGates(importer, attention)))
    return failure();
  return attention;
}

/// Step t of (batch, length, heads, n).
Term stepOf(NodeImporter &importer, Term x, int64_t t) {
  ArrayRef<int64_t> shape = x.getShape();
  return x.with(importer.reshape(importer.slice(x, 1, t, 1), {shape[0], shape[2], shape[3]}));
}

/// The queries' read of one step's state, (batch, query heads * values).
Term readState(NodeImporter &importer, const LinearAttention &attention, Term q, Term state) {
  SmallVector<int64_t> shape{attention.batch, attention.heads, attention.sharing, attention.keys, attention.values};
  Term apart = q.with(importer.reshape(q, {shape[0], shape[1], shape[2], shape[3]}));
  Term product = apart.broadcast({0, 1, 2, 3}, shape) * state.broadcast({0, 1, 3, 4}, shape);
  Term read = product.reduce(ReduceKind::sum, {3}) * attention.scale;
  return read.with(importer.reshape(read, {attention.batch, 1, shape[1] * shape[2] * shape[4]}));
}

LogicalResult importLinearAttention(NodeImporter &importer) {
  FailureOr<LinearAttention> attention = readLinearAttention(importer);
  if (failed(attention))
    return failure();
  SmallVector<int64_t> shape{attention->batch, attention->heads, attention->keys, attention->values};
  FailureOr<RankedTensorType> out = importer.type(0), stateType = importer.type(importer.has(3) ? 3 : 0);
  if (failed(out) || failed(stateType))
    return failure();
  Type element = attention->q->getType().getElementType();
  Term state = attention->q->with(importer.splat(RankedTensorType::get(shape, element), 0));
  if (importer.has(3)) {
    FailureOr<Value> past = importer.tensor(3);
    if (failed(past))
      return failure();
    if (stateType->getShape() != ArrayRef<int64_t>(shape) || !isa<FloatType>(stateType->getElementType()))
      return importer.error() << "its state is " << *stateType << ", expected " << state.getType();
    state = stateType->getElementType() == element ? state.with(*past) : state.with(*past).convert(element);
  }
  if (failed(importer.unroll(attention->length, 20)))
    return failure();
  SmallVector<Value> steps;
  for (int64_t t = 0; t < attention->length; ++t) {
    Term k = stepOf(importer, *attention->k, t).broadcast({0, 1, 2}, shape), v = stepOf(importer, *attention->v, t);
    if (attention->gated)
      state = state * stepOf(importer, *attention->decay, t).broadcast({0, 1, 2}, shape);
    if (attention->corrected)
      v = stepOf(importer, *attention->beta, t) * (v - (state * k).reduce(ReduceKind::sum, {2}));
    state = state + k * v.broadcast({0, 1, 3}, shape);
    steps.push_back(readState(importer, *attention, stepOf(importer, *attention->q, t), state));
  }
  Term all = state.with(steps.size() == 1 ? steps[0] : ConcatOp::create(importer.builder, importer.loc, steps, 1));
  auto as = [&](Term value, Type type) {
    return value.getType().getElementType() == type ? value : value.convert(type);
  };
  if (failed(importer.bind(as(all, out->getElementType()))))
    return failure();
  return importer.bind(as(state, stateType->getElementType()), 1);
}

} // namespace

void addStateImports(ImportTable &table) {
  table["CausalConvWithState"] = importCausalConvWithState;
  table["LinearAttention"] = importLinearAttention;
}

} // namespace par
