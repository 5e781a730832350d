// Reads an ONNX file into the neutral model: protobuf to structs, inline and external data with checked sizes, versions
// and names. Every malformed field is an error with its place.
#include "ConvertDevices.h"
#include "FileBytes.h"
#include "Provenance.h"
#include "Wire.h"
#include "onnx-data.pb.h"
#include "onnx-ml.pb.h"
#include "par/Onnx/Model.h"
#include "par/format/Printable.h"
#include "par/format/Sha256.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace par::onnx {
namespace {

/// An attribute's external data is kept in memory up to this size.
constexpr uint64_t maxAttributeBytes = 64 << 20;
/// As in numpy: one loop is made per dim, and errors print all of them.
constexpr int maxDims = 64;
constexpr int64_t oldestIr = 3, newestIr = 13, oldestOpset = 1, newestOpset = 27;

[[noreturn]] void fail(const std::string &message) { throw std::runtime_error(message); }

Metadata convert(const google::protobuf::RepeatedPtrField<::onnx::StringStringEntryProto> &entries) {
  Metadata result;
  for (const auto &entry : entries)
    result.emplace_back(entry.key(), entry.value());
  return result;
}

void checkRank(const char *what, const std::string &name, int dims) {
  if (dims > maxDims)
    fail(std::string(what) + " \"" + name + "\" has " + std::to_string(dims) + " dims, at most " +
         std::to_string(maxDims) + " are read");
}

/// Bytes that dims and type ask for; refuses negative dims and sizes that overflow.
uint64_t expectedBytes(const Tensor &tensor) {
  uint64_t count = 1;
  for (int64_t dim : tensor.dims) {
    if (dim < 0)
      fail("tensor \"" + tensor.name + "\" has the negative dim " + std::to_string(dim));
    if (__builtin_mul_overflow(count, std::max<uint64_t>(dim, 1), &count) || count > (uint64_t(1) << 46))
      fail("tensor \"" + tensor.name + "\" is larger than any memory");
  }
  return uint64_t(tensor.elements()) * byteSize(tensor.type);
}

template <class Wide, class Narrow>
void appendAs(std::string &bytes, Wide value) {
  Narrow narrow = static_cast<Narrow>(value);
  bytes.append(reinterpret_cast<const char *>(&narrow), sizeof narrow);
}

/// Fields of int32_data hold every type up to 32 bits, the 16-bit floats as their bits.
void appendInt32Data(std::string &bytes, unsigned width, int32_t value) {
  if (width == 1)
    appendAs<int32_t, int8_t>(bytes, value);
  else if (width == 2)
    appendAs<int32_t, int16_t>(bytes, value);
  else
    appendAs<int32_t, int32_t>(bytes, value);
}

std::string inlineBytes(const ::onnx::TensorProto &proto, const Tensor &tensor) {
  if (proto.has_raw_data())
    return proto.raw_data();
  std::string bytes;
  for (float value : proto.float_data())
    appendAs<float, float>(bytes, value);
  for (double value : proto.double_data())
    appendAs<double, double>(bytes, value);
  for (int64_t value : proto.int64_data())
    appendAs<int64_t, int64_t>(bytes, value);
  for (uint64_t value : proto.uint64_data())
    byteSize(tensor.type) == 4 ? appendAs<uint64_t, uint32_t>(bytes, value)
                               : appendAs<uint64_t, uint64_t>(bytes, value);
  for (int32_t value : proto.int32_data())
    appendInt32Data(bytes, byteSize(tensor.type), value);
  return bytes;
}

uint64_t parseNumber(const std::string &text, const std::string &tensor) {
  constexpr size_t maxDigits = 18; // stoull cannot overflow
  if (text.empty() || text.size() > maxDigits || text.find_first_not_of("0123456789") != std::string::npos)
    fail("external data of \"" + tensor + "\" has the offset or length \"" + text + "\"");
  return std::stoull(text);
}

void convertExternal(const ::onnx::TensorProto &proto, const std::string &modelPath, Tensor &tensor) {
  uint64_t length = tensor.length;
  for (const auto &entry : proto.external_data()) {
    if (entry.key() == "location")
      tensor.file = entry.value();
    else if (entry.key() == "offset")
      tensor.offset = parseNumber(entry.value(), tensor.name);
    else if (entry.key() == "length")
      length = parseNumber(entry.value(), tensor.name);
  }
  if (length != tensor.length)
    fail("external data of \"" + tensor.name + "\" is " + std::to_string(length) + " bytes, its shape takes " +
         std::to_string(tensor.length));
  auto isStrange = [](char c) { return c == '\\' || format::isControl(static_cast<unsigned char>(c)); };
  if (std::any_of(tensor.file.begin(), tensor.file.end(), isStrange))
    fail("external data of \"" + tensor.name + "\" are in \"" + format::printable(tensor.file) +
         "\"; the name of a file holds no backslash and no control character");
  std::string resolved = resolveExternal(modelPath, tensor.file);
  tensor.storage = resolved.empty() ? Storage::Absent : Storage::External;
  if (resolved.empty())
    return;
  uint64_t size = openExternal(resolved, tensor.file).size();
  if (tensor.offset > size || tensor.length > size - tensor.offset)
    fail("external data of \"" + tensor.name + "\" ends at " + std::to_string(tensor.offset + tensor.length) + ", \"" +
         tensor.file + "\" has " + std::to_string(size) + " bytes");
}

Tensor convert(const ::onnx::TensorProto &proto, const std::string &modelPath, const Payload *payload) {
  Tensor tensor;
  tensor.name = proto.name();
  tensor.type = static_cast<ElementType>(proto.data_type());
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  checkRank("tensor", tensor.name, proto.dims_size());
  tensor.length = expectedBytes(tensor);
  if (byteSize(tensor.type) == 0) {
    tensor.storage = Storage::Absent; // strings and narrow types: no op of ours reads them
    return tensor;
  }
  if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
    convertExternal(proto, modelPath, tensor);
    return tensor;
  }
  if (proto.has_segment())
    fail("tensor \"" + tensor.name + "\" is stored in segments, which is not supported");
  if (payload && payload->contiguous) {
    constexpr int floatData = 4, rawData = 9, doubleData = 10; // fields of TensorProto
    bool raw = payload->field == rawData;
    bool typed = (payload->field == floatData && tensor.type == ElementType::F32) ||
                 (payload->field == doubleData && tensor.type == ElementType::F64);
    if ((raw || typed) && payload->length == tensor.length) {
      tensor.storage = Storage::InModel;
      tensor.offset = payload->offset;
      return tensor;
    }
  }
  tensor.bytes = inlineBytes(proto, tensor);
  if (tensor.bytes.size() != tensor.length)
    fail("tensor \"" + tensor.name + "\" holds " + std::to_string(tensor.bytes.size()) + " bytes, its shape takes " +
         std::to_string(tensor.length));
  return tensor;
}

