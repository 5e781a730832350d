// The view of one node that import functions have: operands by number as values or known tensors, attributes, builders
// of common ops, random state, and errors with the node's place.
#include "GraphImporter.h"
#include "par/Dialect/Modes.h"

#include "llvm/ADT/StringExtras.h"

namespace par {

using namespace mlir;

NodeImporter::NodeImporter(GraphImporter &graph, const onnx::Node &node, Location loc)
    : node(node), loc(loc), builder(graph.builder), graph(graph) {}

int64_t NodeImporter::opset() const { return graph.opset; }

const GraphValue *NodeImporter::value(size_t i) const {
  if (i >= node.inputs.size() || node.inputs[i].empty())
    return nullptr;
  auto found = graph.values.find(node.inputs[i]);
  return found == graph.values.end() ? nullptr : &found->second;
}

const StaticTensor *NodeImporter::known(size_t i) const {
  const GraphValue *input = value(i);
  if (input && input->computed)
    graph.asked.insert(input->computed);
  return input ? input->known.get() : nullptr;
}

FailureOr<RankedTensorType> NodeImporter::type(size_t i) {
  const GraphValue *input = value(i);
  if (!input || input->isSequence || input->isAbsent())
    return error() << "input " << i << (input && input->isSequence ? " is a sequence" : " is missing");
  if (input->known)
    return graph.typeOf(input->known->getType(), input->known->getShape());
  return cast<RankedTensorType>(input->computed.getType());
}

FailureOr<Value> NodeImporter::tensor(size_t i) {
  FailureOr<RankedTensorType> wanted = type(i);
  if (failed(wanted))
    return failure();
  const GraphValue *input = value(i);
  return input->known ? graph.materialize(GraphValue(*input), wanted->getShape(), node.inputs[i], loc)
                      : input->computed;
}

FailureOr<Value> NodeImporter::stretched(size_t i, ArrayRef<int64_t> shape) {
  FailureOr<RankedTensorType> own = type(i);
  if (failed(own))
    return failure();
  FailureOr<Shape> joined = broadcastShapes(own->getShape(), shape);
  if (failed(joined) || ArrayRef<int64_t>(*joined) != shape)
    return error() << "input " << i << " is " << *own << ", which does not stretch to " << own->clone(shape);
  const GraphValue *input = value(i);
  if (input->known)
    return graph.materialize(GraphValue(*input), shape, node.inputs[i], loc);
  return stretch(input->computed, shape);
}

FailureOr<Value> NodeImporter::knownAs(size_t i, const StaticTensor &replacement) {
  if (failed(type(i)))
    return failure();
  return graph.materialize(replacement, node.outputs.empty() ? node.inputs[i] : node.outputs[0] + ".indices", loc);
}

FailureOr<Value> NodeImporter::constant(Type element, ArrayRef<int64_t> shape, std::vector<double> values,
                                        StringRef suffix) {
  using onnx::ElementType;
  std::string name = (node.outputs.empty() ? node.name : node.outputs[0]) + "." + suffix.str();
  for (ElementType type : {ElementType::F32, ElementType::F64, ElementType::F16, ElementType::BF16})
    if (graph.typeOf(type, {}).getElementType() == element)
      return graph.materialize(StaticTensor::ofFloats(type, shape, std::move(values)), name, loc);
  for (ElementType type : {ElementType::I64, ElementType::I32})
    if (graph.typeOf(type, {}).getElementType() == element)
      return graph.materialize(StaticTensor::ofInts(type, shape, {values.begin(), values.end()}), name, loc);
  return error() << "op " << node.opType << " of " << element << " is not supported yet";
}

VariableOp NodeImporter::movedVariable(size_t i) {
  const GraphValue *input = value(i);
  if (!graph.options.train || !input || !input->computed)
    return {};
  if (VariableOp variable = graph.handedOn.lookup(input->computed))
    return variable;
  auto read = input->computed.getDefiningOp<ReadOp>();
  return read ? graph.module->lookupSymbol<VariableOp>(read.getVariable()) : VariableOp();
}

void NodeImporter::update(size_t i, Value next) {
  VariableOp variable = movedVariable(i);
  if (!variable || next.getType() != variable.getTensorType())
    return;
  // Files do not always distinguish trained from moved initializers.
  variable.setKind(VariableKind::buffer);
  WriteOp &write = graph.moves[variable];
  if (write)
    write.erase();
  write = WriteOp::create(builder, loc, next, variable.getSymName());
}

Value NodeImporter::updated(size_t i) {
  VariableOp variable = movedVariable(i);
  WriteOp write = variable ? graph.moves.lookup(variable) : WriteOp();
  return write ? write->getOperand(0) : Value();
}

void NodeImporter::handOn(size_t i, Value result) {
  if (VariableOp variable = movedVariable(i))
    graph.handedOn[result] = variable;
}

int64_t NodeImporter::batchNormGroups() const { return graph.options.batchNormGroups; }

bool NodeImporter::trains() const { return graph.options.train; }

bool NodeImporter::serves() const { return graph.options.serve; }

Value NodeImporter::stretch(Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  // A reshape that only inserts dims of size 1 is part of the broadcast.
  auto reshape = value.getDefiningOp<ReshapeOp>();
  Shape squeezed(llvm::make_filter_range(type.getShape(), [](int64_t dim) { return dim != 1; }));
  bool inserts = reshape && cast<RankedTensorType>(reshape.getOperand().getType()).getShape() == ArrayRef(squeezed);
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (!inserts || type.getDimSize(i) != 1)
      dims.push_back(int64_t(shape.size()) - type.getRank() + i);
  return buildBroadcast(builder, loc, inserts ? reshape.getOperand() : value, dims, shape);
}

FailureOr<std::optional<SmallVector<int64_t>>> NodeImporter::ints(StringRef attribute, size_t position) {
  if (has(position)) {
    const StaticTensor *values = known(position);
    if (!values || values->getElements() > 4096)
      return error() << "its input " << position << " (" << attribute
                     << ") depends on data, which an ahead-of-time program cannot hold";
    return std::optional(values->toInts());
  }
  const onnx::Attribute *found = node.attribute(std::string_view(attribute));
  if (!found || found->kind != onnx::Attribute::Ints)
    return std::optional<SmallVector<int64_t>>();
  return std::optional(SmallVector<int64_t>(found->ints.begin(), found->ints.end()));
}

FailureOr<int64_t> NodeImporter::dim(StringRef attribute, int64_t otherwise, int64_t rank) {
  int64_t given = node.intAttribute(std::string_view(attribute), otherwise);
  FailureOr<int64_t> dim = normalizeDim(given, rank);
  if (failed(dim))
    return error() << attribute << " is " << given << ", the tensor has " << rank << " dims";
  return dim;
}

/// True if `to` is `from` with some leading dims merged into one.
static bool isLeadingMerge(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  if (from.size() <= to.size() || to.empty())
    return false;
  size_t merged = from.size() - to.size() + 1;
  return from.drop_front(merged) == to.drop_front(1) && countElements(from.take_front(merged)) == to.front();
}

/// `a x b + rest` if `from` is `a x b + others` and `to` is `a*b + rest`; empty otherwise, or if it is so already.
static Shape leadingApart(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  if (to.size() < 2 || isLeadingMerge(from, to))
    return {};
  int64_t product = 1;
  for (size_t dims = 1; dims < from.size() && product <= to[0]; ++dims) {
    product = saturatingProduct(product, from[dims - 1]);
    if (product != to[0] || dims < 2 || from[dims] == 1)
      continue;
    Shape apart(from.take_front(dims));
    llvm::append_range(apart, to.drop_front());
    return apart;
  }
  return {};
}

Value NodeImporter::reshape(Value value, ArrayRef<int64_t> shape) {
  // A merge of leading dims is kept apart, for findMergedDims to see.
  auto earlier = value.getDefiningOp<ReshapeOp>();
  if (earlier && !isLeadingMerge(cast<RankedTensorType>(value.getType()).getShape(), shape))
    value = earlier.getOperand();
  auto from = cast<RankedTensorType>(value.getType()).getShape();
  if (from == shape)
    return value;
  // Other dims that change with the merge (heads with their width) go first, and by themselves.
  if (Shape apart = leadingApart(from, shape); !apart.empty())
    value = buildReshape(builder, loc, value, apart);
  return buildReshape(builder, loc, value, shape);
}

Value NodeImporter::slice(Value value, int64_t dim, int64_t start, int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  if (start == 0 && size == type.getDimSize(dim))
    return value;
  SmallVector<int64_t> starts(type.getRank(), 0), limits(type.getShape()), strides(type.getRank(), 1), shape(limits);
  starts[dim] = start;
  limits[dim] = start + size;
  shape[dim] = size;
  return SliceOp::create(builder, loc, type.clone(shape), value, starts, limits, strides);
}

Value NodeImporter::reverse(Value value, int64_t dim) {
  return ReverseOp::create(builder, loc, value, ArrayRef<int64_t>(dim));
}

Value NodeImporter::reduceSum(Value value, ArrayRef<int64_t> dims) {
  auto type = cast<RankedTensorType>(value.getType());
  if (dims.empty())
    return value;
  SmallVector<int64_t> kept;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (!llvm::is_contained(dims, i))
      kept.push_back(type.getDimSize(i));
  return ReduceOp::create(builder, loc, type.clone(kept), ReduceKind::sum, value, dims);
}

Value NodeImporter::transpose(Value value, ArrayRef<int64_t> newOrder) {
  SmallVector<int64_t> order(newOrder);
  if (auto earlier = value.getDefiningOp<TransposeOp>()) {
    for (int64_t &from : order)
      from = earlier.getPermutation()[from];
    value = earlier.getOperand();
  }
  auto type = cast<RankedTensorType>(value.getType());
  bool identity = true;
  SmallVector<int64_t> shape;
  for (auto [i, from] : llvm::enumerate(order)) {
    identity &= int64_t(i) == from;
    shape.push_back(type.getDimSize(from));
  }
  return identity ? value : TransposeOp::create(builder, loc, type.clone(shape), value, order).getResult();
}

FailureOr<Type> NodeImporter::elementType(StringRef attribute) {
  auto named = onnx::ElementType(node.intAttribute(std::string_view(attribute), 0));
  if (RankedTensorType type = onnx::isUnsigned(named) ? RankedTensorType() : graph.typeOf(named, {}))
    return type.getElementType();
  return error() << "its " << attribute << " is " << onnx::spell(named) << ", which is not supported";
}

/// A scalar that many nodes read, at the start of the step; if the name is taken, the error begins with `need`.
FailureOr<Value> NodeImporter::readShared(StringRef name, VariableKind kind, DenseElementsAttr value, StringRef need) {
  if (Operation *taken = graph.module->lookupSymbol(name)) {
    InFlightDiagnostic found = error() << need << " need a variable \"" << name << "\" of their own";
    found.attachNote(taken->getLoc()) << "the name is taken here";
    return failure();
  }
  OpBuilder::InsertionGuard guard(builder);
  auto scalar = cast<RankedTensorType>(value.getType());
  builder.setInsertionPoint(graph.step);
  VariableOp::create(builder, graph.fileLoc, name, kind, FlatSymbolRefAttr(), scalar, TypeAttr(), ShardingAttr(),
                     ArrayAttr(), value, StringAttr(), DictionaryAttr());
  builder.setInsertionPointToStart(&graph.step.getBlock());
  return Value(ReadOp::create(builder, graph.fileLoc, scalar, name));
}

FailureOr<Value> NodeImporter::readRandom(StringRef name, VariableKind kind, float value) {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  return readShared(name, kind, DenseElementsAttr::get(scalar, value), "random numbers");
}

FailureOr<Value> NodeImporter::whereTrained(Value trained, Value otherwise) {
  if (!graph.training) {
    auto scalar = RankedTensorType::get({}, builder.getI1Type());
    FailureOr<Value> read = readShared(trainingVariable, VariableKind::counter, DenseElementsAttr::get(scalar, true),
                                       "nodes that act in training only");
    if (failed(read))
      return failure();
    graph.training = *read;
  }
  auto type = cast<RankedTensorType>(trained.getType());
  return Value(SelectOp::create(builder, loc, buildBroadcast(builder, loc, graph.training, {}, type.getShape()),
                                trained, otherwise));
}

FailureOr<RandomState> NodeImporter::randomState() {
  if (!graph.random.seed) {
    FailureOr<Value> seed = readRandom("seed", VariableKind::hyperparameter, float(graph.options.seed));
    FailureOr<Value> step = seed;
    if (!failed(seed) && graph.options.train)
      step = readRandom(drawsVariable, VariableKind::counter, 0);
    if (failed(step))
      return failure();
    if (!graph.options.train) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&graph.step.getBlock());
      step = splat(cast<RankedTensorType>(seed->getType()), graph.options.serve ? 0 : 1);
    }
    graph.random = {*seed, *step, ""};
  }
  RandomState state = graph.random;
  state.stream = node.outputs.empty() ? node.name : node.outputs[0];
  if (unsigned times = graph.streams[state.stream]++)
    state.stream += "#" + std::to_string(times);
  return state;
}

