// Layers are told by the number in their modules' paths and compared as texts, in which each operand is a value of the
// layer itself, of the one before, a weight of its own, or a name that all share.
#include "par/Search/Layers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

/// The module that holds the outermost number of a path, and the number: "transformer.h", 3.
static std::optional<std::pair<std::string, int64_t>> splitPath(StringRef path) {
  for (size_t begin = 0; begin < path.size();) {
    size_t end = std::min(path.find('.', begin), path.size());
    if (int64_t number = 0; begin > 0 && !path.slice(begin, end).getAsInteger(10, number))
      return std::pair(path.take_front(begin - 1).str(), number);
    begin = end + 1;
  }
  return std::nullopt;
}

/// The layer of the stack `prefix` that a path is of; -1: of none.
static int64_t layerOf(StringRef path, StringRef prefix) {
  auto split = splitPath(path);
  return split && split->first == prefix ? split->second : -1;
}

bool LayerStack::choosePrefix(const onnx::Model &model) {
  std::map<std::string, std::map<int64_t, std::vector<size_t>>> stacks;
  for (auto [index, node] : enumerate(model.nodes))
    if (auto split = splitPath(node.modulePath))
      stacks[split->first][split->second].push_back(index);
  size_t most = 0;
  for (auto &[name, layers] : stacks) {
    size_t count = 0;
    for (auto &[layer, own] : layers)
      count += own.size();
    if (layers.size() < 3 || count <= most)
      continue;
    most = count;
    prefix = name;
    nodes = layers;
  }
  return most > 0;
}

/// Contents that shapes depend on, of small tensors of integers.
static std::string contentOf(const onnx::Model &model, const onnx::Tensor &tensor) {
  std::string reason;
  if (onnx::isFloat(tensor.type) || tensor.elements() > 64)
    return "";
  std::optional<std::string> bytes = onnx::readTensor(model, tensor, reason);
  return bytes ? toHex(*bytes) : tensor.name;
}

static std::string spellDims(ArrayRef<int64_t> dims) {
  return join(map_range(dims, [](int64_t dim) { return std::to_string(dim); }), "x");
}

void LayerStack::placeValues(const onnx::Model &model) {
  for (const auto &[layer, own] : nodes)
    for (auto [position, index] : enumerate(own))
      for (auto [output, name] : enumerate(model.nodes[index].outputs))
        if (!name.empty())
          places[name] = {layer, position, output};
  for (const onnx::Tensor &tensor : model.initializers)
    weights[tensor.name] = onnx::spell(tensor.type) + spellDims(tensor.dims) + contentOf(model, tensor);
  for (const onnx::Node &node : model.nodes)
    for (const std::string &input : node.inputs)
      if (weights.count(input))
        readers[input].insert(layerOf(node.modulePath, prefix));
}

static std::string textOf(const onnx::Model &model, const onnx::Attribute &attribute) {
  std::string text = attribute.name + std::to_string(attribute.kind) + ":" + std::to_string(attribute.f) + "," +
                     std::to_string(attribute.i) + "," + attribute.s;
  for (double number : attribute.floats)
    text += "," + std::to_string(number);
  text += "," + spellDims(attribute.ints) + "," + join(attribute.strings, ",");
  if (attribute.tensor)
    text +=
        onnx::spell(attribute.tensor->type) + spellDims(attribute.tensor->dims) + contentOf(model, *attribute.tensor);
  return text;
}

std::string LayerStack::textOfInput(const std::string &value, int64_t layer) const {
  if (auto place = places.find(value); place != places.end()) {
    const Place &at = place->second;
    std::string text = std::to_string(at.position) + "." + std::to_string(at.output);
    return at.layer == layer ? "own " + text : at.layer == layer - 1 ? "before " + text : value;
  }
  auto weight = weights.find(value);
  bool isOwn = weight != weights.end() && readers.at(value) == std::set<int64_t>{layer};
  return isOwn ? "weight " + weight->second : value;
}

