// Imports an ONNX graph node by node in order: a node is folded if its inputs are known, else its operator's import
// function builds ops. Nodes that no output depends on are skipped without checks.
#include "GraphImporter.h"
#include "../Fold/FoldKey.h"
#include "../Operators/Loss.h"
#include "../Operators/PluginOps.h"

#include "par/Dialect/Modes.h"
#include "par/Phases/Import/Families.h"
#include "par/Phases/Import/Operators.h"

#include "mlir/IR/Verifier.h"

namespace par {

using namespace mlir;

ImportTable importTable() {
  return joinFamilies<ImportFunction>(
      {addElementwiseImports, addActivationImports, addFunctionImports,   addPowerImports,    addCastImports,
       addRandomImports,      addSortImports,       addScatterImports,    addPositionImports, addAttentionImports,
       addSpectralImports,    addShapeImports,      addIndexImports,      addReduceImports,   addContractImports,
       addNormImports,        addSoftmaxImports,    addLossImports,       addSequenceImports, addControlImports,
       addConvolutionImports, addPoolImports,       addStatisticsImports, addResizeImports,   addImageImports,
       addEinsumImports,      addRecurrentImports,  addGridImports,       addRegionImports,   addStateImports});
}

GraphImporter::GraphImporter(const onnx::Model &model, const ImportOptions &options, MLIRContext *context)
    : model(model), options(options), context(context),
      fileLoc(FileLineColLoc::get(context, StringRef(model.path), 0, 0)), builder(context),
      parameters(classifyParameters(model)), folder(model.opset), table(importTable()), opset(model.opset) {}

RankedTensorType GraphImporter::typeOf(onnx::ElementType type, ArrayRef<int64_t> shape) {
  Type element;
  switch (type) {
  case onnx::ElementType::F32:
    element = builder.getF32Type();
    break;
  case onnx::ElementType::F64:
    element = builder.getF64Type();
    break;
  case onnx::ElementType::F16:
    element = builder.getF16Type();
    break;
  case onnx::ElementType::BF16:
    element = builder.getBF16Type();
    break;
  case onnx::ElementType::U64:
  case onnx::ElementType::I64:
    element = builder.getI64Type();
    break;
  case onnx::ElementType::U32:
  case onnx::ElementType::I32:
    element = builder.getI32Type();
    break;
  case onnx::ElementType::U16:
  case onnx::ElementType::I16:
    element = builder.getI16Type();
    break;
  case onnx::ElementType::U8:
  case onnx::ElementType::I8:
    element = builder.getI8Type();
    break;
  case onnx::ElementType::Bool:
    element = builder.getI1Type();
    break;
  default:
    return nullptr; // strings, narrow floats
  }
  return RankedTensorType::get(shape, element);
}

/// Shape and Size need only types, whatever their operand depends on.
static std::shared_ptr<const StaticTensor> foldTypeQuery(const onnx::Node &node, ArrayRef<int64_t> shape) {
  if (node.opType == "Size")
    return std::make_shared<StaticTensor>(StaticTensor::ofInts(onnx::ElementType::I64, {}, {countElements(shape)}));
  int64_t rank = shape.size(), start = node.intAttribute("start", 0), end = node.intAttribute("end", rank);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? end + rank : end, start, rank);
  ArrayRef<int64_t> part = shape.slice(start, end - start);
  return std::make_shared<StaticTensor>(
      StaticTensor::ofInts(onnx::ElementType::I64, {int64_t(part.size())}, std::vector<int64_t>(part)));
}

/// Folds a Concat of indices with all that reads it, or takes what that gave for this node.
static bool foldJoined(JoinedIndices &indices, const onnx::Node &node, llvm::StringMap<GraphValue> &values,
                       std::shared_ptr<const StaticTensor> &result) {
  result = indices.resultOf(node);
  if (result || !indices.fold(node, [&](const std::string &name) { return values.lookup(name).known.get(); }))
    return bool(result);
  values[node.outputs[0]] = GraphValue();
  return true;
}