Graph convertBody(const ::onnx::GraphProto &proto, const std::string &modelPath);

Attribute convert(const ::onnx::AttributeProto &proto, const std::string &modelPath) {
  Attribute result;
  result.name = proto.name();
  result.isReference = !proto.ref_attr_name().empty();
  result.f = proto.f();
  result.i = proto.i();
  result.s = result.isReference ? proto.ref_attr_name() : proto.s();
  result.floats.assign(proto.floats().begin(), proto.floats().end());
  result.ints.assign(proto.ints().begin(), proto.ints().end());
  result.strings.assign(proto.strings().begin(), proto.strings().end());
  switch (proto.type()) {
  case ::onnx::AttributeProto::FLOAT:
    result.kind = Attribute::Float;
    break;
  case ::onnx::AttributeProto::INT:
    result.kind = Attribute::Int;
    break;
  case ::onnx::AttributeProto::STRING:
    result.kind = Attribute::String;
    break;
  case ::onnx::AttributeProto::FLOATS:
    result.kind = Attribute::Floats;
    break;
  case ::onnx::AttributeProto::INTS:
    result.kind = Attribute::Ints;
    break;
  case ::onnx::AttributeProto::STRINGS:
    result.kind = Attribute::Strings;
    break;
  case ::onnx::AttributeProto::TENSOR:
    result.kind = Attribute::TensorValue;
    result.tensor = convert(proto.t(), modelPath, nullptr);
    // Kept with the node, for folding; larger ones are read by no op.
    if (result.tensor->storage == Storage::External && result.tensor->length <= maxAttributeBytes) {
      result.tensor->bytes = readRange(resolveExternal(modelPath, result.tensor->file), result.tensor->file,
                                       result.tensor->offset, result.tensor->length);
      result.tensor->storage = Storage::Inline;
    }
    break;
  case ::onnx::AttributeProto::GRAPH:
    result.kind = Attribute::GraphValue;
    result.graph = std::make_shared<Graph>(convertBody(proto.g(), modelPath));
    break;
  default:
    result.kind = Attribute::Other;
    break;
  }
  return result;
}

