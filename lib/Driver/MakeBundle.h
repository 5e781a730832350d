// From a module after Memory to the folder that is run.
#pragma once

#include "par/Phases/Annotate/Passes.h"
#include "par/Phases/Bundle/Bundle.h"

namespace par {
namespace onnx {
struct Model;
} // namespace onnx

/// What of the bundle has to be read off the module while it still holds steps: call it after Import.
struct StepFacts {
  std::map<std::string, InputLimits> inputLimits;
  std::optional<format::TextFeed> text;
  /// Inputs and outputs whose integers have no sign.
  std::set<std::string> unsignedValues;
  /// Outputs that the model has with the batch in another dim than 0.
  std::map<std::string, int64_t> outputBatchDims;
};
StepFacts collectFacts(mlir::ModuleOp module, const Plan &plan);

/// Everything of the options that plan, model file and module say. Fails where the model's file has become shorter
/// since it was read; `reason` then says so.
std::optional<BundleOptions> bundleOptions(const ModelPlan &model, const onnx::Model &read, const StepFacts &facts,
                                           std::string &reason);

/// Notes in the manifest what the files of data beside the model are, each in which a tensor has its source and that is
/// there. False where one cannot be read; `reason` then says which and why.
bool noteData(format::Manifest &manifest, llvm::StringRef model, std::string &reason);

} // namespace par