LogicalResult GraphImporter::foldNode(const onnx::Node &node, Location loc, bool &folded) {
  folded = false;
  if (!node.domain.empty() || node.outputs.size() != 1)
    return success();
  SmallVector<const StaticTensor *> inputs;
  bool allKnown = true;
  for (const std::string &input : node.inputs) {
    inputs.push_back(input.empty() ? nullptr : values.lookup(input).known.get());
    allKnown &= input.empty() || inputs.back();
  }
  std::shared_ptr<const StaticTensor> result;
  std::shared_ptr<Recipe> recipe;
  if ((node.opType == "Shape" || node.opType == "Size") && node.inputs.size() == 1) {
    const GraphValue &input = values[node.inputs[0]];
    if (input.isSequence || input.isAbsent())
      return success();
    result = foldTypeQuery(node, input.known ? input.known->getShape()
                                             : cast<RankedTensorType>(input.computed.getType()).getShape());
  } else if (node.opType == "CastLike" && node.inputs.size() == 2 && inputs[0] && values[node.inputs[1]].computed) {
    // Only the type of the second operand matters.
    Type element = cast<RankedTensorType>(values[node.inputs[1]].computed.getType()).getElementType();
    for (auto type : {onnx::ElementType::F32, onnx::ElementType::F64, onnx::ElementType::F16, onnx::ElementType::BF16,
                      onnx::ElementType::I64, onnx::ElementType::I32, onnx::ElementType::Bool})
      if (typeOf(type, {}).getElementType() == element) {
        StaticTensor like = StaticTensor::scalar(type, 0);
        if (FailureOr<StaticTensor> value = folder.fold(node, {inputs[0], &like}); succeeded(value))
          result = std::make_shared<StaticTensor>(std::move(*value));
      }
  } else if (joinedIndices && foldJoined(*joinedIndices, node, values, result)) {
    if ((folded = !result)) // its readers are folded
      return success();
  } else if (allKnown && folder.knows(node.opType)) {
    Folded *same = nullptr;
    if (!inputs.empty())
      same = &folds[foldKey(node, opset, inputs)];
    if (same && same->result) {
      std::tie(result, recipe) = std::tie(same->result, same->recipe);
    } else if (FailureOr<StaticTensor> value = folder.fold(node, inputs); succeeded(value)) {
      result = std::make_shared<StaticTensor>(std::move(*value));
      recipe = recipeFor(node, *result, loc);
      if (same) {
        std::tie(same->result, same->recipe) = std::tie(result, recipe);
        for (const std::string &input : node.inputs)
          same->inputs.push_back(input.empty() ? nullptr : values.lookup(input).known);
      }
    }
  }
  if (!result)
    return success();
  folded = true;
  values[node.outputs[0]] = GraphValue{result, {}, {}, false, false, recipe};
  return success();
}

std::set<std::string> GraphImporter::findAsked() const { return inputsBehind(asked.getArrayRef()); }

std::set<std::string> GraphImporter::inputsBehind(ArrayRef<Value> values) const {
  std::set<std::string> inputs;
  SetVector<Value> pending(values.begin(), values.end());
  for (size_t i = 0; i < pending.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(pending[i]))
      inputs.insert(inputNames[argument.getArgNumber()]);
    else
      for (Value operand : pending[i].getDefiningOp()->getOperands())
        pending.insert(operand);
  }
  return inputs;
}

/// Ops that opset 7, which defined today's broadcasting and inference, and earlier opsets changed only in hints.
static bool isAgeless(StringRef op) {
  static constexpr StringRef ageless[] = {"Abs",      "Ceil",       "Constant",  "Conv",     "Elu",     "Exp",
                                          "Floor",    "Identity",   "LeakyRelu", "Log",      "MatMul",  "Neg",
                                          "Not",      "Reciprocal", "Relu",      "Selu",     "Sigmoid", "Softplus",
                                          "Softsign", "Sqrt",       "Transpose", "Unsqueeze"};
  return llvm::is_contained(ageless, op);
}

LogicalResult GraphImporter::checkSizes(NodeImporter &importer) {
  for (const std::string &name : importer.node.outputs) {
    GraphValue value = values.lookup(name);
    if (!value.known && !value.computed)
      continue;
    ArrayRef<int64_t> shape =
        value.known ? value.known->getShape() : cast<RankedTensorType>(value.computed.getType()).getShape();
    constexpr size_t maxDims = 64; // of the tensors of a file too
    if (shape.size() > maxDims)
      return importer.error() << "its result \"" << name << "\" has " << shape.size() << " dims, at most " << maxDims
                              << " are supported";
    if (!isWithinMemory(shape))
      return importer.error() << "its result \"" << name << "\" is larger than any memory";
  }
  return success();
}

static LogicalResult refuseUnknown(NodeImporter &importer) {
  const onnx::Node &node = importer.node;
  bool microsoft = StringRef(node.domain).starts_with("com.microsoft");
  return importer.error() << "op " << node.domain << (node.domain.empty() ? "" : "::") << node.opType
                          << (microsoft ? " (written by ONNX Runtime's optimiser) is not supported; compile the "
                                          "exporter's own file"
                                        : " is not supported yet");
}