std::string LayerStack::textOf(const onnx::Model &model, int64_t layer) const {
  std::string text;
  for (size_t index : nodes.at(layer)) {
    const onnx::Node &node = model.nodes[index];
    text += node.domain + "." + node.opType + node.overload + "(";
    for (const std::string &input : node.inputs)
      text += textOfInput(input, layer) + ";";
    text += ")" + std::to_string(node.outputs.size());
    for (const onnx::Attribute &attribute : node.attributes)
      text += par::textOf(model, attribute) + ";";
    text += "\n";
  }
  return text;
}

bool LayerStack::leaks(const onnx::Model &model) const {
  auto isInner = [&](const std::string &value) {
    auto place = places.find(value);
    return place != places.end() && place->second.layer >= first && place->second.layer < first + equal - 1;
  };
  auto isEqual = [&](const onnx::ValueInfo &output) {
    auto place = places.find(output.name);
    return place != places.end() && place->second.layer >= first && place->second.layer < first + equal;
  };
  for (const onnx::Node &node : model.nodes) {
    bool outside = layerOf(node.modulePath, prefix) < 0;
    if (outside && any_of(node.inputs, isInner))
      return true;
    if (any_of(node.attributes, [](const onnx::Attribute &attribute) { return attribute.graph != nullptr; }))
      return true; // a body sees the values around it
  }
  return any_of(model.outputs, isEqual) || !model.updates.empty();
}

std::optional<LayerStack> LayerStack::find(const onnx::Model &model) {
  LayerStack stack;
  if (!stack.choosePrefix(model))
    return std::nullopt;
  stack.placeValues(model);
  std::string last;
  int64_t begin = 0, before = -2;
  for (const auto &[layer, own] : stack.nodes) {
    std::string text = stack.textOf(model, layer);
    if (text != last || layer != before + 1)
      begin = layer;
    if (layer - begin + 1 > stack.equal) {
      stack.first = begin;
      stack.equal = layer - begin + 1;
    }
    last = std::move(text);
    before = layer;
  }
  if (stack.equal < 2 || stack.leaks(model))
    return std::nullopt;
  return stack;
}

/// Removes what `isGone` says of a list's names.
template <class List, class Predicate>
static void drop(List &list, Predicate isGone) {
  erase_if(list, [&](const auto &entry) { return isGone(entry.name); });
}

onnx::Model LayerStack::keep(const onnx::Model &model, int64_t kept) const {
  int64_t begin = first + kept, end = first + equal; // of the layers that go
  auto isGone = [&](int64_t layer) { return layer >= begin && layer < end; };
  onnx::Model thin = model;
  std::map<std::string, std::string> renamed; // of the last layer: the values of the last one that stays
  const std::vector<size_t> &stays = nodes.at(begin - 1), &goes = nodes.at(end - 1);
  for (auto [to, from] : zip_equal(stays, goes))
    for (auto [fresh, old] : zip_equal(model.nodes[to].outputs, model.nodes[from].outputs))
      renamed[old] = fresh;
  erase_if(thin.nodes, [&](const onnx::Node &node) { return isGone(layerOf(node.modulePath, prefix)); });
  for (onnx::Node &node : thin.nodes)
    for (std::string &input : node.inputs)
      if (auto found = renamed.find(input); found != renamed.end() && begin < end)
        input = found->second;
  auto isGoneWeight = [&](const std::string &name) {
    auto found = readers.find(name);
    return found != readers.end() && all_of(found->second, isGone);
  };
  auto isGoneValue = [&](const std::string &name) {
    auto place = places.find(name);
    return isGoneWeight(name) || (place != places.end() && isGone(place->second.layer));
  };
  drop(thin.initializers, isGoneWeight);
  drop(thin.initialized, isGoneWeight);
  drop(thin.valueInfo, isGoneValue);
  erase_if(thin.signature, [&](const onnx::SignatureEntry &entry) { return isGone(layerOf(entry.target, prefix)); });
  return thin;
}

} // namespace par
