// Parts of a plan that annotations give: the mesh from lists of devices, and cuts from stages.
#pragma once

#include "DeviceReader.h"

#include <string>
#include <vector>

namespace par {

/// Errors about the annotations of a model. Each returns false.
struct Refusals {
  const onnx::Model &graph;
  DiagnosticSink sink;

  bool error(const llvm::Twine &message) const;
  bool errorAt(size_t node, const llvm::Twine &message) const {
    return error(nameOfNode(graph, node) + ": " + message);
  }
};

/// The mesh that names of devices say, or the finest one that the lists of devices have. Nothing, after errors, if
/// there is none.
std::optional<DeviceMesh> findMesh(const ReadDevices &read, const Refusals &refusals);

/// The patterns that start the stages after the first, in quotes. Nothing, after errors, if some stage has none.
std::optional<std::vector<std::string>> findCuts(const Model &model, const ReadDevices &read, const Refusals &refusals);

/// A pattern in double quotes, in which YAML reads backslashes. A pattern has no quotes.
std::string inQuotes(llvm::StringRef pattern);

/// Whether a pattern means what it should and nothing else; else why not. Names come from the file, and hold anything.
bool means(llvm::StringRef pattern, const NameTable &names, llvm::function_ref<bool(const PatternMatches &)> isMeant,
           std::string &why);

} // namespace par