LogicalResult GraphImporter::importNode(const onnx::Node &node, const Provenance &place) {
  Location loc = makeLocation(context, place);
  NodeImporter importer(*this, node, loc);
  if (node.outputs.empty())
    return importer.error() << "has no output";
  for (const std::string &input : node.inputs)
    if (!input.empty() && !values.contains(input))
      return importer.error() << "its input \"" << input << "\" is defined nowhere before it";
  for (const onnx::Attribute &attribute : node.attributes)
    if (attribute.isReference)
      return importer.error() << "attribute \"" << attribute.name << "\" refers to a function's attribute \""
                              << attribute.s << "\", and the graph is no function";
  for (const onnx::Attribute &attribute : node.attributes)
    if (attribute.tensor && attribute.tensor->storage != onnx::Storage::Inline && !attribute.tensor->file.empty())
      return importer.error() << "its \"" << attribute.name << "\" is external data in \"" << attribute.tensor->file
                              << "\", "
                              << (attribute.tensor->storage == onnx::Storage::Absent
                                      ? "which is not there, and must be known when compiling"
                                      : "which is too large for an attribute; export it as an initializer");
  if (node.domain.empty() && opset < 7 && !isAgeless(node.opType))
    return importer.error() << "op " << node.opType << " of opset " << opset
                            << " is not supported; export the model again with opset 7 or later";
  if (failed(checkArity(importer)))
    return failure();
  bool folded = false;
  if (failed(foldNode(node, loc, folded)) || folded)
    return success(folded && succeeded(checkSizes(importer)));
  auto row = node.domain.empty() ? table.find(node.opType) : table.end();
  if (row != table.end())
    return success(succeeded(hasUnsignedInput(node) ? importUnsigned(importer, row->second) : row->second(importer)) &&
                   succeeded(checkSizes(importer)));
  if (auto name = findPluginOp(node, context))
    return success(succeeded(importPluginOp(importer, *name)) && succeeded(checkSizes(importer)));
  for (const onnx::Function &function : model.functions)
    if (function.name == node.opType && function.domain == node.domain && function.overload == node.overload)
      return importCall(function, importer);
  if (StringRef refusal = node.domain.empty() ? refusalOf(node.opType) : ""; !refusal.empty()) {
    bool byData = refusal.contains("depends on data");
    InFlightDiagnostic diagnostic = error()
                                    << "node \"" << (node.name.empty() ? place.path : StringRef(node.name))
                                    << "\": " << (byData ? "" : "op " + node.opType + " is not supported: it ")
                                    << refusal << (byData ? ", which an ahead-of-time program cannot hold" : "");
    std::string from = describe(place);
    diagnostic.attachNote(loc) << (from.empty() ? "" : "from " + from + "; ") << "export the model without its "
                               << (byData ? "post-processing; within the model compute everything and choose by a "
                                            "mask (torch.where, weights of 0)"
                                          : "pre-processing");
    return diagnostic;
  }
  if (node.domain.empty() && folder.knows(node.opType)) {
    for (size_t i = 0; i < node.inputs.size(); ++i)
      importer.known(i); // a caller may give it
    return importer.error() << "op " << node.opType << " of data is not supported: its result must be known when "
                            << "compiling";
  }
  return refuseUnknown(importer);
}

/// Nodes that no output of the graph depends on are skipped, also unsupported ones.
LogicalResult GraphImporter::importNodes() {
  llvm::StringSet<> live;
  for (const onnx::ValueInfo &output : model.outputs)
    live.insert(output.name);
  for (const onnx::BufferUpdate &update : writtenBuffers())
    live.insert(update.output);
  auto isLive = [&](const onnx::Node &node) {
    return node.outputs.empty() || // an error that is reported
           llvm::any_of(node.outputs, [&](const std::string &output) { return live.contains(output); });
  };
  joinedIndices.emplace(model.nodes, live);
  for (const onnx::Node &node : llvm::reverse(model.nodes))
    if (isLive(node))
      collectReads(node, live);
  std::vector<std::string> paths = nodePaths(model);
  for (auto [node, path] : llvm::zip(model.nodes, paths))
    if (isLive(node) &&
        failed(importNode(node, {node.name, node.modulePath, path, node.sourceFile, unsigned(node.sourceLine)})))
      return failure();
  return success();
}

/// A known value has no op with the location of its node.
Location GraphImporter::locationOf(const onnx::ValueInfo &output) {
  for (const onnx::Node &node : model.nodes)
    if (llvm::is_contained(node.outputs, output.name))
      return makeLocation(context,
                          {node.name, node.modulePath, node.opType, node.sourceFile, unsigned(node.sourceLine)});
  return makeLocation(context, {output.name, "", output.name, "", 0});
}

