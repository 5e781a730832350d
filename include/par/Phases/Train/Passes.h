// From a forward step to a training step.
#pragma once

#include "par/Plan/Names/NameTable.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <optional>
#include <string>
#include <vector>

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Train/Passes.h.inc"

/// Training options of a plan. Numbers mean what they mean in PyTorch's optimizers of the same name.
struct TrainOptions {
  /// Settings of one parameter that differ from the common ones.
  struct Parameter {
    std::string name; ///< of its variable
    std::optional<double> lrScale, weightDecay;
    std::string kind;    ///< empty: as all others
    bool sparse = false; ///< its gradient is kept as looked-up rows
    std::vector<std::pair<std::string, double>>
        settings; ///< in addition to the common ones, or to another kind's defaults
  };
  std::string kind = "sgd";                             ///< of optimizerKinds
  double lr = 0.001;                                    ///< value of @lr until the host sets it
  std::vector<std::pair<std::string, double>> settings; ///< attributes of the updates, other than their defaults
  double weightDecay = 0;
  std::vector<Parameter> parameters;
  std::optional<double> clip;    ///< maximum norm of all gradients together
  bool clipsValues = false;      ///< largest element of each instead
  std::string compute = "f32";   ///< f32, bf16 or fp16: of matmuls and activations
  std::string states = "f32";    ///< f32 or bf16: of the optimizer's states between steps
  std::vector<std::string> keep; ///< parameters that stay f32 if `compute` is narrow
  bool widens = false;           ///< some trained parameter is bf16 or fp16 in the file, and its master f32
  /// Least elements of parameters that `zero` spreads: what a step needs of them is rounded first. None: stay as they
  /// are.
  std::optional<int64_t> rounds;
  std::string device = "cpu";  ///< on which attention is one op: of narrow formats on cuda, of f32 on a cpu
  bool fusesAttention = true;  ///< where it can be one op
  double lossScale = 0;        ///< factor on the loss before the first step; 0: none
  bool norm = true;            ///< the step returns the norm of all gradients
  int64_t lossScaleGrowth = 0; ///< good steps until it doubles; 0: it stays
  bool skipsNan = false;       ///< a step whose loss or gradient is not finite updates nothing
  /// Averages of the trained weights: the share that a step keeps. None: there are none.
  std::optional<double> averageDecay;
  bool averageWarmup = false, averageEvaluated = false; ///< see PlanAverages
};

/// The training options of a completed plan for the model of those names; of two groups that match a parameter the
/// later one wins, key by key. Errors if a pattern matches no parameter, or if a group has a learning rate of its own
/// but the schedule has no peak. A plan without `train` gives the defaults.
TrainOptions trainOptions(const Plan &plan, const NameTable &names, PlanErrors &errors);

/// The phase without a backward part, for an inference bundle: the number formats.
void buildPrecisionPipeline(mlir::OpPassManager &manager, const TrainOptions &options);

/// The phase: passes and gate.
void buildTrainPipeline(mlir::OpPassManager &manager, const TrainOptions &options);
/// `par-opt --par-train`.
void registerTrainPipeline();

#define GEN_PASS_REGISTRATION
#include "par/Phases/Train/Passes.h.inc"

} // namespace par
