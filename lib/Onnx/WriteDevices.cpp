// Writes a model's file again with other multi-device annotations: parsed and serialised, so that all else, fields that
// this protobuf does not know included, stays as it is. Data in other files stay there.
#include "ConvertDevices.h"
#include "FileBytes.h"
#include "onnx-ml.pb.h"
#include "par/Onnx/Model.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace par::onnx {
namespace {

namespace fs = std::filesystem;

/// IR version that has the annotations.
constexpr int64_t firstIr = 11;

/// Data in other files are found from the folder of the model.
void checkFolder(const Model &model, const std::string &path) {
  std::error_code error;
  fs::path from = fs::absolute(model.path, error).parent_path(), to = fs::absolute(path, error).parent_path();
  if (fs::equivalent(from, to, error))
    return;
  for (const Tensor &tensor : model.initializers)
    if (tensor.storage == Storage::External)
      throw std::runtime_error("the weights of the model are in \"" + tensor.file + "\" in its folder, \"" +
                               (from.string().empty() ? "." : from.string()) +
                               "\", and are found from there; write the annotated model into that folder (-o)");
}

void annotate(::onnx::ModelProto &proto, const DeviceConfiguration &configuration,
              const std::vector<std::optional<NodeDevices>> &nodes) {
  proto.set_ir_version(std::max<int64_t>(proto.ir_version(), firstIr));
  proto.clear_configuration();
  convertConfiguration(configuration, *proto.add_configuration());
  for (int i = 0; i < proto.graph().node_size(); ++i) {
    ::onnx::NodeProto &node = *proto.mutable_graph()->mutable_node(i);
    node.clear_device_configurations();
    if (size_t(i) < nodes.size() && nodes[i])
      convertDevices(*nodes[i], *node.add_device_configurations());
  }
}

void writeWhole(const std::string &path, const std::string &bytes) {
  // Beside and renamed: a model that was being read, or an older file, is never left half written.
  std::string beside = path + ".part";
  {
    std::ofstream out(beside, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), std::streamsize(bytes.size()));
    out.close();
    if (!out) {
      std::string reason = std::strerror(errno);
      std::error_code ignored;
      fs::remove(beside, ignored);
      throw std::runtime_error("cannot be written: " + reason);
    }
  }
  std::error_code error;
  fs::rename(beside, path, error);
  if (error)
    throw std::runtime_error("cannot be written: " + error.message());
}

} // namespace

std::string writeDevices(const Model &model, const DeviceConfiguration &configuration,
                         const std::vector<std::optional<NodeDevices>> &nodes, const std::string &path) {
  try {
    checkFolder(model, path);
    std::string_view view = model.bytes->view();
    ::onnx::ModelProto proto;
    if (!proto.ParseFromArray(view.data(), int(view.size())))
      throw std::runtime_error("the model changed while it was read");
    model.bytes->checkWhole();
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
