// Finds parameters that an exporter's optimiser changed: equal ones merged, folded into others, or left unused.
#include "GraphImporter.h"
#include "par/Phases/Import/Names.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringExtras.h"

#include <cstring>
#include <map>

namespace par {

using namespace mlir;

namespace {

struct LostParameters {
  std::vector<std::string> folded;                         ///< no initializer holds them
  std::vector<std::pair<std::string, std::string>> merged; ///< (parameter, the equal one that replaces it)
  std::vector<std::string> unread;                         ///< an initializer that no node reads
  std::vector<std::pair<std::string, std::string>> apart;  ///< (transposed copy, the parameter whose it is)

  size_t size() const { return folded.size() + merged.size() + unread.size() + apart.size(); }
};

/// All elements equal (LayerNorm's ones, a bias of zeros): exporters merge such parameters though they are not tied.
/// Equal random parameters, however, are one parameter.
bool isConstant(const onnx::Model &model, StringRef name) {
  for (const onnx::Tensor &tensor : model.initializers) {
    if (tensor.name != name)
      continue;
    std::string error;
    std::optional<std::string> bytes = onnx::readTensor(model, tensor, error);
    unsigned size = onnx::byteSize(tensor.type);
    if (!bytes || !size || bytes->size() < 2 * size)
      return false;
    return StringRef(*bytes).drop_front(size) == StringRef(*bytes).drop_back(size);
  }
  return false;
}

/// The bytes of a matrix, or of its transpose; empty if they cannot be read.
std::string bytesOf(const onnx::Model &model, const onnx::Tensor &tensor, bool transpose) {
  std::string error;
  std::optional<std::string> bytes = onnx::readTensor(model, tensor, error);
  size_t size = onnx::byteSize(tensor.type), rows = tensor.dims[0], columns = tensor.dims[1];
  if (!bytes || bytes->size() != rows * columns * size)
    return "";
  if (!transpose)
    return *bytes;
  std::string turned(bytes->size(), 0);
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      std::memcpy(turned.data() + (column * rows + row) * size, bytes->data() + (row * columns + column) * size, size);
  return turned;
}

/// Parameters that the older exporter transposed for a matmul while another node reads them as they are (a head tied to
/// an embedding): it keeps two copies, which would train apart. Every matrix is read once.
std::vector<std::pair<std::string, std::string>> findApart(const onnx::Model &model) {
  std::vector<std::pair<std::string, std::string>> apart;
  std::vector<const onnx::Tensor *> copies, own;
  for (const onnx::Tensor &tensor : model.initializers)
    if (model.signature.empty() && onnx::isFloat(tensor.type) && tensor.dims.size() == 2)
      (isRenamed(tensor.name) ? copies : own).push_back(&tensor);
  std::map<size_t, const onnx::Tensor *> byContent;
  for (const onnx::Tensor *tensor : own)
    if (llvm::any_of(copies, [&](const onnx::Tensor *copy) {
          return copy->type == tensor->type && llvm::equal(copy->dims, llvm::reverse(tensor->dims));
        }))
      byContent[llvm::hash_value(StringRef(bytesOf(model, *tensor, false)))] = tensor;
  for (const onnx::Tensor *copy : copies) {
    std::string turned = byContent.empty() ? "" : bytesOf(model, *copy, true);
    auto found = byContent.find(llvm::hash_value(StringRef(turned)));
    if (!turned.empty() && found != byContent.end() && !isConstant(model, found->second->name) &&
        bytesOf(model, *found->second, false) == turned)
      apart.push_back({copy->name, found->second->name});
  }
  return apart;
}

/// A float initializer of more than one element that the signature does not know: the exporter computed it.
bool hasFolded(const onnx::Model &model) {
  llvm::StringSet<> known;
  for (const onnx::SignatureEntry &entry : model.signature)
    known.insert(entry.target);
  return llvm::any_of(model.initializers, [&](const onnx::Tensor &tensor) {
    return onnx::isFloat(tensor.type) && tensor.elements() > 1 && !known.contains(tensor.name);
  });
}

/// A node of `module` reads the weights of another one, as a convolution into which a batch norm was folded.
bool readsOthers(const onnx::Model &model, StringRef module, const llvm::StringSet<> &initializers) {
  bool found = false;
  forEachNode(model, [&](const onnx::Node &node) {
    found |= node.modulePath == module && llvm::any_of(node.inputs, [&](const std::string &input) {
               return initializers.contains(input) && StringRef(input).rsplit('.').first != module;
             });
  });
  return found;
}

/// Number of uses of each value: by nodes, also in bodies, and as output of the graph or of a body.
llvm::StringMap<unsigned> countReads(const onnx::Model &model) {
  llvm::StringMap<unsigned> reads;
  for (const onnx::ValueInfo &output : model.outputs)
    ++reads[output.name];
  forEachNode(model, [&](const onnx::Node &node) {
    for (const std::string &input : node.inputs)
      ++reads[input];
    for (const onnx::Attribute &attribute : node.attributes)
      if (attribute.graph)
        for (const onnx::ValueInfo &output : attribute.graph->outputs)
          ++reads[output.name];
  });
  return reads;
}

LostParameters findLost(const onnx::Model &model, const ParameterTable &table) {
  LostParameters lost;
  // If nothing was folded, a parameter without initializer is unused or another name of an initializer (T5's
  // `shared.weight`, BERT's `cls.predictions.bias`).
  bool folded = hasFolded(model);
  llvm::StringSet<> own;
  for (const onnx::Tensor &tensor : model.initializers)
    own.insert(tensor.name);
  for (const std::string &name : table.lost)
    if (folded || readsOthers(model, StringRef(name).rsplit('.').first, own))
      lost.folded.push_back(name);
  llvm::StringMap<unsigned> reads = countReads(model);
  // An initializer with a single use cannot be two merged parameters.
  for (const auto &[alias, owner] : table.tied)
    if (reads.lookup(owner) > 1 && isConstant(model, owner))
      lost.merged.push_back({alias, owner});
  for (const onnx::SignatureEntry &entry : model.signature)
    if (entry.kind == "PARAMETER" && own.contains(entry.target) && !reads.contains(entry.target))
      lost.unread.push_back(entry.target);
  lost.apart = findApart(model);
  return lost;
}

/// Weights of a convolution into which the older exporter folded a batch norm. That exporter keeps no signature, and
/// names new initializers after the node that reads them. Empty: none.
StringRef computedWeights(const onnx::Model &model) {
  if (!model.signature.empty())
    return "";
  for (const onnx::Tensor &tensor : model.initializers)
    if (StringRef(tensor.name).starts_with("onnx::Conv") && onnx::isFloat(tensor.type))
      return tensor.name;
  return "";
}

/// `a, b, c and 37 more (-v names all)`
std::string listed(ArrayRef<std::string> names, bool all) {
  size_t most = all ? names.size() : 3;
  std::string text = llvm::join(names.take_front(most), ", ");
  return names.size() <= most ? text : text + " and " + std::to_string(names.size() - most) + " more (-v names all)";
}

std::string paired(ArrayRef<std::pair<std::string, std::string>> pairs, StringRef between, bool all) {
  std::vector<std::string> texts;
  for (const auto &[first, second] : pairs)
    texts.push_back(first + between.str() + second);
  return listed(texts, all);
}

} // namespace

std::optional<LostMessage> describeLost(const onnx::Model &model, bool all) {
  if (StringRef weights = computedWeights(model); !weights.empty())
    return LostMessage{("\"" + weights +
                        "\" was computed by the exporter, as in folding a batch norm into a convolution, so it does "
                        "not train as the module does; export it again with par.export or in training mode, or say "
                        "train.lost: allow")
                           .str(),
                       {}};
  LostParameters lost = findLost(model, classifyParameters(model));
  if (lost.size() == 0)
    return std::nullopt;
  size_t known = llvm::count_if(model.signature, [](auto &entry) { return entry.kind == "PARAMETER"; });
  LostMessage said;
  said.message = "the export lost " + std::to_string(lost.size()) + (known ? " of " + std::to_string(known) : "") +
                 " parameters, so it does not train as the module does; export it again with par.export, "
                 "or say train.lost: allow";
  if (!lost.folded.empty())
    said.notes.push_back("folded into other weights, or dropped: " + listed(lost.folded, all));
  if (!lost.merged.empty())
    said.notes.push_back("merged because they start equal: " + paired(lost.merged, " with ", all));
  if (!lost.apart.empty())
    said.notes.push_back("one parameter, of which the file has a transposed copy that would train apart: " +
                         paired(lost.apart, " of ", all) + "; train.tie: {COPY: PARAMETER} makes them one");
  if (!lost.unread.empty())
    said.notes.push_back("read by no node: " + listed(lost.unread, all));
  return said;
}

LogicalResult GraphImporter::checkLost() {
  std::optional<LostMessage> lost;
  if (options.train && !options.allowLost)
    lost = describeLost(model, options.nameAllLost);
  if (!lost)
    return success();
  InFlightDiagnostic diagnostic = error();
  diagnostic << lost->message;
  for (const std::string &note : lost->notes)
    diagnostic.attachNote() << note;
  return diagnostic;
}

} // namespace par