LogicalResult GraphImporter::addOutput(const onnx::ValueInfo &output, const GraphValue &value, StringRef name) {
  for (auto [i, element] : llvm::enumerate(value.sequence))
    if (failed(addOutput(output, element, (name + "." + Twine(i)).str())))
      return failure();
  if (value.isSequence)
    return success();
  if (value.isAbsent())
    return error() << "output \"" << name << "\" is absent";
  if (value.known ? onnx::isUnsigned(value.known->getType()) : value.isUnsigned)
    unsignedValues.insert(builder.getStringAttr(name));
  outputNames.push_back(name.str());
  results.push_back(value.known ? materialize(value, value.known->getShape(), name, locationOf(output))
                                : value.computed);
  auto shape = cast<RankedTensorType>(results.back().getType()).getShape();
  if (int64_t dim = batchDimOf(output, shape); dim >= 0 && dim < int64_t(shape.size()) && shape[dim] == 1)
    outputBatchDims.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(dim)));
  return success();
}

/// Ends the step with the loss, or with every output. Unused ops are erased.
LogicalResult GraphImporter::finish() {
  for (const onnx::ValueInfo &output : model.outputs)
    if (auto found = values.find(output.name); found != values.end() && failed(checkDeclared(output, found->second)))
      return failure();
  if (options.train) {
    FailureOr<Value> loss = findLoss();
    if (failed(loss) || failed(writeBuffers()))
      return failure();
    results.push_back(*loss);
    outputNames.push_back("loss");
    addMetrics(builder, model, values, options.carry, results, outputNames);
  } else {
    for (const onnx::ValueInfo &output : model.outputs) {
      auto found = values.find(output.name);
      if (found == values.end())
        return error() << "output \"" << output.name << "\" is defined nowhere";
      if (failed(addOutput(output, found->second, output.name)))
        return failure();
    }
  }
  ReturnOp::create(builder, fileLoc, results);
  Block &block = step.getBlock();
  SmallVector<StringRef> inputs(inputNames.begin(), inputNames.end()), outputs(outputNames.begin(), outputNames.end());
  step.setFunctionType(builder.getFunctionType(block.getArgumentTypes(), ValueRange(results).getTypes()));
  step.setInputsAttr(builder.getStrArrayAttr(inputs));
  step.setOutputsAttr(builder.getStrArrayAttr(outputs));
  if (llvm::any_of(batchDims, [](int64_t dim) { return dim != 0; }))
    step.setBatchDimsAttr(builder.getDenseI64ArrayAttr(batchDims));
  if (batchOfOne && !outputBatchDims.empty())
    step->setAttr(batchOfOneAttr, builder.getDictionaryAttr(outputBatchDims));
  if (!unsignedValues.empty())
    step->setAttr(unsignedNames, builder.getArrayAttr(unsignedValues.getArrayRef()));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty() && (isPure(&op) || isa<ReadOp>(op)))
      op.erase();
  return success();
}

/// Only training needs the marks of the module's own training.
LogicalResult GraphImporter::readMarks() {
  if (!options.train)
    return success();
  llvm::Expected<TrainingMarks> read = readTrainingMarks(model);
  if (!read)
    return error() << llvm::toString(read.takeError());
  marks = std::move(*read);
  return success();
}

OwningOpRef<ModuleOp> GraphImporter::run() {
  module = ModuleOp::create(fileLoc);
  if (failed(checkModel()) || failed(checkLost()) || failed(readMarks()) || failed(bindDims()))
    return nullptr;
  builder.setInsertionPointToEnd(module->getBody());
  step = StepOp::create(builder, fileLoc, options.train ? "eval" : "predict", builder.getFunctionType({}, {}));
  if (step.getBody().empty())
    step.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&step.getBlock());
  if (failed(declareInputs()) || failed(declareInitializers()) || failed(importNodes()) || failed(finish()))
    return nullptr;
  // Variables that nothing reads have no place in the step.
  llvm::DenseSet<Attribute> read;
  if (std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(&module->getBodyRegion()))
    for (SymbolTable::SymbolUse use : *uses)
      read.insert(use.getSymbolRef().getRootReference());
  for (auto variable : llvm::make_early_inc_range(module->getOps<VariableOp>()))
    if (!read.contains(variable.getSymNameAttr()))
      variable.erase();
  if (failed(verify(*module)))
    return nullptr;
  return std::move(module);
}

OwningOpRef<ModuleOp> importModel(const onnx::Model &model, const ImportOptions &options, MLIRContext *context,
                                  std::set<std::string> *asked) {
  context->getOrLoadDialect<ParDialect>();
  GraphImporter importer(model, options, context);
  OwningOpRef<ModuleOp> module = importer.run();
  if (asked && !module)
    *asked = importer.findAsked();
  return module;
}

} // namespace par
