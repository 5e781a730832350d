#include "par/cuda/dnn/DnnGraph.h"

#include <algorithm>

namespace par::cuda {

using dnn::Attribute;
using dnn::Kind;
using dnn::Type;

DnnNode::DnnNode(const Dnn &library, Kind kind, std::string whose, std::string what)
    : library(library), whose(std::move(whose)), what(std::move(what)) {
  library.check(library.descriptorCreate(static_cast<int>(kind), &descriptor), this->whose,
                "cudnnBackendCreateDescriptor of " + this->what);
}

DnnNode::~DnnNode() { library.descriptorDestroy(descriptor); }

DnnNode &DnnNode::put(Attribute attribute, Type type, int64_t count, const void *elements) {
  library.check(library.descriptorSet(descriptor, static_cast<int>(attribute), static_cast<int>(type), count, elements),
                whose, "attribute " + std::to_string(static_cast<int>(attribute)) + " of " + what);
  return *this;
}

DnnNode &DnnNode::set(Attribute attribute, std::span<const int64_t> values) {
  return put(attribute, Type::Int64, static_cast<int64_t>(values.size()), values.data());
}
DnnNode &DnnNode::set(Attribute attribute, int64_t value) { return put(attribute, Type::Int64, 1, &value); }
DnnNode &DnnNode::set(Attribute attribute, bool value) { return put(attribute, Type::Boolean, 1, &value); }
DnnNode &DnnNode::set(Attribute attribute, float value) { return put(attribute, Type::Float, 1, &value); }
DnnNode &DnnNode::set(Attribute attribute, double value) { return put(attribute, Type::Double, 1, &value); }
DnnNode &DnnNode::set(Attribute attribute, Type type, int member) { return put(attribute, type, 1, &member); }
DnnNode &DnnNode::set(Attribute attribute, const DnnNode &other) {
  return put(attribute, Type::Descriptor, 1, &other.descriptor);
}
DnnNode &DnnNode::set(Attribute attribute, std::span<void *const> pointers, Type type) {
  return put(attribute, type, static_cast<int64_t>(pointers.size()), pointers.data());
}

DnnNode &DnnNode::set(Attribute attribute, void *pointer, Type type) { return put(attribute, type, 1, &pointer); }

int DnnNode::tryFinalize() { return library.descriptorFinalize(descriptor); }

DnnNode &DnnNode::finalize() {
  library.check(tryFinalize(), whose, "cudnnBackendFinalize of " + what);
  return *this;
}

std::vector<int64_t> DnnNode::integers(Attribute attribute, int64_t room) const {
  std::vector<int64_t> values(static_cast<size_t>(room));
  int64_t count = 0;
  library.check(library.descriptorGet(descriptor, static_cast<int>(attribute), static_cast<int>(Type::Int64), room,
                                      &count, values.data()),
                whose, "attribute " + std::to_string(static_cast<int>(attribute)) + " of " + what);
  values.resize(static_cast<size_t>(std::min(count, room)));
  return values;
}

std::vector<int> DnnNode::members(Attribute attribute, Type type, int64_t room) const {
  std::vector<int> values(static_cast<size_t>(room));
  int64_t count = 0;
  library.check(library.descriptorGet(descriptor, static_cast<int>(attribute), static_cast<int>(type), room, &count,
                                      values.data()),
                whose, "attribute " + std::to_string(static_cast<int>(attribute)) + " of " + what);
  values.resize(static_cast<size_t>(std::min(count, room)));
  return values;
}

std::vector<std::unique_ptr<DnnNode>> DnnNode::others(Attribute attribute, Kind kind, int64_t room) const {
  // The library writes into descriptors that the caller has made.
  std::vector<std::unique_ptr<DnnNode>> nodes;
  std::vector<DnnDescriptor> handles;
  for (int64_t i = 0; i < room; ++i) {
    nodes.push_back(std::make_unique<DnnNode>(library, kind, whose, what));
    handles.push_back(*nodes.back());
  }
  int64_t count = 0;
  library.check(library.descriptorGet(descriptor, static_cast<int>(attribute), static_cast<int>(Type::Descriptor), room,
                                      &count, handles.data()),
                whose, "attribute " + std::to_string(static_cast<int>(attribute)) + " of " + what);
  nodes.resize(static_cast<size_t>(std::min(count, room)));
  return nodes;
}

const DnnNode &DnnGraph::tensor(const DnnTensor &tensor, const std::string &name) {
  std::vector<int64_t> strides = tensor.strides;
  if (strides.empty()) {
    strides.assign(tensor.dims.size(), 1);
    for (size_t dim = strides.size(); dim-- > 1;)
      strides[dim - 1] = strides[dim] * tensor.dims[dim];
  }
  DnnNode &node = this->node(Kind::Tensor, "the tensor " + name);
  node.set(Attribute::TensorDataType, Type::DataType, tensor.type)
      .set(Attribute::TensorDims, tensor.dims)
      .set(Attribute::TensorStrides, strides)
      .set(Attribute::TensorId, tensor.id)
      .set(Attribute::TensorAlignment, tensor.alignment);
  if (tensor.isVirtual)
    node.set(Attribute::TensorVirtual, true);
  if (tensor.byValue)
    node.set(Attribute::TensorByValue, true);
  return node.finalize();
}

DnnNode &DnnGraph::node(Kind kind, const std::string &name) { return nodes.emplace_back(dnn, kind, whose, name); }

DnnNode &DnnGraph::operation(Kind kind, const std::string &name) {
  DnnNode &made = node(kind, name);
  operations.push_back(made);
  return made;
}

void DnnGraph::finalize() {
  graph = std::make_unique<DnnNode>(dnn, Kind::Graph, whose, "the operation graph");
  if (dnn.handle)
    graph->set(Attribute::GraphHandle, dnn.handle, Type::Handle);
  graph->set(Attribute::GraphOperations, operations).finalize();
}

} // namespace par::cuda
