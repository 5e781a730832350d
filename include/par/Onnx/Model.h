// A neutral picture of an ONNX file. Its reader uses protobuf and exceptions; this header shows neither, so that
// compiler code (built without exceptions) can include it.
#pragma once

#include "par/Onnx/Devices.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace par::onnx {

/// Element types by ONNX's own numbers (TensorProto.DataType).
enum class ElementType : int32_t {
  Undefined = 0,
  F32 = 1,
  U8 = 2,
  I8 = 3,
  U16 = 4,
  I16 = 5,
  I32 = 6,
  I64 = 7,
  String = 8,
  Bool = 9,
  F16 = 10,
  F64 = 11,
  U32 = 12,
  U64 = 13,
  BF16 = 16,
};

/// Size in bytes of one element; 0 for types without a fixed size here (strings, complex, below 8 bits).
unsigned byteSize(ElementType type);
/// `f32`, `i64`, ... as Par's messages write it; `type 17` for numbers without a name here.
std::string spell(ElementType type);
bool isFloat(ElementType type);
/// Integers without a sign.
bool isUnsigned(ElementType type);

/// The place of a tensor's bytes. All data is little-endian, row-major and contiguous.
enum class Storage {
  Inline,   ///< in `bytes`
  InModel,  ///< in the model file (uncompressed content) at `offset`
  External, ///< in another file, `file`, at `offset`
  Absent,   ///< named as external data, but there is no such file: a structure-only model
};

struct Tensor {
  std::string name;
  ElementType type = ElementType::Undefined;
  std::vector<int64_t> dims;
  Storage storage = Storage::Inline;
  std::string bytes;   ///< Storage::Inline
  std::string file;    ///< Storage::External and Absent: as written in the model, relative to its folder
  uint64_t offset = 0; ///< in bytes
  uint64_t length = 0; ///< in bytes; always elements() * byteSize(type)

  int64_t elements() const;
};

/// One dim of a declared shape: a size, or a symbol such as `batch` or `seq + 1`, or neither (unknown).
struct Dim {
  int64_t size = -1;
  std::string symbol;
};

/// Free text pairs that exporters leave on models, graphs, nodes and values.
using Metadata = std::vector<std::pair<std::string, std::string>>;
std::string_view lookup(const Metadata &metadata, std::string_view key);

struct ValueInfo {
  std::string name;
  ElementType type = ElementType::Undefined;
  bool isTensor = false;                       ///< sequences, maps and optionals are not
  bool isSequence = false, isOptional = false; ///< of tensors of `type`; an optional sequence is both
  bool hasShape = false;
  std::vector<Dim> shape;
  std::string doc;
  Metadata metadata;
};

struct Graph;

struct Attribute {
  enum Kind { Float, Int, String, TensorValue, GraphValue, Floats, Ints, Strings, Other };
  std::string name;
  Kind kind = Other;
  double f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::optional<Tensor> tensor;
  std::shared_ptr<const Graph> graph; ///< body of an If, Loop or Scan
  bool isReference = false;           ///< stands for the attribute `s` of the enclosing function
};

struct Node {
  std::string name;
  std::string domain; ///< "" is ONNX's own (also written `ai.onnx`)
  std::string opType;
  std::string overload;                     ///< which of several functions of its domain and name it stands for
  std::vector<std::string> inputs, outputs; ///< "" is an input left out
  std::vector<Attribute> attributes;
  std::string torchOp;    ///< what the exporter made the node of, `aten.detach.default`; "" if unknown
  std::string modulePath; ///< `transformer.h.0.mlp`; "" at the top or where the exporter kept none
  std::string sourceFile; ///< innermost line of the model's own source; "" if unknown
  int64_t sourceLine = 0;
  std::vector<NodeDevices> devices; ///< one for each configuration that the node is annotated for

  const Attribute *attribute(std::string_view name) const;
  int64_t intAttribute(std::string_view name, int64_t otherwise) const;
  double floatAttribute(std::string_view name, double otherwise) const;
  std::string_view stringAttribute(std::string_view name, std::string_view otherwise) const;
};

/// The body of a node that has one. It sees the values of the graph around it.
struct Graph {
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs;
};

/// An output of the graph that is the next value of a buffer, which forward writes (par.export).
struct BufferUpdate {
  std::string output, buffer;
};

/// A function of the model: the body of nodes with its name and domain. It sees only its own values.
struct Function {
  std::string domain, name, overload;
  int64_t opset = 0; ///< of ONNX's own domain
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> defaults; ///< of attributes that the node need not have
  std::vector<Node> nodes;
};

/// A line of the exporter's graph signature: `p_lm_head_weight: PARAMETER target='lm_head.weight'`.
struct SignatureEntry {
  std::string name, kind, target;
};

/// Bytes of the model file, kept mapped (or inflated) for as long as the model lives.
class FileBytes;

struct Model {
  std::string path;
  bool compressed = false; ///< read through gzip: offsets count in the inflated bytes
  int64_t irVersion = 0;
  int64_t opset = 0; ///< of ONNX's own domain
  std::vector<std::pair<std::string, int64_t>> opsets;
  std::string producer;
  Metadata metadata, graphMetadata;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs;      ///< without those that an initializer gives a value
  std::vector<ValueInfo> initialized; ///< these
  std::vector<ValueInfo> outputs;     ///< without those that are a buffer's next value
  std::vector<BufferUpdate> updates;
  std::vector<ValueInfo> valueInfo;
  std::vector<SignatureEntry> signature;
  std::vector<Function> functions;
  std::vector<DeviceConfiguration> configurations;
  std::shared_ptr<const FileBytes> bytes;
};

inline constexpr uint64_t twoGiB = uint64_t(1) << 31;

/// Reads `.onnx` or `.onnx.gz`. On failure returns nothing and sets `error` to a lower-case sentence without the path.
/// Accepts IR versions 3 to 13 and opsets 1 to 27 of ONNX's own domain, or none of it. Any bytes are survived; fewer
/// than `limit` are read, and protobuf takes fewer than 2 GiB.
std::optional<Model> readModel(const std::string &path, std::string &error, uint64_t limit = twoGiB);

/// Identity of a model's file.
struct FileFacts {
  uint64_t size;
  std::string sha256; ///< 64 lower-case hex digits
};

/// Facts of the file that was read, even if another file has its name by now. Returns nothing and sets `error` if the
/// file has become shorter.
std::optional<FileFacts> factsOfFile(const Model &model, std::string &error);

/// Reads a file of test data for `info`, with the bytes inline: one tensor, a sequence's tensors, an optional's one or
/// none.
std::optional<std::vector<Tensor>> readDataFile(const std::string &path, const ValueInfo &info, std::string &error);

/// Path of a file of external data that the model names; "" where there is none inside the folder of model or link.
std::string pathOfData(const std::string &modelPath, const std::string &file);

/// The bytes of one tensor (`tensor.length` many); nothing and `error` if they are absent or cannot be read.
std::optional<std::string> readTensor(const Model &model, const Tensor &tensor, std::string &error);

} // namespace par::onnx