Node convert(const ::onnx::NodeProto &proto, const std::string &modelPath) {
  Node node;
  node.name = format::printable(proto.name()); // for messages
  node.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
  node.opType = format::printable(proto.op_type());
  node.overload = proto.overload();
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  for (const auto &attribute : proto.attribute())
    node.attributes.push_back(convert(attribute, modelPath));
  Metadata metadata = convert(proto.metadata_props());
  readProvenance(metadata, node);
  for (const auto &devices : proto.device_configurations())
    node.devices.push_back(convertDevices(devices));
  return node;
}

ValueInfo convert(const ::onnx::ValueInfoProto &proto) {
  ValueInfo info;
  info.name = proto.name();
  info.doc = proto.doc_string();
  info.metadata = convert(proto.metadata_props());
  const ::onnx::TypeProto *held = &proto.type();
  if (held->has_optional_type()) {
    info.isOptional = true;
    held = &held->optional_type().elem_type();
  }
  if (held->has_sequence_type()) {
    info.isSequence = true;
    held = &held->sequence_type().elem_type();
  }
  info.isTensor = held == &proto.type() && held->has_tensor_type();
  const auto &type = held->tensor_type();
  info.type = static_cast<ElementType>(type.elem_type());
  if (!info.isTensor)
    return info;
  info.hasShape = type.has_shape();
  checkRank("value", info.name, type.shape().dim_size());
  for (const auto &dim : type.shape().dim()) {
    Dim &converted = info.shape.emplace_back();
    if (dim.has_dim_value())
      converted.size = dim.dim_value();
    else
      converted.symbol = dim.dim_param();
    if (dim.has_dim_value() && dim.dim_value() < 0)
      fail("value \"" + info.name + "\" has the negative dim " + std::to_string(dim.dim_value()));
  }
  return info;
}

Graph convertBody(const ::onnx::GraphProto &proto, const std::string &modelPath) {
  Graph graph;
  for (const auto &tensor : proto.initializer())
    graph.initializers.push_back(convert(tensor, modelPath, nullptr));
  for (const auto &info : proto.input())
    graph.inputs.push_back(convert(info));
  for (const auto &info : proto.output())
    graph.outputs.push_back(convert(info));
  for (const auto &node : proto.node())
    graph.nodes.push_back(convert(node, modelPath));
  return graph;
}

Function convert(const ::onnx::FunctionProto &proto, const Model &model) {
  Function function{
      proto.domain() == "ai.onnx" ? "" : proto.domain(), proto.name(), proto.overload(), model.opset, {}, {}, {}, {}};
  for (const auto &opset : proto.opset_import())
    if (opset.domain().empty() || opset.domain() == "ai.onnx")
      function.opset = opset.version();
  function.inputs.assign(proto.input().begin(), proto.input().end());
  function.outputs.assign(proto.output().begin(), proto.output().end());
  for (const auto &attribute : proto.attribute_proto())
    function.defaults.push_back(convert(attribute, model.path));
  for (const auto &node : proto.node())
    function.nodes.push_back(convert(node, model.path));
  return function;
}

