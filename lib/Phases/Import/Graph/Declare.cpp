// Inputs, their symbolic dims, and initializers of the graph.
#include "GraphImporter.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

namespace par {

using namespace mlir;

namespace {

/// Sizes like `seq`, `2*s0`, `past + seq`: sums and products of integers and symbols.
class DimExpression {
public:
  DimExpression(StringRef text, const std::map<std::string, int64_t> &dims, SetVector<StringRef> &unbound)
      : rest(text), dims(dims), unbound(unbound) {}

  /// Nothing if the text is no such expression or a symbol has no size.
  std::optional<int64_t> evaluate() {
    std::optional<int64_t> value = sum();
    return value && rest.ltrim().empty() ? value : std::nullopt;
  }

private:
  std::optional<int64_t> sum() {
    std::optional<int64_t> left = product();
    while (left) {
      rest = rest.ltrim();
      bool plus = rest.starts_with("+");
      if (!plus && !rest.starts_with("-"))
        return left;
      rest = rest.drop_front();
      std::optional<int64_t> right = product();
      if (!right)
        return right;
      left = plus ? *left + *right : *left - *right;
    }
    return left;
  }

  std::optional<int64_t> product() {
    std::optional<int64_t> left = atom();
    while (left && rest.ltrim().starts_with("*")) {
      rest = rest.ltrim().drop_front();
      std::optional<int64_t> right = atom();
      int64_t value = 0;
      if (!right || __builtin_mul_overflow(*left, *right, &value))
        return std::nullopt;
      left = value;
    }
    return left;
  }

  std::optional<int64_t> atom() {
    rest = rest.ltrim();
    if (rest.consume_front("(")) {
      std::optional<int64_t> inside = sum();
      rest = rest.ltrim();
      return rest.consume_front(")") ? inside : std::nullopt;
    }
    StringRef word = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    rest = rest.drop_front(word.size());
    int64_t number = 0;
    if (!word.getAsInteger(10, number) && number < (int64_t(1) << 31))
      return number;
    auto found = dims.find(word.str());
    if (found != dims.end())
      return found->second;
    if (!word.empty())
      unbound.insert(word);
    return word.empty() ? std::nullopt : std::optional<int64_t>(1); // go on, so that all unbound ones are found
  }