LogicalResult NodeImporter::bind(Value value, size_t k) {
  if (k < node.outputs.size() && !node.outputs[k].empty()) // the last results may be left out
    graph.values[node.outputs[k]] = GraphValue{nullptr, value, {}, false};
  return success();
}

LogicalResult NodeImporter::bindSequence(std::vector<GraphValue> values) {
  graph.values[node.outputs[0]] = GraphValue{nullptr, {}, std::move(values), true};
  return success();
}

LogicalResult NodeImporter::bindValue(GraphValue value, size_t k) {
  if (k < node.outputs.size() && !node.outputs[k].empty())
    graph.values[node.outputs[k]] = std::move(value);
  return success();
}

bool NodeImporter::isUnsigned(size_t i) const {
  const GraphValue *input = value(i);
  return input && (input->known ? onnx::isUnsigned(input->known->getType()) : input->isUnsigned);
}

LogicalResult NodeImporter::bindUnsigned(Value value, size_t k) {
  return bindValue(GraphValue{nullptr, value, {}, false, true}, k);
}

FailureOr<Value> NodeImporter::materialize(const GraphValue &value) {
  if (value.isUnsigned || (value.known && onnx::isUnsigned(value.known->getType())))
    return error() << "op " << node.opType << " around integers without a sign is not supported yet";
  if (value.isSequence || value.isAbsent())
    return error() << "holds a " << (value.isSequence ? "sequence" : "missing optional") << " where a tensor is needed";
  if (value.computed)
    return value.computed;
  return graph.materialize(value, value.known->getShape(), node.outputs.empty() ? node.name : node.outputs[0], loc);
}

