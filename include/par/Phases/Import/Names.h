// The names of a model that a plan can write.
#pragma once

#include "par/Onnx/Model.h"
#include "par/Plan/Names/NameTable.h"

namespace par {

/// Parameters with all their names, modules, nodes, inputs, outputs and symbolic dims, read only from the file. A
/// parameter's `name` is its initializer's, which is also its variable's.
NameTable collectNames(const onnx::Model &model);

/// That the exporter lost parameters, so that the model does not train as its module does.
struct LostMessage {
  std::string message;
  std::vector<std::string> notes;
};
/// Nothing where none was lost. `all`: names every one, not the first three.
std::optional<LostMessage> describeLost(const onnx::Model &model, bool all);

} // namespace par