  StringRef rest;
  const std::map<std::string, int64_t> &dims;
  SetVector<StringRef> &unbound;
};

/// `1 to 1024` if the exporter recorded a finite range for the symbol: `{seq: VR[1, 1024], ...}`.
std::string recordedRange(const onnx::Model &model, StringRef symbol) {
  StringRef ranges(onnx::lookup(model.graphMetadata, "pkg.torch.export.ExportedProgram.range_constraints"));
  size_t at = ranges.find((symbol + ": VR[").str());
  if (at == StringRef::npos)
    return "";
  StringRef range = ranges.drop_front(at + symbol.size() + 5).take_until([](char c) { return c == ']'; });
  auto [low, high] = range.split(", ");
  int64_t number = 0;
  return high.getAsInteger(10, number) ? "" : (low + " to " + high).str();
}

} // namespace

std::optional<int64_t> GraphImporter::sizeOf(const onnx::Dim &dim) const {
  SetVector<StringRef> unbound;
  std::optional<int64_t> size = dim.size >= 0 ? dim.size : DimExpression(dim.symbol, dims, unbound).evaluate();
  return unbound.empty() ? size : std::nullopt;
}

std::string batchSymbol(const onnx::Model &model) {
  return model.inputs.empty() || model.inputs.front().shape.empty() ? "" : model.inputs.front().shape.front().symbol;
}

/// The size and the number of the batch dim, from the first input that has one, if no symbol gives it. An empty tensor
/// has no samples.
static std::optional<std::pair<int64_t, int64_t>> fixedBatch(const onnx::Model &model, const ImportOptions &options) {
  for (const onnx::ValueInfo &input : model.inputs) {
    auto given = options.batchDims.find(input.name);
    int64_t dim = given == options.batchDims.end() ? 0 : given->second;
    if (dim < 0)
      continue;
    if (dim >= int64_t(input.shape.size()) || input.shape[dim].size <= 0)
      return std::nullopt;
    return std::pair(input.shape[dim].size, dim);
  }
  return std::nullopt;
}

std::optional<int64_t> exportedBatch(const onnx::Model &model) {
  std::optional<std::pair<int64_t, int64_t>> fixed = fixedBatch(model, {});
  return fixed ? std::optional(fixed->first) : std::nullopt;
}

std::optional<int64_t> GraphImporter::batchSize() const {
  if (options.batch)
    return options.batch;
  auto bound = dims.find(options.batchSymbol.value_or(batchSymbol(model)));
  if (bound != dims.end())
    return bound->second;
  auto fixed = fixedBatch(model, options);
  return fixed ? std::optional(fixed->first) : std::nullopt;
}

LogicalResult GraphImporter::bindDims() {
  dims = options.dims;
  std::string batch = options.batchSymbol.value_or(batchSymbol(model));
  if (options.batch && !batch.empty())
    dims[batch] = *options.batch;
  auto fixed = batch.empty() ? fixedBatch(model, options) : std::nullopt;
  if (options.batch && fixed && fixed->first != *options.batch)
    return error() << "the model was exported with a batch of " << fixed->first << ", the plan's is " << *options.batch
                   << "; say batch.size: " << fixed->first << ", or export it with a symbolic batch dim";
  SetVector<StringRef> unbound;
  StringRef firstInput;
  for (const onnx::ValueInfo &input : model.inputs)
    for (const onnx::Dim &dim : input.shape) {
      if (dim.size >= 0)
        continue;
      if (!DimExpression(dim.symbol, dims, unbound).evaluate())
        return error() << "dim \"" << dim.symbol << "\" of input \"" << input.name
                       << "\" is no sum of products of names and numbers";
      if (!unbound.empty() && firstInput.empty())
        firstInput = input.name;
    }
  for (const auto &[symbol, size] : dims)
    if (size <= 0)
      return error() << "dim \"" << symbol << "\" is " << size << ", expected a positive size";
  if (unbound.empty())
    return success();
  std::string range = recordedRange(model, unbound.front());
  InFlightDiagnostic diagnostic = error() << "dim \"" << unbound.front() << "\" of input \"" << firstInput
                                          << "\" has no size; say dims." << unbound.front();
  if (!range.empty())
    diagnostic << " (the exporter recorded " << range << ")";
  for (auto [i, symbol] : llvm::enumerate(unbound.getArrayRef().drop_front()))
    diagnostic << (i ? ", \"" : "; also without size: \"") << symbol << "\"";
  return diagnostic;
}

/// The batch dim of an input: the dim with the batch's symbol, or the same dim as the first input's, or dim 0 if it has
/// the first input's batch size; -1 if there is none.
int64_t GraphImporter::batchDimOf(const onnx::ValueInfo &input, ArrayRef<int64_t> shape) const {
  auto given = options.batchDims.find(input.name);
  if (given != options.batchDims.end())
    return given->second;
  std::string symbol = options.batchSymbol.value_or(batchSymbol(model));
  if (symbol.empty()) {
    if (auto fixed = fixedBatch(model, options))
      for (int64_t dim : {fixed->second, int64_t(0)})
        if (dim < int64_t(shape.size()) && shape[dim] == fixed->first)
          return dim;
    return -1;
  }
  for (auto [i, dim] : llvm::enumerate(input.shape))
    if (dim.symbol == symbol)
      return i;
  return -1;
}

/// An argument of the step has the batch in dim 0, like its data; the graph reads it transposed back.
GraphValue GraphImporter::addInput(StringRef name, onnx::ElementType type, RankedTensorType tensor, int64_t batchDim) {
  inputNames.push_back(name.str());
  batchDims.push_back(std::min<int64_t>(batchDim, 0));
  batchOfOne |= batchDim >= 0 && batchDim < tensor.getRank() && tensor.getDimSize(batchDim) == 1;
  bool isUnsigned = onnx::isUnsigned(type);
  if (isUnsigned)
    unsignedValues.insert(builder.getStringAttr(name));
  if (batchDim <= 0 || batchDim >= tensor.getRank())
    return {nullptr, step.getBlock().addArgument(tensor, fileLoc), {}, false, isUnsigned};
  SmallVector<int64_t> shape(tensor.getShape()), order = llvm::to_vector(llvm::seq<int64_t>(1, tensor.getRank()));
  shape.erase(shape.begin() + batchDim);
  shape.insert(shape.begin(), tensor.getDimSize(batchDim));
  order.insert(order.begin() + batchDim, 0);
  Value first = step.getBlock().addArgument(tensor.clone(shape), fileLoc);
  Location loc = makeLocation(context, {name.str(), "", name.str(), "", 0});
  return {nullptr, TransposeOp::create(builder, loc, tensor, first, order), {}, false, isUnsigned};
}

LogicalResult GraphImporter::declareHeld(const onnx::ValueInfo &input) {
  GraphValue value;
  for (const HeldTensor &held : options.held.at(input.name)) {
    RankedTensorType type = typeOf(held.type, held.shape);
    if (!type)
      return error() << "input \"" << input.name << "\" holds " << onnx::spell(held.type) << ", which is not supported";
    std::string name = input.name + (input.isSequence ? "." + std::to_string(value.sequence.size()) : "");
    value.sequence.push_back(addInput(name, held.type, type, -1));
  }
  if (!input.isSequence && value.sequence.size() == 1)
    value = GraphValue(value.sequence[0]);
  else
    value.isSequence = input.isSequence && (!input.isOptional || !value.sequence.empty());
  values[input.name] = std::move(value);
  return success();
}

LogicalResult GraphImporter::declareInputs() {
  for (const onnx::ValueInfo &input : model.inputs) {
    if (options.held.count(input.name)) {
      if (failed(declareHeld(input)))
        return failure();
      continue;
    }
    bool holds = !input.isTensor && (input.isSequence || input.isOptional);
    if (auto rule = options.values.find(input.name);
        holds && rule != options.values.end() && StringRef(rule->second).ends_with(".safetensors")) {
      if (failed(declareFiled(input, rule->second)))
        return failure();
      continue;
    }
    if (!input.isTensor || !input.hasShape) {
      InFlightDiagnostic diagnostic = error() << "input \"" << input.name << "\" is ";
      if (holds)
        diagnostic.attachNote(fileLoc) << "if its values are known when compiling, say inputs." << input.name
                                       << ".value: a file of arrays (" << input.name
                                       << (input.isSequence ? ".0, .1, ..." : "") << ")";
      return diagnostic << (input.isTensor ? "of unknown rank" : "not a tensor") << ", which is not supported";
    }
    Shape shape;
    for (auto [i, dim] : llvm::enumerate(input.shape)) {
      SetVector<StringRef> unbound;
      int64_t size = dim.size >= 0 ? dim.size : DimExpression(dim.symbol, dims, unbound).evaluate().value_or(-1);
      if (size < 0 || size >= (int64_t(1) << 31))
        return error() << "dim " << i << " of input \"" << input.name << "\" is " << size << ", expected 0 to 2^31 - 1";
      shape.push_back(size);
    }
    if (!isWithinMemory(shape))
      return error() << "input \"" << input.name << "\" is larger than any memory";
    RankedTensorType type = typeOf(input.type, shape);
    if (!type)
      return error() << "input \"" << input.name << "\" has element type " << onnx::spell(input.type)
                     << ", which is not supported";
    if (auto known = options.known.find(input.name); known != options.known.end()) {
      if (known->second.getShape() != ArrayRef(shape) || known->second.getType() != input.type)
        return error() << "the value given for input \"" << input.name << "\" is not " << type;
      values[input.name] = GraphValue{std::make_shared<StaticTensor>(known->second), {}, {}, false};
      continue;
    }
    auto rule = options.values.find(input.name);
    if (rule != options.values.end()) {
      FailureOr<GraphValue> value = constantInput(input, type, rule->second);
      if (failed(value))
        return failure();
      values[input.name] = *value;
      continue;
    }
    int64_t batchDim = batchDimOf(input, shape);
    if (batchDim > 0 && batchDim >= type.getRank())
      return error() << "the batch is said to be dim " << batchDim << " of input \"" << input.name << "\", which is "
                     << type << "; say its own: inputs: {" << input.name << ": {batch: DIM, or none}}";
    values[input.name] = addInput(input.name, input.type, type, batchDim);
  }
  return success();
}

/// Initializers that scale a norm. A norm may be written as Mul (RMSNorm of transformers): a vector that only Mul reads
/// scales.
static llvm::StringSet<> findScales(const onnx::Model &model) {
  llvm::StringMap<StringRef> origins; // of initializers, and of Casts and Identities of them
  llvm::StringSet<> scales, multiplied, otherwise;
  for (const onnx::Tensor &tensor : model.initializers)
    origins[tensor.name] = tensor.name;
  forEachNode(model, [&](const onnx::Node &node) {
    StringRef type = node.opType;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      auto origin = origins.find(node.inputs[i]);
      if (origin == origins.end())
        continue;
      if (i == 1 && type.contains("Normalization"))
        scales.insert(origin->second);
      if (type == "Cast" || type == "Identity")
        origins.try_emplace(node.outputs.front(), origin->second);
      else
        (type == "Mul" ? multiplied : otherwise).insert(origin->second);
    }
  });
  for (const onnx::Tensor &tensor : model.initializers)
    if (tensor.dims.size() <= 1 && multiplied.contains(tensor.name) && !otherwise.contains(tensor.name))
      scales.insert(tensor.name);
  return scales;
}

