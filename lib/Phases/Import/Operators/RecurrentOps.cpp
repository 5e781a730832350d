// RNN, GRU and LSTM, unrolled over their steps. Formulas: the ONNX operator specification of each.
#include "../Graph/GraphImporter.h"

#include "par/Dialect/Term.h"

namespace par {
namespace {

using namespace mlir;

/// About as many nodes would a step be that an exporter writes out.
constexpr int64_t nodesOfStep = 10;

/// The operands of one direction of a recurrent node.
struct Direction {
  Value input;         ///< (steps, batch, gates * hidden): matmuls with the input weight, biases added
  Value recurrent;     ///< (gates * hidden, hidden)
  Value recurrentBias; ///< (gates * hidden), or null; not in `input` if a gate uses it separately
  Value peephole;      ///< (3 * hidden) of an LSTM, or null
  Value hidden, cell;  ///< state, (batch, hidden)
  bool backwards = false;
  SmallVector<std::string> activations;
};

class Recurrent {
public:
  Recurrent(NodeImporter &importer, int64_t gates)
      : importer(importer), builder(importer.builder), loc(importer.loc), gates(gates) {}

  LogicalResult run();

private:
  LogicalResult readShapes();
  LogicalResult readDirection(int64_t k, Direction &direction);
  FailureOr<Value> part(size_t input, int64_t k);
  FailureOr<Value> initialState(size_t input, int64_t k);
  FailureOr<Value> activate(StringRef name, Value x);
  LogicalResult step(Direction &direction, int64_t at);
  FailureOr<Value> stepRnn(Direction &direction, Value input);
  FailureOr<Value> stepGru(Direction &direction, Value input);
  FailureOr<Value> stepLstm(Direction &direction, Value input, Value &cell);
  Value gate(Value value, int64_t k) { return importer.slice(value, rankOf(value) - 1, k * hidden, hidden); }
  Value times(Value state, Value weight) { return buildDot(builder, loc, state, weight, {1}, {1}); }
  Value add(Value a, Value b) { return AddOp::create(builder, loc, a, b); }
  Value multiply(Value a, Value b) { return MultiplyOp::create(builder, loc, a, b); }
  Value addRow(Value value, Value row) { return row ? add(value, importer.stretch(row, shapeOf(value))) : value; }
  static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }
  static int64_t rankOf(Value value) { return shapeOf(value).size(); }
  LogicalResult bindResults(ArrayRef<Direction> directions, std::vector<SmallVector<Value>> &outputs);

