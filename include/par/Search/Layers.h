// The stack of equal layers in a model, and the model with fewer of them.
#pragma once

#include "par/Onnx/Model.h"

#include <map>
#include <set>

namespace par {

/// Layers in a row whose nodes, attributes, shapes and links are equal. Each reads values of itself, of the layer
/// before it and of none of the others; only the last one is read by what comes after.
///
///     wte, h.0, h.1, h.2, ..., h.47, ln_f   ->   h.1 to h.47 are equal: h.0 reads the embedding, not a layer
class LayerStack {
public:
  /// The stack that has most nodes, of at least two equal layers; nothing where there is none.
  static std::optional<LayerStack> find(const onnx::Model &model);

  int64_t size() const { return equal; }
  /// "transformer.h"
  const std::string &module() const { return prefix; }
  /// Layers of the module, those that are not equal too.
  int64_t all() const { return static_cast<int64_t>(nodes.size()); }
  /// The model, of whose equal layers only the first `kept` are left, from 1 on.
  onnx::Model keep(const onnx::Model &model, int64_t kept) const;

private:
  /// A value of a layer: the output of its node at this position.
  struct Place {
    int64_t layer;
    size_t position, output;
  };

  bool choosePrefix(const onnx::Model &model);
  void placeValues(const onnx::Model &model);
  /// Everything that a layer's cost depends on.
  std::string textOf(const onnx::Model &model, int64_t layer) const;
  std::string textOfInput(const std::string &value, int64_t layer) const;
  /// Whether a value of an equal layer but the last is read outside of the stack, or is an output of the model.
  bool leaks(const onnx::Model &model) const;

  std::string prefix;
  std::map<int64_t, std::vector<size_t>> nodes; ///< by layer, in file order
  std::map<std::string, Place> places;
  std::map<std::string, std::set<int64_t>> readers; ///< of initializers: layers; -1: outside of them
  std::map<std::string, std::string> weights;       ///< of initializers: type and dims
  int64_t first = 0, equal = 0;
};

} // namespace par
