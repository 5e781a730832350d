// Writes a model's file again with other multi-device annotations: parsed and serialised, so that all else, fields that
// this protobuf does not know included, stays as it is. Data in other files stay there.
#include "ConvertDevices.h"
#include "FileBytes.h"
#include "onnx-ml.pb.h"
#include "par/Onnx/Model.h"
#include "par/format/Printable.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <stdexcept>
#include <unistd.h>

namespace par::onnx {
namespace {

namespace fs = std::filesystem;

/// Calls `onNode` for each node and `onTensor` for each tensor of a graph, in bodies of nodes, too.
struct Walk {
  std::function<void(::onnx::NodeProto &)> onNode;
  std::function<void(const ::onnx::TensorProto &)> onTensor;

  void sparse(const ::onnx::SparseTensorProto &tensor) const {
    onTensor(tensor.values());
    onTensor(tensor.indices());
  }

  void attribute(::onnx::AttributeProto &attribute) const {
    onTensor(attribute.t());
    for (const auto &tensor : attribute.tensors())
      onTensor(tensor);
    sparse(attribute.sparse_tensor());
    for (const auto &tensor : attribute.sparse_tensors())
      sparse(tensor);
    if (attribute.has_g())
      graph(*attribute.mutable_g());
    for (auto &body : *attribute.mutable_graphs())
      graph(body);
  }

  void node(::onnx::NodeProto &node) const {
    onNode(node);
    for (auto &each : *node.mutable_attribute())
      attribute(each);
  }

  void graph(::onnx::GraphProto &graph) const {
    for (const auto &tensor : graph.initializer())
      onTensor(tensor);
    for (const auto &tensor : graph.sparse_initializer())
      sparse(tensor);
    for (auto &each : *graph.mutable_node())
      node(each);
  }

  void model(::onnx::ModelProto &model) const {
    graph(*model.mutable_graph());
    for (auto &training : *model.mutable_training_info()) {
      if (training.has_initialization())
        graph(*training.mutable_initialization());
      if (training.has_algorithm())
        graph(*training.mutable_algorithm());
    }
    for (auto &function : *model.mutable_functions()) {
      for (auto &each : *function.mutable_attribute_proto())
        attribute(each);
      for (auto &each : *function.mutable_node())
        node(each);
    }
  }
};

/// Data in other files are found from the folder of the model; if they are not there and the model is a link, from that
/// of the file that it leads to.
void checkFolder(::onnx::ModelProto &proto, const Model &model, const std::string &path) {
  std::error_code error;
  fs::path named = fs::absolute(model.path, error).parent_path();
  fs::path target = fs::canonical(model.path, error).parent_path(), to = fs::absolute(path, error).parent_path();
  auto check = [&](const ::onnx::TensorProto &tensor) {
    if (tensor.data_location() != ::onnx::TensorProto::EXTERNAL)
      return;
    std::string file;
    for (const auto &entry : tensor.external_data())
      if (entry.key() == "location")
        file = entry.value();
    bool isLinked = fs::is_symlink(model.path, error) && !fs::exists(named / file, error);
    const fs::path &from = isLinked ? target : named;
    if (!fs::equivalent(from, to, error))
      throw std::runtime_error("the weights of the model are in \"" + format::printable(file) + "\" in its folder, \"" +
                               from.string() +
                               "\", and are found from there; write the annotated model into that folder (-o)");
  };
  Walk{[](::onnx::NodeProto &) {}, check}.model(proto);
}

/// The file's own annotations go, also those of nodes in bodies and functions: their configurations do.
void annotate(::onnx::ModelProto &proto, const DeviceConfiguration &configuration,
              const std::vector<std::optional<NodeDevices>> &nodes) {
  proto.set_ir_version(std::max<int64_t>(proto.ir_version(), firstIrOfDevices));
  proto.clear_configuration();
  convertConfiguration(configuration, *proto.add_configuration());
  auto clear = [](::onnx::NodeProto &node) { node.clear_device_configurations(); };
  Walk{clear, [](const ::onnx::TensorProto &) {}}.model(proto);
  for (int i = 0; i < proto.graph().node_size() && size_t(i) < nodes.size(); ++i)
    if (nodes[i])
      convertDevices(*nodes[i], *proto.mutable_graph()->mutable_node(i)->add_device_configurations());
}

void writeWhole(const std::string &path, const std::string &bytes) {
  // Beside and renamed: a model that was being read, or an older file, is never left half written. Several processes,
  // of several machines where the folder is shared, may write the same file at once.
  std::string beside = path + "." + std::to_string(::getpid()) + "-" + std::to_string(std::random_device{}()) + ".part";
  std::string reason;
  {
    std::ofstream out(beside, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), std::streamsize(bytes.size()));
    out.close();
    if (!out)
      reason = std::strerror(errno);
  }
  std::error_code error;
  if (reason.empty())
    fs::rename(beside, path, error);
  if (error)
    reason = error.message();
  if (reason.empty())
    return;
  fs::remove(beside, error);
  throw std::runtime_error("cannot be written: " + reason);
}

} // namespace

std::string writeDevices(const Model &model, const DeviceConfiguration &configuration,
                         const std::vector<std::optional<NodeDevices>> &nodes, const std::string &path) {
  try {
    std::string_view view = model.bytes->view();
    ::onnx::ModelProto proto;
    if (!proto.ParseFromArray(view.data(), int(view.size())))
      throw std::runtime_error("the model changed while it was read");
    model.bytes->checkWhole();
    checkFolder(proto, model, path);
    annotate(proto, configuration, nodes);
    if (proto.ByteSizeLong() >= twoGiB)
      throw std::runtime_error("the annotated model would take 2 GiB, more than protobuf writes; keep its weights in "
                               "external data");
    writeWhole(path, proto.SerializeAsString());
    return "";
  } catch (const std::exception &failure) {
    return failure.what();
  }
}

} // namespace par::onnx