void checkVersions(const Model &model) {
  if (model.irVersion < oldestIr || model.irVersion > newestIr)
    fail("has IR version " + std::to_string(model.irVersion) + ", this par-compile reads " + std::to_string(oldestIr) +
         " to " + std::to_string(newestIr));
  bool none =
      std::none_of(model.opsets.begin(), model.opsets.end(), [](const auto &opset) { return opset.first.empty(); });
  if (none) // only domains other than ONNX's: the nodes say which
    return;
  if (model.opset < oldestOpset || model.opset > newestOpset)
    fail("has opset " + std::to_string(model.opset) + " of ai.onnx, this par-compile reads " +
         std::to_string(oldestOpset) + " to " + std::to_string(newestOpset));
}

void convertHeader(const ::onnx::ModelProto &proto, Model &model) {
  model.irVersion = proto.ir_version();
  model.producer = proto.producer_name();
  model.metadata = convert(proto.metadata_props());
  for (const auto &opset : proto.opset_import()) {
    std::string domain = opset.domain() == "ai.onnx" ? "" : opset.domain();
    for (const auto &[known, version] : model.opsets)
      if (known == domain && version != opset.version())
        fail("imports two opsets of " + (domain.empty() ? "ai.onnx" : domain) + ", " + std::to_string(version) +
             " and " + std::to_string(opset.version()));
    if (domain.empty())
      model.opset = opset.version();
    model.opsets.emplace_back(domain, opset.version());
  }
  for (const auto &function : proto.functions())
    model.functions.push_back(convert(function, model));
  for (const auto &configuration : proto.configuration())
    model.configurations.push_back(convertConfiguration(configuration));
}

/// Dims that the exporter left open without a name (as skl2onnx does) get one, by which a plan can speak of them: dim 0
/// is the batch, dim 1 of "image" image_dim1.
void nameOpenDims(std::vector<ValueInfo> &values) {
  for (ValueInfo &value : values)
    for (size_t i = 0; i < value.shape.size(); ++i) {
      Dim &dim = value.shape[i];
      if (dim.size >= 0 || !dim.symbol.empty())
        continue;
      dim.symbol = i == 0 ? "batch" : value.name + "_dim" + std::to_string(i);
      for (char &c : dim.symbol)
        c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
}

/// Names that go into the bundle, whose readers refuse control characters.
void checkName(const char *kind, const std::string &name) {
  if (std::any_of(name.begin(), name.end(), [](char c) { return format::isControl(static_cast<unsigned char>(c)); }))
    fail(std::string("the name of ") + kind + " \"" + format::printable(name) +
         "\" holds a control character; rename it");
}

void checkNames(const Model &model) {
  for (const Tensor &tensor : model.initializers)
    checkName("initializer", tensor.name);
  for (const std::vector<ValueInfo> *values : {&model.inputs, &model.outputs})
    for (const ValueInfo &value : *values) {
      checkName(values == &model.inputs ? "input" : "output", value.name);
      for (const Dim &dim : value.shape)
        checkName("dim", dim.symbol);
    }
}

void convertGraph(const ::onnx::GraphProto &graph, Model &model) {
  if (graph.sparse_initializer_size())
    fail("has sparse initializers, which are not supported");
  std::vector<Payload> payloads = locateInitializers(model.bytes->view());
  bool located = payloads.size() == size_t(graph.initializer_size());
  for (int i = 0; i < graph.initializer_size(); ++i)
    model.initializers.push_back(convert(graph.initializer(i), model.path, located ? &payloads[i] : nullptr));
  for (const auto &info : graph.input()) {
    bool initialized = false; // files below IR 4 list initializers among the inputs
    for (const Tensor &tensor : model.initializers)
      initialized |= tensor.name == info.name();
    (initialized ? model.initialized : model.inputs).push_back(convert(info));
  }
  for (const auto &info : graph.output()) {
    ValueInfo output = convert(info);
    if (std::string_view buffer = lookup(output.metadata, "par.updates"); !buffer.empty())
      model.updates.push_back({output.name, std::string(buffer)});
    else
      model.outputs.push_back(std::move(output));
  }
  checkNames(model);
  nameOpenDims(model.inputs);
  nameOpenDims(model.outputs);
  for (const auto &info : graph.value_info())
    model.valueInfo.push_back(convert(info));
  for (const auto &node : graph.node())
    model.nodes.push_back(convert(node, model.path));
  model.graphMetadata = convert(graph.metadata_props());
  model.signature = readSignature(lookup(model.graphMetadata, "pkg.torch.export.ExportedProgram.graph_signature"));
}

} // namespace