/// `train.init`'s default: 1 for scales of norms, 0 for other vectors, else normal(0.02).
static StringRef defaultInit(const onnx::Tensor &tensor, const llvm::StringSet<> &scales) {
  return scales.contains(tensor.name) ? "ones" : tensor.dims.size() <= 1 ? "zeros" : "normal(0.02)";
}

GraphValue GraphImporter::declareVariable(const onnx::Tensor &tensor, StringRef rule) {
  VariableKind kind = rule.empty() ? VariableKind::buffer : VariableKind::parameter;
  RankedTensorType type = typeOf(tensor.type, tensor.dims);
  DictionaryAttr source;
  // Data that are not there now may be there when the program runs: par-run looks again.
  bool inModel = tensor.storage == onnx::Storage::InModel;
  if (inModel || (tensor.storage != onnx::Storage::Inline && !tensor.file.empty())) {
    StringRef file = inModel ? llvm::sys::path::filename(model.path) : StringRef(tensor.file);
    source = builder.getDictionaryAttr({builder.getNamedAttr("file", builder.getStringAttr(file)),
                                        builder.getNamedAttr("gzip", builder.getBoolAttr(inModel && model.compressed)),
                                        builder.getNamedAttr("length", builder.getI64IntegerAttr(tensor.length)),
                                        builder.getNamedAttr("offset", builder.getI64IntegerAttr(tensor.offset))});
  }
  ElementsAttr value;
  if (tensor.storage == onnx::Storage::Inline)
    value = DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(tensor.bytes.data(), tensor.bytes.size()));
  StringAttr init = rule.empty() ? StringAttr() : builder.getStringAttr(rule);
  Location loc = NameLoc::get(builder.getStringAttr(tensor.name), fileLoc);
  OpBuilder above(step);
  VariableOp::create(above, loc, StringRef(tensor.name), kind, FlatSymbolRefAttr(), type, TypeAttr(), ShardingAttr(),
                     ArrayAttr(), value, init, source);
  return {nullptr, ReadOp::create(builder, loc, type, tensor.name), {}, false, onnx::isUnsigned(tensor.type)};
}

