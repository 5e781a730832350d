// Control flow: loops are unrolled by their trip count, a condition that depends on data selects.
#include "../Graph/GraphImporter.h"

namespace par {
namespace {

using namespace mlir;
using Values = std::vector<GraphValue>;

GraphValue knownScalar(onnx::ElementType type, int64_t value) {
  StaticTensor scalar = StaticTensor::scalar(type, 0);
  scalar.setInt(0, value);
  return {std::make_shared<StaticTensor>(std::move(scalar)), {}, {}, false};
}

/// The only element of a known input; nothing if it is computed.
std::optional<int64_t> knownNumber(NodeImporter &importer, size_t i) {
  const StaticTensor *value = importer.known(i);
  return value && value->getElements() == 1 ? std::optional(value->intAt(0)) : std::nullopt;
}

/// Stacks tensors of one type along a new dim; known values give a known value.
FailureOr<GraphValue> stack(NodeImporter &importer, ArrayRef<GraphValue> parts, int64_t dim) {
  if (parts.empty())
    return importer.unsupported("no iteration, whose outputs would have a shape that nothing says,");
  if (llvm::all_of(parts, [](const GraphValue &part) { return part.known && part.known->getRank() == 0; })) {
    StaticTensor joined(parts[0].known->getType(), {int64_t(parts.size())}, {int64_t(parts.size())});
    for (auto [i, part] : llvm::enumerate(parts))
      joined.copy(i, *part.known, 0);
    return GraphValue{std::make_shared<StaticTensor>(std::move(joined)), {}, {}, false};
  }
  SmallVector<Value> slices;
  for (const GraphValue &part : parts) {
    FailureOr<Value> value = importer.materialize(part);
    if (failed(value))
      return failure();
    Shape shape(cast<RankedTensorType>(value->getType()).getShape());
    int64_t at = dim < 0 ? dim + int64_t(shape.size()) + 1 : dim;
    if (at < 0 || at > int64_t(shape.size()))
      return importer.error() << "stacks along dim " << dim << " of " << value->getType();
    shape.insert(shape.begin() + at, 1);
    slices.push_back(importer.reshape(*value, shape));
    if (slices.back().getType() != slices.front().getType())
      return importer.error() << "an iteration gives " << slices.back().getType() << ", another "
                              << slices[0].getType();
    dim = at;
  }
  auto type = cast<RankedTensorType>(slices[0].getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = slices.size();
  Value joined = slices.size() == 1
                     ? slices[0]
                     : ConcatOp::create(importer.builder, importer.loc, type.clone(shape), slices, dim).getResult();
  return GraphValue{nullptr, joined, {}, false};
}

/// Element `i` along `dim`, without that dim.
FailureOr<GraphValue> takeSlice(NodeImporter &importer, const GraphValue &from, int64_t dim, int64_t i) {
  FailureOr<Value> whole = importer.materialize(from);
  if (failed(whole))
    return failure();
  SmallVector<int64_t> shape(cast<RankedTensorType>(whole->getType()).getShape());
  shape.erase(shape.begin() + dim);
  return GraphValue{nullptr, importer.reshape(importer.slice(*whole, dim, i, 1), shape), {}, false};
}

/// `yes` if the scalar condition holds, else `no`.
FailureOr<GraphValue> choose(NodeImporter &importer, Value condition, const GraphValue &yes, const GraphValue &no) {
  FailureOr<Value> a = importer.materialize(yes), b = importer.materialize(no);
  if (failed(a) || failed(b))
    return failure();
  if (a->getType() != b->getType())
    return importer.error() << "its condition depends on data and chooses between " << a->getType() << " and "
                            << b->getType() << ", which an ahead-of-time program cannot hold";
  auto type = cast<RankedTensorType>(a->getType());
  Value mask = importer.reshape(condition, {});
  mask = buildBroadcast(importer.builder, importer.loc, mask, {}, type.getShape());
  Value chosen = SelectOp::create(importer.builder, importer.loc, type, mask, *a, *b);
  return GraphValue{nullptr, chosen, {}, false};
}

LogicalResult bindAll(NodeImporter &importer, ArrayRef<GraphValue> values) {
  for (auto [k, value] : llvm::enumerate(values))
    if (failed(importer.bindValue(value, k)))
      return failure();
  return success();
}

LogicalResult importIf(NodeImporter &importer) {
  if (!importer.has(0) || failed(importer.type(0)))
    return importer.error() << "has no condition";
  if (std::optional<int64_t> condition = knownNumber(importer, 0)) {
    FailureOr<Values> taken = importer.runBody(*condition ? "then_branch" : "else_branch", {});
    return failed(taken) ? failure() : bindAll(importer, *taken);
  }
  FailureOr<Value> condition = importer.tensor(0);
  if (failed(condition))
    return failure();
  auto type = cast<RankedTensorType>(condition->getType());
  if (!type.getElementType().isInteger(1) || type.getNumElements() != 1)
    return importer.error() << "its condition is " << type;
  FailureOr<Values> yes = importer.runBody("then_branch", {});
  FailureOr<Values> no = failed(yes) ? FailureOr<Values>(failure()) : importer.runBody("else_branch", {});
  if (failed(no))
    return failure();
  if (yes->size() != no->size())
    return importer.error() << "its branches have " << yes->size() << " and " << no->size() << " outputs";
  for (auto [k, pair] : llvm::enumerate(llvm::zip(*yes, *no))) {
    FailureOr<GraphValue> chosen = choose(importer, *condition, std::get<0>(pair), std::get<1>(pair));
    if (failed(chosen) || failed(importer.bindValue(*chosen, k)))
      return failure();
  }
  return success();
}

/// One Loop while it is unrolled.
struct LoopRun {
  NodeImporter &importer;
  Values state;
  std::vector<Values> scans;
  Value alive; ///< once the condition depends on data: whether this iteration still counts

  /// Takes the body's outputs: condition, state, scan outputs. False once the loop has ended.
  FailureOr<bool> take(ArrayRef<GraphValue> outputs) {
    for (auto [k, value] : llvm::enumerate(outputs.slice(1, state.size()))) {
      FailureOr<GraphValue> next = alive ? choose(importer, alive, value, state[k]) : FailureOr<GraphValue>(value);
      if (failed(next))
        return failure();
      state[k] = *next;
    }
    for (auto [k, value] : llvm::enumerate(outputs.drop_front(1 + state.size())))
      scans[k].push_back(value);
    const GraphValue &condition = outputs[0];
    if (condition.known)
      return condition.known->intAt(0) != 0;
    if (!scans.empty())
      return importer.error() << "its condition depends on data, and so does the size of its scan outputs, which an "
                                 "ahead-of-time program cannot hold";
    FailureOr<Value> value = importer.materialize(condition);
    if (failed(value))
      return failure();
    Value next = importer.reshape(*value, {});
    alive = alive ? AndOp::create(importer.builder, importer.loc, alive, next).getResult() : next;
    return true;
  }
};

LogicalResult importLoop(NodeImporter &importer) {
  std::optional<size_t> bodyInputs = importer.bodyInputs("body");
  size_t states = importer.numInputs() - 2;
  if (!bodyInputs || *bodyInputs != states + 2 || importer.node.outputs.size() < states)
    return importer.error() << "its body does not fit its " << importer.numInputs() << " inputs";
  int64_t count = INT64_MAX, condition = 1;
  if (importer.has(0)) {
    std::optional<int64_t> known = knownNumber(importer, 0);
    if (!known)
      return importer.error() << "its trip count depends on data, which an ahead-of-time program cannot hold";
    count = *known;
  }
  if (importer.has(1)) {
    std::optional<int64_t> known = knownNumber(importer, 1);
    if (!known)
      return importer.error() << "its first condition depends on data, which an ahead-of-time program cannot hold";
    condition = *known;
  }
  LoopRun run{importer, {}, {}, {}};
  for (size_t i = 0; i < states; ++i)
    run.state.push_back(*importer.value(i + 2));
  run.scans.resize(importer.node.outputs.size() - states);
  for (int64_t i = 0; i < count && condition; ++i) {
    if (run.alive && count == INT64_MAX)
      return importer.error() << "has no trip count and its condition depends on data, which an ahead-of-time program "
                                 "cannot hold";
    Values inputs{knownScalar(onnx::ElementType::I64, i), knownScalar(onnx::ElementType::Bool, 1)};
    llvm::append_range(inputs, run.state);
    FailureOr<Values> outputs = importer.runBody("body", inputs);
    if (failed(outputs))
      return failure();
    if (outputs->size() < 1 + states + run.scans.size())
      return importer.error() << "its body has " << outputs->size() << " outputs, expected "
                              << 1 + states + run.scans.size();
    outputs->resize(1 + states + run.scans.size());
    FailureOr<bool> goesOn = run.take(*outputs);
    if (failed(goesOn))
      return failure();
    condition = *goesOn;
  }
  for (Values &parts : run.scans) {
    FailureOr<GraphValue> joined = stack(importer, parts, 0);
    if (failed(joined))
      return failure();
    run.state.push_back(*joined);
  }
  return bindAll(importer, run.state);
}

/// The dims and directions in which a Scan reads and writes, one entry a scanned value.
struct ScanPlan {
  size_t states = 0, scanned = 0, collected = 0;
  SmallVector<int64_t> inputDims, outputDims, inputBackwards, outputBackwards;
};

SmallVector<int64_t> listOf(NodeImporter &importer, StringRef attribute, size_t count) {
  const onnx::Attribute *found = importer.node.attribute(std::string_view(attribute));
  SmallVector<int64_t> list;
  if (found)
    list.assign(found->ints.begin(), found->ints.end());
  list.resize(count, 0);
  return list;
}

/// State after the last iteration, then the stacked outputs of the iterations.
FailureOr<Values> runScan(NodeImporter &importer, const ScanPlan &plan, ArrayRef<GraphValue> inputs) {
  Values state(inputs.begin(), inputs.begin() + plan.states);
  SmallVector<Value> scanned;
  SmallVector<int64_t> dims;
  int64_t length = -1;
  for (size_t k = 0; k < plan.scanned; ++k) {
    FailureOr<Value> value = importer.materialize(inputs[plan.states + k]);
    if (failed(value))
      return failure();
    auto type = cast<RankedTensorType>(value->getType());
    FailureOr<int64_t> dim = normalizeDim(plan.inputDims[k], type.getRank());
    if (failed(dim) || (length >= 0 && type.getDimSize(*dim) != length))
      return importer.error() << "scans dim " << plan.inputDims[k] << " of " << type << ", another input has " << length
                              << " there";
    length = type.getDimSize(*dim);
    scanned.push_back(*value);
    dims.push_back(*dim);
  }
  std::vector<Values> collected(plan.collected);
  for (int64_t i = 0; i < length; ++i) {
    Values arguments = state;
    for (auto [k, value] : llvm::enumerate(scanned)) {
      FailureOr<GraphValue> part =
          takeSlice(importer, {nullptr, value, {}, false}, dims[k], plan.inputBackwards[k] ? length - 1 - i : i);
      if (failed(part))
        return failure();
      arguments.push_back(*part);
    }
    FailureOr<Values> outputs = importer.runBody("body", arguments);
    if (failed(outputs))
      return failure();
    if (outputs->size() != plan.states + plan.collected)
      return importer.error() << "its body has " << outputs->size() << " outputs, expected "
                              << plan.states + plan.collected;
    state.assign(outputs->begin(), outputs->begin() + plan.states);
    for (size_t k = 0; k < plan.collected; ++k)
      collected[k].push_back((*outputs)[plan.states + k]);
  }
  for (size_t k = 0; k < plan.collected; ++k) {
    if (plan.outputBackwards[k])
      std::reverse(collected[k].begin(), collected[k].end());
    FailureOr<GraphValue> joined = stack(importer, collected[k], plan.outputDims[k]);
    if (failed(joined))
      return failure();
    state.push_back(*joined);
  }
  return state;
}

/// Opset 8 scans every sample of a batch separately.
LogicalResult importBatchedScan(NodeImporter &importer, ScanPlan plan, ArrayRef<GraphValue> inputs) {
  std::optional<int64_t> batch;
  for (auto [k, input] : llvm::enumerate(inputs)) {
    FailureOr<Value> value = importer.materialize(input);
    if (failed(value))
      return failure();
    auto type = cast<RankedTensorType>(value->getType());
    if (type.getRank() == 0 || (batch && type.getDimSize(0) != *batch))
      return importer.error() << "input " << k + 1 << " is " << type << ", and each has the batch in dim 0"
                              << (batch ? ", here of " + Twine(*batch) : Twine());
    batch = type.getDimSize(0);
  }
  std::vector<Values> results(plan.states + plan.collected);
  for (int64_t sample = 0; sample < *batch; ++sample) {
    Values own;
    for (const GraphValue &input : inputs) {
      FailureOr<GraphValue> part = takeSlice(importer, input, 0, sample);
      if (failed(part))
        return failure();
      own.push_back(*part);
    }
    FailureOr<Values> outputs = runScan(importer, plan, own);
    if (failed(outputs))
      return failure();
    for (auto [k, output] : llvm::enumerate(*outputs))
      results[k].push_back(output);
  }
  for (auto [k, parts] : llvm::enumerate(results)) {
    FailureOr<GraphValue> joined = stack(importer, parts, 0);
    if (failed(joined) || failed(importer.bindValue(*joined, k)))
      return failure();
  }
  return success();
}

LogicalResult importScan(NodeImporter &importer) {
  bool batched = importer.opset() < 9;
  size_t first = batched ? 1 : 0, given = importer.numInputs() - first;
  ScanPlan plan;
  plan.scanned = importer.node.intAttribute("num_scan_inputs", 0);
  if (plan.scanned < 1 || plan.scanned > given || importer.bodyInputs("body") != given)
    return importer.error() << "has no body of " << given << " inputs, " << plan.scanned << " of them scanned";
  plan.states = given - plan.scanned;
  if (importer.node.outputs.size() < plan.states)
    return importer.error() << "has " << importer.node.outputs.size() << " outputs for " << plan.states << " states";
  if (batched && importer.has(0))
    return importer.unsupported("sequence lengths");
  plan.collected = importer.node.outputs.size() - plan.states;
  plan.inputDims = listOf(importer, "scan_input_axes", plan.scanned);
  plan.outputDims = listOf(importer, "scan_output_axes", plan.collected);
  plan.inputBackwards = listOf(importer, batched ? "directions" : "scan_input_directions", plan.scanned);
  plan.outputBackwards = listOf(importer, "scan_output_directions", plan.collected);
  Values inputs;
  for (size_t i = first; i < importer.numInputs(); ++i)
    inputs.push_back(importer.value(i) ? *importer.value(i) : GraphValue());
  if (batched)
    return importBatchedScan(importer, plan, inputs);
  FailureOr<Values> results = runScan(importer, plan, inputs);
  return failed(results) ? failure() : bindAll(importer, *results);
}

/// The body once for every element of the first sequence; other sequences go along, tensors stay.
LogicalResult importSequenceMap(NodeImporter &importer) {
  const GraphValue *sequence = importer.value(0);
  if (!sequence || !sequence->isSequence)
    return importer.error() << "input 0 is no sequence";
  size_t length = sequence->sequence.size();
  Values inputs;
  for (size_t i = 0; i < importer.numInputs(); ++i) {
    inputs.push_back(importer.value(i) ? *importer.value(i) : GraphValue());
    if (inputs.back().isSequence && inputs.back().sequence.size() != length)
      return importer.error() << "input " << i << " has " << inputs.back().sequence.size() << " elements, input 0 has "
                              << length;
  }
  std::vector<Values> results(importer.node.outputs.size());
  for (size_t at = 0; at < length; ++at) {
    Values arguments;
    for (const GraphValue &input : inputs)
      arguments.push_back(input.isSequence ? input.sequence[at] : input);
    FailureOr<Values> outputs = importer.runBody("body", arguments);
    if (failed(outputs))
      return failure();
    for (size_t k = 0; k < results.size() && k < outputs->size(); ++k)
      results[k].push_back((*outputs)[k]);
  }
  for (auto [k, elements] : llvm::enumerate(results))
    if (failed(importer.bindValue({nullptr, {}, elements, true}, k)))
      return failure();
  return success();
}

} // namespace

void addControlImports(ImportTable &table) {
  table["If"] = importIf;
  table["Loop"] = importLoop;
  table["Scan"] = importScan;
  table["SequenceMap"] = importSequenceMap;
}

} // namespace par