bool NodeImporter::isUsed(size_t k) const { return k < node.outputs.size() && graph.used.contains(node.outputs[k]); }

/// Whether a plan takes a name as a key without quotes.
static bool isPlainName(StringRef name) {
  return llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

InFlightDiagnostic NodeImporter::error() {
  InFlightDiagnostic diagnostic = graph.error();
  std::optional<Provenance> provenance = getProvenance(loc);
  // A node without a name has its path's.
  diagnostic << "node \"" << (provenance && node.name.empty() ? provenance->path : StringRef(node.name)) << "\": ";
  std::string place = provenance ? describe(*provenance) : "";
  if (!place.empty())
    diagnostic.attachNote(loc) << "from " << place;
  SmallVector<Value> asked;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (const GraphValue *input = value(i); input && graph.asked.contains(input->computed))
      asked.push_back(input->computed);
  for (const std::string &input : graph.inputsBehind(asked))
    if (llvm::any_of(graph.model.inputs, [&](const onnx::ValueInfo &info) { return info.name == input; }))
      diagnostic.attachNote(graph.fileLoc)
          << "it depends on an input; if that is known when compiling, say inputs."
          << (isPlainName(input) ? input : "\"" + input + "\"") << ".value: a list of numbers, or a file of arrays";
  return diagnostic;
}

LogicalResult NodeImporter::unsupported(const Twine &what) {
  return error() << "op " << node.opType << " with " << what.str() << " is not supported yet";
}

MergedDims findMergedDims(Value value) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return {};
  auto from = cast<RankedTensorType>(reshape.getOperand().getType()).getShape();
  auto to = cast<RankedTensorType>(value.getType()).getShape();
  if (!isLeadingMerge(from, to))
    return {};
  return {reshape.getOperand(), Shape(from.take_front(from.size() - to.size() + 1))};
}

} // namespace par
