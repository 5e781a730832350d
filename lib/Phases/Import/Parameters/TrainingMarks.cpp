// Reads the metadata `par.training` that par.export writes (frozen parameters, batch norms with cumulative averages,
// embeddings) and applies it while importing. Unknown keys are errors.
#include "TrainingMarks.h"

#include "par/Base/Json.h"

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
  for (const onnx::Node &node : model.nodes) // a tied parameter may be computed from another one
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

/// Marks refer to nodes by name, which must then be unique.
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
    return wrong("gives node \"" + *node +
                 "\" a padding_row that is no integer or a scale_by_frequency that is no boolean");
  if (llvm::Error error = checkNode(model, *node))
    return error;
  if (!marks.embeddings.try_emplace(*node, mark).second)
    return wrong("names node \"" + *node + "\" twice");
  return llvm::Error::success();
}

} // namespace

std::string batchNormCounter(StringRef module) {
  return (module.empty() ? "" : module.str() + ".") + "num_batches_tracked";
}

llvm::Expected<TrainingMarks> readTrainingMarks(const onnx::Model &model) {
  TrainingMarks marks;
  std::string_view text = onnx::lookup(model.metadata, std::string_view(metadataKey));
  if (text.empty())
    return marks;
  llvm::Expected<json::Value> parsed = parseJson(text);
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

} // namespace par