std::optional<Model> readModel(const std::string &path, std::string &error, uint64_t limit) {
  try {
    Model model;
    model.path = path;
    model.bytes = FileBytes::open(path, limit, model.compressed);
    std::string_view view = model.bytes->view();
    ::onnx::ModelProto proto;
    google::protobuf::LogSilencer quiet;
    if (!proto.ParseFromArray(view.data(), int(view.size())) || !proto.has_graph())
      fail(isCutShort(view) ? "is cut short: it begins as an ONNX model and ends within it; copy or export it again"
                            : "is not an ONNX model");
    convertHeader(proto, model);
    checkVersions(model);
    convertGraph(proto.graph(), model);
    model.bytes->checkWhole();
    return model;
  } catch (const std::exception &failure) {
    error = failure.what();
    return std::nullopt;
  }
}

std::optional<FileFacts> factsOfFile(const Model &model, std::string &error) {
  try {
    FileFacts facts{model.bytes->raw().size(), format::sha256(model.bytes->raw())};
    model.bytes->checkWhole();
    return facts;
  } catch (const std::exception &failure) {
    error = failure.what();
    return std::nullopt;
  }
}

std::optional<std::vector<Tensor>> readDataFile(const std::string &path, const ValueInfo &info, std::string &error) {
  try {
    bool compressed = false;
    std::shared_ptr<const FileBytes> bytes = FileBytes::open(path, twoGiB, compressed);
    google::protobuf::LogSilencer quiet;
    auto parse = [&](google::protobuf::MessageLite &message, const char *what) {
      if (!message.ParseFromArray(bytes->view().data(), int(bytes->view().size())))
        fail(std::string("is not ") + what);
    };
    ::onnx::OptionalProto optional;
    ::onnx::SequenceProto &sequence = *optional.mutable_sequence_value();
    ::onnx::TensorProto tensor;
    std::vector<Tensor> tensors;
    if (info.isOptional) {
      parse(optional, "an optional");
      if (optional.has_tensor_value())
        tensors.push_back(convert(optional.tensor_value(), path, nullptr));
    } else if (info.isSequence) {
      parse(sequence, "a sequence");
    } else {
      parse(tensor, "a tensor");
      tensors.push_back(convert(tensor, path, nullptr));
    }
    for (const ::onnx::TensorProto &element : optional.sequence_value().tensor_values())
      tensors.push_back(convert(element, path, nullptr));
    bytes->checkWhole();
    return tensors;
  } catch (const std::exception &failure) {
    error = failure.what();
    return std::nullopt;
  }
}

std::string pathOfData(const std::string &modelPath, const std::string &file) {
  try {
    return resolveExternal(modelPath, file);
  } catch (const std::exception &) {
    return "";
  }
}

std::optional<std::string> readTensor(const Model &model, const Tensor &tensor, std::string &error) {
  try {
    switch (tensor.storage) {
    case Storage::Inline:
      return tensor.bytes;
    case Storage::InModel: {
      std::string bytes(model.bytes->view().substr(tensor.offset, tensor.length));
      model.bytes->checkWhole();
      return bytes;
    }
    case Storage::External:
      return readRange(resolveExternal(model.path, tensor.file), tensor.file, tensor.offset, tensor.length);
    case Storage::Absent:
      break;
    }
    fail("the data of \"" + tensor.name + "\" is absent (\"" + tensor.file + "\")");
  } catch (const std::exception &failure) {
    error = failure.what();
    return std::nullopt;
  }
}

} // namespace par::onnx