LogicalResult GraphImporter::declareInitializers() {
  llvm::StringSet<> names, scales = findScales(model);
  for (const onnx::Tensor &tensor : model.initializers) {
    if (tensor.name.empty() || values.contains(tensor.name) || !names.insert(tensor.name).second)
      return error() << "initializer \"" << tensor.name << "\" is defined twice or has no name";
    if (!used.contains(tensor.name))
      continue;
    bool trained = parameters.trainable.contains(tensor.name);
    bool moved = (options.train && parameters.moved.contains(tensor.name)) ||
                 (options.serve && parameters.statistics.contains(tensor.name));
    std::string reason;
    std::optional<StaticTensor> known;
    if (!trained && !moved && tensor.elements() <= foldLimit && tensor.storage != onnx::Storage::Absent)
      if (std::optional<std::string> bytes = readTensor(model, tensor, reason))
        known = StaticTensor::ofBytes(tensor.type, tensor.dims, *bytes);
    // A large table of floats is better read from the file than carried along, unless it repeats itself (a mask that
    // the exporter expanded over the batch).
    if (known && onnx::isFloat(tensor.type) && known->getStoredCount() > 1024 &&
        known->getStoredCount() == tensor.elements())
      known.reset();
    if (known) {
      values[tensor.name] = GraphValue{std::make_shared<StaticTensor>(std::move(*known)), {}, {}, false};
    } else if (!typeOf(tensor.type, tensor.dims)) {
      return error() << "initializer \"" << tensor.name << "\" has element type " << onnx::spell(tensor.type)
                     << ", which is not supported";
    } else {
      values[tensor.name] = declareVariable(tensor, trained ? defaultInit(tensor, scales) : StringRef());
    }
  }
  return success();
}

} // namespace par
