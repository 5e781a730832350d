// Reads the metadata `par.training` that par.export writes (frozen parameters, batch norms with cumulative averages,
// embeddings) and applies it while importing. Unknown keys are errors.
#include "TrainingMarks.h"
#include "GraphImporter.h"
#include "Indices.h"
#include "Operands.h"

#include "llvm/Support/JSON.h"

namespace par {

using namespace mlir;
namespace json = llvm::json;

namespace {

constexpr StringLiteral metadataKey = "par.training";
constexpr int64_t newestVersion = 1;

llvm::Error wrong(const Twine &what) {
  return llvm::createStringError("metadata \"" + metadataKey + "\" " + what +
                                 "; export the model again with par.export, or take that key out of the file");
}

llvm::Error checkKeys(const json::Object &object, ArrayRef<StringRef> known) {
  for (const auto &entry : object)
    if (!llvm::is_contained(known, StringRef(entry.first)))
      return wrong("has the unknown key \"" + StringRef(entry.first) + "\"");
  return llvm::Error::success();
}

/// The list of that key, empty if it is absent.
llvm::Expected<ArrayRef<json::Value>> listOf(const json::Object &object, StringRef key) {
  const json::Value *value = object.get(key);
  if (!value)
    return ArrayRef<json::Value>();
  if (const json::Array *array = value->getAsArray())
    return ArrayRef(array->data(), array->size());
  return wrong("has a \"" + key + "\" that is no list");
}

llvm::Error readFrozen(const onnx::Model &model, const json::Object &object, TrainingMarks &marks) {
  llvm::Expected<ArrayRef<json::Value>> names = listOf(object, "frozen");
  if (!names)
    return names.takeError();
  llvm::StringSet<> initializers;
  for (const onnx::Tensor &tensor : model.initializers)
    initializers.insert(tensor.name);
  for (const onnx::Node &node : model.nodes) // what a plan ties is made of another one
    initializers.insert_range(node.outputs);
  for (const json::Value &name : *names) {
    std::optional<StringRef> text = name.getAsString();
    if (!text)
      return wrong("has a frozen parameter that is no name");
    if (!initializers.contains(*text))
      return wrong("says that \"" + *text + "\" is frozen, which is no initializer of the model");
    marks.frozen.insert(*text);
  }
  return llvm::Error::success();
}

/// Of the module of a batch norm, "" where that is the model.
std::string batchNormCounter(StringRef module) {
  return (module.empty() ? "" : module.str() + ".") + "num_batches_tracked";
}

llvm::Error readCumulative(const onnx::Model &model, const json::Object &object, TrainingMarks &marks) {
  llvm::Expected<ArrayRef<json::Value>> modules = listOf(object, "cumulative");
  if (!modules)
    return modules.takeError();
  for (const json::Value &module : *modules) {
    std::optional<StringRef> text = module.getAsString();
    if (!text)
      return wrong("has a cumulative batch norm that is no name");
    std::string counter = batchNormCounter(*text);
    if (llvm::none_of(model.updates, [&](const onnx::BufferUpdate &update) { return update.buffer == counter; }))
      return wrong("says that the batch norm \"" + *text +
                   "\" averages over all steps, and the model does not count them in \"" + counter + "\"");
    marks.cumulative.insert(*text);
  }
  return llvm::Error::success();
}

/// Nodes are known by their names, which must then be theirs alone.
llvm::Error checkNode(const onnx::Model &model, StringRef name) {
  size_t found = 0;
  StringRef opType;
  for (const onnx::Node &node : model.nodes)
    if (node.name == name) {
      ++found;
      opType = node.opType;
    }
  if (found != 1)
    return wrong("says that node \"" + name + "\" is an embedding, and the model has " +
                 (found ? std::to_string(found) + " nodes" : std::string("none")) + " of that name");
  if (opType != "Gather")
    return wrong("says that node \"" + name + "\" is an embedding, and it is a " + opType);
  return llvm::Error::success();
}

llvm::Error readEmbedding(const onnx::Model &model, const json::Value &value, TrainingMarks &marks) {
  const json::Object *object = value.getAsObject();
  std::optional<StringRef> node = object ? object->getString("node") : std::nullopt;
  if (!node)
    return wrong("has an embedding without the name of its node");
  if (llvm::Error error = checkKeys(*object, {"node", "padding_row", "scale_by_frequency"}))
    return error;
  EmbeddingMark mark;
  mark.paddingRow = object->getInteger("padding_row");
  mark.byFrequency = object->getBoolean("scale_by_frequency").value_or(false);
  if ((object->get("padding_row") && !mark.paddingRow) ||
      (object->get("scale_by_frequency") && !object->getBoolean("scale_by_frequency")))
    return wrong("says of node \"" + *node + "\" what is no row and no truth");
  if (llvm::Error error = checkNode(model, *node))
    return error;
  if (!marks.embeddings.try_emplace(*node, mark).second)
    return wrong("names node \"" + *node + "\" twice");
  return llvm::Error::success();
}

/// 1 / how often the batch looks up what each index does, of a float type.
Value inverseCounts(NodeImporter &importer, Value indices, int64_t size, Type element) {
  OpBuilder &builder = importer.builder;
  auto type = cast<RankedTensorType>(indices.getType());
  Value ones = importer.splat(type.clone(builder.getI32Type()), 1);
  Value counts = ScatterAddOp::create(builder, importer.loc, RankedTensorType::get({size}, builder.getI32Type()), ones,
                                      indices, 0, size);
  Value own = gatherAt(importer, counts, indices, 0);
  return 1.0 / termOf(importer, own).convert(element);
}

} // namespace

llvm::Expected<TrainingMarks> readTrainingMarks(const onnx::Model &model) {
  TrainingMarks marks;
  std::string_view text = onnx::lookup(model.metadata, std::string_view(metadataKey));
  if (text.empty())
    return marks;
  llvm::Expected<json::Value> parsed = json::parse(StringRef(text));
  if (!parsed)
    return wrong("is no JSON (" + llvm::toString(parsed.takeError()) + ")");
  const json::Object *object = parsed->getAsObject();
  std::optional<int64_t> version = object ? object->getInteger("version") : std::nullopt;
  if (!version)
    return wrong("says no version");
  if (*version < 1 || *version > newestVersion)
    return wrong("is of version " + Twine(*version) + ", this par-compile reads " + Twine(newestVersion));
  if (llvm::Error error = checkKeys(*object, {"version", "frozen", "embeddings", "cumulative"}))
    return error;
  if (llvm::Error error = readFrozen(model, *object, marks))
    return error;
  if (llvm::Error error = readCumulative(model, *object, marks))
    return error;
  llvm::Expected<ArrayRef<json::Value>> embeddings = listOf(*object, "embeddings");
  if (!embeddings)
    return embeddings.takeError();
  for (const json::Value &embedding : *embeddings)
    if (llvm::Error error = readEmbedding(model, embedding, marks))
      return error;
  return marks;
}

bool GraphImporter::hasGradient(Value value) {
  SmallVector<Value> pending{value};
  while (!pending.empty()) {
    Value next = pending.back();
    Operation *op = next.getDefiningOp();
    auto read = dyn_cast_or_null<ReadOp>(op);
    if (reached.contains(next)) {
      pending.pop_back();
    } else if (read || !op || !isa<FloatType>(getElementTypeOrSelf(next))) {
      reached[next] = read && parameters.trainable.contains(read.getVariable());
    } else {
      auto unknown = llvm::find_if(op->getOperands(), [&](Value operand) { return !reached.contains(operand); });
      if (unknown != op->operand_end())
        pending.push_back(*unknown);
      else
        reached[next] = llvm::any_of(op->getOperands(), [&](Value operand) { return reached.lookup(operand); });
    }
  }
  return reached.lookup(value);
}

/// Integers of the same bits have no gradient.
Value NodeImporter::stopGradient(Value value) {
  if (!trains() || !graph.hasGradient(value))
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  auto bits = type.clone(builder.getIntegerType(type.getElementTypeBitWidth()));
  return BitCastOp::create(builder, loc, type, BitCastOp::create(builder, loc, bits, value));
}

FailureOr<Value> NodeImporter::stepsAveraged(size_t i, Type element) {
  VariableOp variable = movedVariable(i);
  StringRef module = variable ? variable.getSymName() : StringRef();
  if (!module.consume_back("running_mean"))
    return Value();
  module.consume_back(".");
  if (!graph.marks.cumulative.contains(module))
    return Value();
  Value counter = graph.values.lookup(batchNormCounter(module)).computed;
  if (!counter || cast<RankedTensorType>(counter.getType()).getRank() != 0)
    return error() << "its counter \"" << batchNormCounter(module) << "\" is no number";
  return Value(termOf(*this, counter).convert(element) + double(++graph.averaged[module]));
}

const EmbeddingMark *NodeImporter::embeddingMark() const {
  auto found = graph.marks.embeddings.find(node.name);
  return found == graph.marks.embeddings.end() || !trains() ? nullptr : &found->second;
}

FailureOr<Value> markEmbedding(NodeImporter &importer, Value rows, Value indices, int64_t dim, int64_t size) {
  const EmbeddingMark *mark = importer.embeddingMark();
  if (!mark)
    return rows;
  Term picked = termOf(importer, rows);
  int64_t padding = mark->paddingRow.value_or(0);
  if (dim != 0 || padding < 0 || padding >= size || !isa<FloatType>(picked.getType().getElementType()))
    return importer.error() << "metadata \"par.training\" says that it is an embedding with a row " << padding
                            << ", and it takes " << picked.getType() << " along dim " << dim << ", which has " << size;
  Term index = termOf(importer, indices), held = picked.with(importer.stopGradient(picked));
  SmallVector<int64_t> dims = dimRange(0, index.getType().getRank());
  if (mark->byFrequency) {
    // Forward adds zero; backward multiplies.
    Term share = picked.with(inverseCounts(importer, indices, size, picked.getType().getElementType()));
    picked = held + (picked - held) * share.broadcast(dims, picked.getShape());
  }
  if (mark->paddingRow)
    picked = index.compare(Predicate::eq, double(padding)).broadcast(dims, picked.getShape()).select(held, picked);
  return Value(picked);
}

} // namespace par
