// ONNX to a step on one device.
#pragma once

#include "par/Onnx/Model.h"
#include "par/Phases/Import/StaticTensor.h"
#include "par/Plan/Names/NameTable.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace par {

/// `train.loss` if the graph has none of its own (plan.md §1.3).
struct AttachedLoss {
  std::string kind;   ///< cross_entropy, mse, l1, bce
  std::string output; ///< "" is the only float output
  std::string labels = "labels";
  int64_t ignore = -100;
  double smoothing = 0;             ///< share of every label that is spread over all classes (cross_entropy)
  int64_t shift = 0;                ///< labels are this many positions ahead along dim 1
  std::vector<double> weights = {}; ///< of the classes (cross_entropy); empty: 1 each
  bool soft = false;                ///< labels are the shares of all classes (cross_entropy)
};

/// One tensor of a sequence or an optional.
struct HeldTensor {
  onnx::ElementType type;
  Shape shape;
};

/// Attribute of a step: names of its inputs and outputs whose integers are unsigned. The dialect's are signless;
/// Import's ops read the same bits.
inline constexpr llvm::StringLiteral unsignedNames = "par.unsigned";

struct ImportOptions {
  /// Sizes of symbolic dims.
  std::map<std::string, int64_t> dims;
  /// Samples of one optimizer step; binds the batch symbol. Absent: `dims` or the exported size.
  std::optional<int64_t> batch;
  /// Symbol that is the batch, if it is not dim 0 of the first input.
  std::optional<std::string> batchSymbol;
  /// Batch dim of an input, -1: it has none. Not given: the dim of the batch's symbol, else dim 0 if it is as large as
  /// the first input's.
  std::map<std::string, int64_t> batchDims;
  /// `zeros`, `ones`, `iota` or a number in place of data.
  std::map<std::string, std::string> values;
  /// Inputs whose elements are known now, as an initializer's are.
  std::map<std::string, StaticTensor> known;
  /// Values of an input that is no tensor: the tensors of a sequence, named NAME.0, NAME.1, ...; an optional's one or
  /// none.
  std::map<std::string, std::vector<HeldTensor>> held;
  /// Outputs that become inputs of the next call: the option of par-carry-state.
  std::vector<CarriedPair> carry;
  /// Sizes of symbolic dims in a second step, @prefill; none: there is no such step.
  std::map<std::string, int64_t> prefill;
  /// A loss is wanted: the step is @eval and returns only the loss. Otherwise @predict, with every output.
  bool train = false;
  std::optional<AttachedLoss> loss;
  /// Train the remaining parameters though the exporter lost some.
  bool allowLost = false;
  /// Name every parameter that was lost, not only the first three.
  bool nameAllLost = false;
  /// Groups of consecutive samples of a batch that have statistics of their own in batch norm (plan.md `batch_norm`).
  int64_t batchNormGroups = 1;
  /// The model is for inference: ops that act only in training are as after module.eval(), whatever mode it was
  /// exported in. Batch norm takes its moving statistics, and dropout drops nothing.
  bool serve = false;
  /// Seed of all random numbers: a default that the host may replace at run time.
  int64_t seed = 0;
};

/// Rewrites the graph so that each copy is computed from its owner: its initializer is gone, and a first node (Identity
/// or Transpose) computes it. Names are those of initializers.
void tieInModel(onnx::Model &model, llvm::ArrayRef<ParameterTie> ties);

/// Whether the file has different numbers for the copy and its owner; false if it does not have both.
bool holdsOtherNumbers(const onnx::Model &model, const ParameterTie &tie);

/// The import options of a completed plan; errors if a pattern of `inputs` matches no input.
ImportOptions importOptions(const Plan &plan, const NameTable &names, PlanErrors &errors);

/// Imports the main graph. Errors are emitted at a location in the model file (line 0) and name the ONNX node; the
/// result is verified. Variables are named by their initializers. `asked`, if given, receives the inputs whose elements
/// some node needed to know, so that a caller can pass them as `known` after a refusal.
mlir::OwningOpRef<mlir::ModuleOp> importModel(const onnx::Model &model, const ImportOptions &options,
                                              mlir::MLIRContext *context, std::set<std::string> *asked = nullptr);

/// The batch that the file fixes: size of dim 0 of its first input; nothing if that is symbolic.
std::optional<int64_t> exportedBatch(const onnx::Model &model);

/// The symbol of dim 0 of the first input, "" if it has a fixed size.
std::string batchSymbol(const onnx::Model &model);

/// True if the step slices the input `labels` from position 1 on along dim 1: such a model shifts its labels itself,
/// and is fed tokens t[i..i+T) as labels.
bool shiftsLabels(mlir::ModuleOp module, llvm::StringRef labels);

} // namespace par
