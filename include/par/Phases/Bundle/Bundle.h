// From programs after Memory and Codegen to the bundle that is run.
#pragma once

#include "par/Dialect/Par.h"
#include "par/Phases/Codegen/Codegen.h"
#include "par/format/Bundle.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace par {

/// Limits of an input's integers: runs over its elements in order, repeated to the end. Empty: no limits; nullopt:
/// limits exist, but cannot be followed.
using InputLimits = std::optional<std::vector<format::Limits>>;

/// Parts of a bundle that the module does not have.
struct BundleOptions {
  format::ModelFile model;
  /// The completed plan as text (plan.yaml), and the hash that ranks compare.
  std::string plan, planHash;
  std::optional<format::LrSchedule> lr;
  std::optional<format::TextFeed> text;
  /// Name of the axis that says which stage a rank is of, if there are several stages.
  std::string stageAxis = "stage";
  /// Rows of the whole batch.
  uint64_t batch = 1;
  uint64_t seed = 0;
  /// Predicted time of a step, nanoseconds; 0: none.
  uint64_t predictedNs = 0;
  /// Further names of tied parameters, by variable.
  std::map<std::string, std::vector<std::string>> aliases;
  /// Names under which weight files hold the transposed matrix, by variable.
  std::map<std::string, std::vector<std::string>> transposed;
  /// Further places of a tied variable in the model's files.
  std::map<std::string, std::vector<format::Source>> copies;
  /// By input; see collectInputLimits.
  std::map<std::string, InputLimits> inputLimits;
  /// Inputs and outputs whose integers have no sign.
  std::set<std::string> unsignedValues;
  /// Outputs that the model has with the batch in another dim than 0; the step returns it first.
  std::map<std::string, int64_t> outputBatchDims;
  /// Rules of `train.init` (zeros, ones, constant(c), normal(s), uniform(a)), by variable; others keep the
  /// one that the variable has.
  std::map<std::string, std::string> init;
};

/// The programs of a module as a bundle: one role for each `par.program`, in module order. `kernels` is Codegen's
/// result for the same module. Fails, with an error at the op, if the format cannot express the module. The bundle is
/// not verified; par::verify::verifyBundle does that.
mlir::FailureOr<format::Bundle> emitBundle(mlir::ModuleOp module, const CompiledKernels &kernels,
                                           const BundleOptions &options);

/// For every integer input of the steps: how many rows or classes its elements choose from, the fewest where
/// they choose twice. Call it before Split, where steps still hold tensor ops.
std::map<std::string, InputLimits> collectInputLimits(mlir::ModuleOp module);

} // namespace par
