// A model's file, and a plan completed for it: the input of `compile`.
#pragma once

#include "par/Base/Hardware.h"
#include "par/Compiler/CompileDiagnostic.h"
#include "par/Phases/Annotate/Passes.h"
#include "par/Phases/Import/Import.h"
#include "par/Plugin/Plugin.h"
#include "par/format/Manifest.h"

namespace par {

/// A model's file, and its names that a plan can use.
struct Model {
  onnx::Model graph;
  NameTable names;
};

/// Reads a model's file. Null after an error; a warning names files of external data that are not there.
std::shared_ptr<const Model> readModel(const std::string &path, DiagnosticSink sink);

/// A plan as a user gives it: files from left to right, then KEY=VALUE settings. It may use what plugins add.
struct PlanText {
  std::vector<std::string> files, settings;
  Plugins plugins = {};
  /// Layers over the files and below the settings that are in no file: name and text.
  std::vector<std::pair<std::string, std::string>> texts = {};
};

/// A plan that is completed for a model.
struct PlannedModel {
  std::shared_ptr<const onnx::Model> graph; ///< the model's, with the parameters tied that the plan ties
  ModelPlan plan;
  ImportOptions importing;
  Hardware hardware;
  Plugins plugins;
  /// Places in the model's files of parameters that the plan ties to another one, by that one.
  std::map<std::string, std::vector<format::Source>> tiedCopies;

  /// The entry of the bundle that the summary is about: `train`, or `predict` of a plan that does not train.
  llvm::StringRef entry() const { return plan.plan.train ? "train" : "predict"; }
  /// Bytes that a rank may use: the plan's limit, else the device's memory.
  std::optional<uint64_t> memoryLimit() const;
  /// Bytes of a rank that recomputation is to reach: the limit, under `{memory: size}` at most that size; nothing in
  /// modes without a budget.
  std::optional<uint64_t> recomputeLimit() const;
};

/// A finding at the place of a plan's value; at the model where the value was derived, at "plan" without a model.
CompileDiagnostic diagnosticAt(const Origin &where, llvm::StringRef modelPath);

struct PlanningOptions {
  bool nameAllLost = false; ///< errors about lost parameters name all of them, not only the first three
};

/// Reads the plan, completes it and compares it with the names of the model; reports all errors. `model` may be null:
/// values that depend on it then stay open. Returns nothing after an error.
std::optional<PlannedModel> planModel(const std::shared_ptr<const Model> &model, const PlanText &text,
                                      const PlanningOptions &options, DiagnosticSink sink);

} // namespace par
