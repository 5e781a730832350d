// Graphs of cuDNN: tensors and operations, an engine that computes them, a plan that is run. The maker of a descriptor
// closes (finalizes) it; its owner destroys it.
#pragma once

#include "par/cuda/dnn/Dnn.h"

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace par::cuda {

/// One descriptor. Failures of the library are thrown as core::Failure with its words.
class DnnNode {
public:
  /// `whose`: the begin of messages, 'kernel "conv1"'; `what`: "the tensor x".
  DnnNode(const Dnn &dnn, dnn::Kind kind, std::string whose, std::string what);
  DnnNode(const DnnNode &) = delete;
  ~DnnNode();

  operator DnnDescriptor() const { return descriptor; }

  DnnNode &set(dnn::Attribute attribute, std::span<const int64_t> values);
  DnnNode &set(dnn::Attribute attribute, int64_t value);
  DnnNode &set(dnn::Attribute attribute, bool value);
  DnnNode &set(dnn::Attribute attribute, float value);
  DnnNode &set(dnn::Attribute attribute, double value);
  /// Members of the library's enumerations: data types, modes.
  DnnNode &set(dnn::Attribute attribute, dnn::Type type, int member);
  DnnNode &set(dnn::Attribute attribute, const DnnNode &other);
  /// Descriptors; or handles and addresses, of that type.
  DnnNode &set(dnn::Attribute attribute, std::span<void *const> pointers, dnn::Type type = dnn::Type::Descriptor);
  DnnNode &set(dnn::Attribute attribute, void *pointer, dnn::Type type);
  /// Closes the descriptor, or throws.
  DnnNode &finalize();
  /// Closes the descriptor; the library's status.
  int tryFinalize();

  /// Values of a closed descriptor, at most `room`.
  std::vector<int64_t> integers(dnn::Attribute attribute, int64_t room) const;
  std::vector<int> members(dnn::Attribute attribute, dnn::Type type, int64_t room) const;
  /// Descriptors of that kind that a closed one has, at most `room`.
  std::vector<std::unique_ptr<DnnNode>> others(dnn::Attribute attribute, dnn::Kind kind, int64_t room) const;

private:
  DnnNode &put(dnn::Attribute attribute, dnn::Type type, int64_t count, const void *elements);

  const Dnn &library;
  std::string whose, what;
  DnnDescriptor descriptor = nullptr;
};

struct DnnTensor {
  int64_t id = 0; ///< unique in its graph; variant packs name it
  int type = dnn::dataF32;
  std::vector<int64_t> dims, strides; ///< strides in elements; none: dense, row-major
  int64_t alignment = 16;             ///< bytes that the address is a multiple of
  bool isVirtual = false;             ///< between operations, without memory
  bool byValue = false;               ///< a scalar in host memory
};

/// An engine with its knobs: small; other ranks may use one rank's choice on the same kind of GPU.
struct DnnChoice {
  int64_t engine = 0;
  std::vector<std::pair<int, int64_t>> knobs; ///< type, value
  /// Words without blanks and commas in between: "17,2:5,12:0".
  std::string text() const;
  /// Parses text(); nothing for other text.
  static std::optional<DnnChoice> read(const std::string &text);
};

/// Limits on an engine; every engine adds in f32 at least.
struct DnnLimits {
  uint64_t workspace = 0;   ///< bytes at most
  bool tensorCores = false; ///< may compute on tensor cores, which round f32 to TF32
};

/// A graph under construction, then closed. Owns the descriptors.
class DnnGraph {
public:
  DnnGraph(const Dnn &dnn, std::string whose) : dnn(dnn), whose(std::move(whose)) {}

  /// A closed tensor.
  const DnnNode &tensor(const DnnTensor &tensor, const std::string &name);
  /// A descriptor that operations refer to (not closed).
  DnnNode &node(dnn::Kind kind, const std::string &name);
  /// An operation of the graph, in order (not closed).
  DnnNode &operation(dnn::Kind kind, const std::string &name);
  /// Closes the graph itself, whose operations are closed.
  void finalize();
  const DnnNode &closed() const { return *graph; }

  /// The first engines of the heuristic's, at most so many, that keep to the limits, compute the same bits each time,
  /// and can be planned; where there is none, `why` counts the reasons: "3 are not deterministic, 1 needs 5 MB".
  std::vector<DnnChoice> propose(const DnnLimits &limits, size_t most, std::string *why) const;

  const Dnn &dnn;
  const std::string whose;

private:
  std::deque<DnnNode> nodes;
  std::vector<DnnDescriptor> operations;
  std::unique_ptr<DnnNode> graph;
};

/// An engine made ready for a graph.
class DnnPlan {
public:
  /// Throws core::Failure where the library refuses.
  DnnPlan(const DnnGraph &graph, const DnnChoice &choice);
  /// Bytes of memory of the GPU that run() wants.
  uint64_t workspace() const { return bytes; }
  /// `pointers` of the tensors `ids` that are not virtual; those by value are in host memory.
  void run(std::span<const int64_t> ids, std::span<void *const> pointers, void *workspace, Stream stream) const;

private:
  friend class DnnGraph;
  /// Without throwing: `plan` stays null where the library refuses.
  DnnPlan(const DnnGraph &graph, const DnnChoice &choice, int *status);
  int build(const DnnGraph &graph, const DnnChoice &choice);

  const Dnn &dnn;
  std::string whose;
  std::deque<DnnNode> parts;
  DnnNode *plan = nullptr;
  uint64_t bytes = 0;
};

} // namespace par::cuda