  NodeImporter &importer;
  OpBuilder &builder;
  Location loc;
  int64_t gates;
  int64_t steps = 0, batch = 0, hidden = 0, directionCount = 1;
  bool batchFirst = false, resetFirst = true;
  Value input, lengths; ///< (steps, batch, features); (batch) or null
};

LogicalResult Recurrent::readShapes() {
  FailureOr<Value> x = importer.tensor(0);
  FailureOr<RankedTensorType> w = importer.type(1), r = importer.type(2);
  if (failed(x) || failed(w) || failed(r))
    return failure();
  batchFirst = importer.node.intAttribute("layout", 0) != 0;
  input = batchFirst && rankOf(*x) == 3 ? importer.transpose(*x, {1, 0, 2}) : *x;
  StringRef direction(importer.node.stringAttribute("direction", "forward"));
  directionCount = direction == "bidirectional" ? 2 : 1;
  hidden = r->getRank() == 3 ? r->getDimSize(2) : 0;
  bool fits = rankOf(input) == 3 && w->getRank() == 3 && hidden > 0 && w->getDimSize(0) == directionCount &&
              w->getDimSize(1) == gates * hidden && w->getDimSize(2) == shapeOf(input)[2] &&
              r->getShape() == ArrayRef<int64_t>({directionCount, gates * hidden, hidden}) &&
              isa<FloatType>(w->getElementType());
  if (!fits)
    return importer.error() << "does not fit its operands " << x->getType() << ", " << *w << ", " << *r;
  steps = shapeOf(input)[0];
  batch = shapeOf(input)[1];
  if (steps == 0)
    return importer.unsupported("no steps");
  resetFirst = importer.node.intAttribute("linear_before_reset", 0) == 0;
  if (importer.node.attribute("clip"))
    return importer.unsupported("clip");
  if (importer.node.intAttribute("input_forget", 0))
    return importer.unsupported("input_forget");
  if (!importer.has(4))
    return success();
  const StaticTensor *known = importer.known(4);
  if (known && known->splat() && *known->splat() == double(steps))
    return success();
  FailureOr<Value> given = importer.tensor(4);
  if (failed(given))
    return failure();
  Type element = cast<RankedTensorType>(given->getType()).getElementType();
  if (shapeOf(*given) != ArrayRef<int64_t>({batch}) || isa<FloatType>(element))
    return importer.error() << "its lengths are " << given->getType() << ", expected integers for a batch of " << batch;
  lengths = *given;
  return success();
}

/// One direction of an operand, without that dim.
FailureOr<Value> Recurrent::part(size_t operand, int64_t k) {
  FailureOr<Value> whole = importer.tensor(operand);
  if (failed(whole))
    return failure();
  if (rankOf(*whole) < 1 || shapeOf(*whole)[0] != directionCount)
    return importer.error() << "input " << operand << " is " << whole->getType() << ", expected " << directionCount
                            << " in dim 0";
  return importer.reshape(importer.slice(*whole, 0, k, 1), shapeOf(*whole).drop_front());
}

FailureOr<Value> Recurrent::initialState(size_t operand, int64_t k) {
  auto type = RankedTensorType::get({batch, hidden}, cast<RankedTensorType>(input.getType()).getElementType());
  if (!importer.has(operand))
    return importer.splat(type, 0);
  FailureOr<Value> whole = importer.tensor(operand);
  if (failed(whole))
    return failure();
  int64_t dim = batchFirst ? 1 : 0;
  if (rankOf(*whole) != 3 || shapeOf(*whole)[dim] != directionCount || shapeOf(*whole)[1 - dim] != batch ||
      shapeOf(*whole)[2] != hidden)
    return importer.error() << "its initial state is " << whole->getType();
  return importer.reshape(importer.slice(*whole, dim, k, 1), type.getShape());
}

LogicalResult Recurrent::readDirection(int64_t k, Direction &direction) {
  direction.backwards = k == 1 || importer.node.stringAttribute("direction", "forward") == "reverse";
  FailureOr<Value> weight = part(1, k), recurrent = part(2, k), state = initialState(5, k);
  if (failed(weight) || failed(recurrent) || failed(state))
    return failure();
  direction.hidden = *state;
  direction.recurrent = *recurrent;
  direction.input = buildDot(builder, loc, input, *weight, {2}, {1});
  if (importer.has(3)) {
    FailureOr<Value> bias = part(3, k);
    if (failed(bias))
      return failure();
    if (shapeOf(*bias) != ArrayRef<int64_t>({2 * gates * hidden}))
      return importer.error() << "its bias is " << bias->getType() << " a direction";
    direction.input = addRow(direction.input, importer.slice(*bias, 0, 0, gates * hidden));
    direction.recurrentBias = importer.slice(*bias, 0, gates * hidden, gates * hidden);
  }
  if (gates == 4) {
    FailureOr<Value> cell = initialState(6, k);
    if (failed(cell))
      return failure();
    direction.cell = *cell;
  }
  if (gates == 4 && importer.has(7)) {
    FailureOr<Value> peephole = part(7, k);
    if (failed(peephole))
      return failure();
    if (shapeOf(*peephole) != ArrayRef<int64_t>({3 * hidden}))
      return importer.error() << "its peepholes are " << peephole->getType() << " a direction";
    direction.peephole = *peephole;
  }
  SmallVector<std::string> defaults{"Sigmoid", "Tanh", "Tanh"};
  size_t count = gates == 4 ? 3 : gates == 3 ? 2 : 1;
  if (count == 1)
    defaults = {"Tanh"};
  direction.activations.assign(defaults.begin(), defaults.begin() + count);
  if (const onnx::Attribute *given = importer.node.attribute("activations"))
    for (size_t i = 0; i < count && k * count + i < given->strings.size(); ++i)
      direction.activations[i] = given->strings[k * count + i];
  return success();
}

FailureOr<Value> Recurrent::activate(StringRef name, Value x) {
  if (name.equals_insensitive("sigmoid"))
    return SigmoidOp::create(builder, loc, x.getType(), x).getResult();
  if (name.equals_insensitive("tanh"))
    return TanhOp::create(builder, loc, x.getType(), x).getResult();
  if (name.equals_insensitive("relu"))
    return MaximumOp::create(builder, loc, x, importer.splat(cast<RankedTensorType>(x.getType()), 0)).getResult();
  return importer.unsupported("activation " + name);
}

/// H' = f(X W + H R + b).
FailureOr<Value> Recurrent::stepRnn(Direction &direction, Value input) {
  Value sum = add(input, addRow(times(direction.hidden, direction.recurrent), direction.recurrentBias));
  return activate(direction.activations[0], sum);
}

/// z, r = f(...); h = g(X Wh + (r H) Rh + b), or g(X Wh + r (H Rh + b)); H' = (1 - z) h + z H.
FailureOr<Value> Recurrent::stepGru(Direction &direction, Value input) {
  Value inner = addRow(times(direction.hidden, direction.recurrent), direction.recurrentBias);
  FailureOr<Value> update = activate(direction.activations[0], add(gate(input, 0), gate(inner, 0)));
  FailureOr<Value> reset = activate(direction.activations[0], add(gate(input, 1), gate(inner, 1)));
  if (failed(update) || failed(reset))
    return failure();
  Value candidate;
  if (resetFirst) {
    Value weight = importer.slice(direction.recurrent, 0, 2 * hidden, hidden);
    Value bias = direction.recurrentBias ? gate(direction.recurrentBias, 2) : Value();
    candidate = addRow(times(multiply(*reset, direction.hidden), weight), bias);
  } else {
    candidate = multiply(*reset, gate(inner, 2));
  }
  FailureOr<Value> fresh = activate(direction.activations[1], add(gate(input, 2), candidate));
  if (failed(fresh))
    return failure();
  Term z(builder, loc, *update);
  return Value((1.0 - z) * z.with(*fresh) + z * z.with(direction.hidden));
}

/// i, o, f, c gates in this order; C' = f C + i c; H' = o h(C'). Peepholes look at the cell, o's at the new one.
FailureOr<Value> Recurrent::stepLstm(Direction &direction, Value input, Value &cell) {
  Value sums = add(input, addRow(times(direction.hidden, direction.recurrent), direction.recurrentBias));
  auto peek = [&](Value sum, Value state, int64_t k) {
    if (!direction.peephole)
      return sum;
    return add(sum, multiply(importer.stretch(gate(direction.peephole, k), shapeOf(state)), state));
  };
  FailureOr<Value> in = activate(direction.activations[0], peek(gate(sums, 0), direction.cell, 0));
  FailureOr<Value> forget = activate(direction.activations[0], peek(gate(sums, 2), direction.cell, 2));
  FailureOr<Value> candidate = activate(direction.activations[1], gate(sums, 3));
  if (failed(in) || failed(forget) || failed(candidate))
    return failure();
  cell = add(multiply(*forget, direction.cell), multiply(*in, *candidate));
  FailureOr<Value> out = activate(direction.activations[0], peek(gate(sums, 1), cell, 1));
  FailureOr<Value> squashed = activate(direction.activations[2], cell);
  if (failed(out) || failed(squashed))
    return failure();
  return multiply(*out, *squashed);
}

/// Moves the state on by step `at`; a sample that is shorter keeps its state.
LogicalResult Recurrent::step(Direction &direction, int64_t at) {
  Value input = importer.reshape(importer.slice(direction.input, 0, at, 1), {batch, gates * hidden});
  Value cell = direction.cell;
  FailureOr<Value> next = gates == 1   ? stepRnn(direction, input)
                          : gates == 3 ? stepGru(direction, input)
                                       : stepLstm(direction, input, cell);
  if (failed(next))
    return failure();
  if (lengths) {
    auto type = cast<RankedTensorType>(lengths.getType());
    Value there = CompareOp::create(builder, loc, Predicate::gt, lengths, importer.splat(type, double(at)));
    Value mask = buildBroadcast(builder, loc, there, {0}, {batch, hidden});
    next = Value(SelectOp::create(builder, loc, next->getType(), mask, *next, direction.hidden));
    if (cell)
      cell = SelectOp::create(builder, loc, cell.getType(), mask, cell, direction.cell);
  }
  direction.hidden = *next;
  direction.cell = cell;
  return success();
}

LogicalResult Recurrent::run() {
  if (failed(readShapes()))
    return failure();
  if (failed(importer.unroll(steps, nodesOfStep * directionCount)))
    return failure();
  SmallVector<Direction> directions(directionCount);
  std::vector<SmallVector<Value>> outputs(directionCount, SmallVector<Value>(steps));
  for (int64_t k = 0; k < directionCount; ++k) {
    if (failed(readDirection(k, directions[k])))
      return failure();
    for (int64_t i = 0; i < steps; ++i) {
      int64_t at = directions[k].backwards ? steps - 1 - i : i;
      if (failed(step(directions[k], at)))
        return failure();
      Value output = directions[k].hidden;
      if (lengths) { // zeros after a sample's end
        auto type = cast<RankedTensorType>(lengths.getType());
        Value there = CompareOp::create(builder, loc, Predicate::gt, lengths, importer.splat(type, double(at)));
        Value mask = buildBroadcast(builder, loc, there, {0}, {batch, hidden});
        auto outputType = cast<RankedTensorType>(output.getType());
        output = SelectOp::create(builder, loc, outputType, mask, output, importer.splat(outputType, 0));
      }
      outputs[k][at] = output;
    }
  }
  return bindResults(directions, outputs);
}

static Value join(NodeImporter &importer, ArrayRef<Value> parts, int64_t dim) {
  if (parts.size() == 1)
    return parts[0];
  auto type = cast<RankedTensorType>(parts[0].getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] *= parts.size();
  return ConcatOp::create(importer.builder, importer.loc, type.clone(shape), parts, dim);
}

/// Y (steps, directions, batch, hidden), Y_h and Y_c (directions, batch, hidden); the batch first where asked for.
LogicalResult Recurrent::bindResults(ArrayRef<Direction> directions, std::vector<SmallVector<Value>> &outputs) {
  SmallVector<Value> all, last, cells;
  for (auto [direction, own] : llvm::zip(directions, outputs)) {
    for (Value &output : own)
      output = importer.reshape(output, {1, 1, batch, hidden});
    all.push_back(join(importer, own, 0));
    last.push_back(importer.reshape(direction.hidden, {1, batch, hidden}));
    if (direction.cell)
      cells.push_back(importer.reshape(direction.cell, {1, batch, hidden}));
  }
  auto arranged = [&](Value value, ArrayRef<int64_t> order) {
    return batchFirst ? importer.transpose(value, order) : value;
  };
  if (importer.isUsed(0) && failed(importer.bind(arranged(join(importer, all, 1), {2, 0, 1, 3}), 0)))
    return failure();
  if (importer.isUsed(1) && failed(importer.bind(arranged(join(importer, last, 0), {1, 0, 2}), 1)))
    return failure();
  if (!cells.empty() && importer.isUsed(2))
    return importer.bind(arranged(join(importer, cells, 0), {1, 0, 2}), 2);
  return success();
}

template <int gates>
LogicalResult importRecurrent(NodeImporter &importer) {
  return Recurrent(importer, gates).run();
}

} // namespace

void addRecurrentImports(ImportTable &table) {
  table["RNN"] = importRecurrent<1>;
  table["GRU"] = importRecurrent<3>;
  table["LSTM"] = importRecurrent<4>;
}

} // namespace par
