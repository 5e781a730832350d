#pragma once

#include "par/Base/Tensor.h"
#include "par/Dialect/Par.h"

#include <map>
#include <optional>
#include <string>

namespace par::interp {

using Named = std::map<std::string, Tensor>;

/// What one call of a step gave. Whole tensors throughout, whatever the sharding.
struct Outcome {
  Named outputs; ///< by the step's output names, else "0", "1", ...
  Named written; ///< new values of variables; a copy under its own name
  /// Gradients by variable: par.gradient's values, a loop's results by their labels, or what programs store last in
  /// the buffers that say so. Summands of a tied parameter's gradient are added up.
  Named accumulators;
};

/// Runs a step of any form between Import and Schedule: on one device, or fragments on all ranks of their
/// stage in lock step once they are local. `variables` and `inputs` are whole: an input of the batch (B, ...)
/// is taken for one of (m, B/m, ...) too. A variable that is missing takes its `value`, a copy its owner's,
/// else zeros. Padding is filled with NaN (floats) and a far index (integers); where that reaches a result,
/// or replicas disagree, the error is at the op.
/// Of several calls (par/Dialect/Calls.h) inputs and outputs stand one behind the other, and a gradient is the last
/// call's.
mlir::FailureOr<Outcome> runStep(StepOp step, const Named &variables, const Named &inputs, int64_t calls = 1);

/// Runs an entry of all programs of a module (after Schedule): each role's ranks in lock step, roles against
/// each other with rendezvous and one communication at a time. Fails with an error where roles wait for each
/// other for ever, a send and its receive do not fit, or a slot is read that holds something else.
mlir::FailureOr<Outcome> runPrograms(mlir::ModuleOp module, llvm::StringRef entry, const Named &variables,
                                     const Named &inputs);

/// A step or, where there is none of that name, the entry of the programs.
mlir::FailureOr<Outcome> runEntry(mlir::ModuleOp module, llvm::StringRef name, const Named &variables,
                                  const Named &inputs);

/// Value of a variable before the first step: of `variables`, else its own.
Tensor initialValue(VariableOp variable, const Named &variables);

/// The first elements of a tensor, under another type; what that has more is poisoned.
Tensor seeAs(const Tensor &tensor, mlir::RankedTensorType type);

/// Shards of a whole tensor, one a member rank of the mesh; padding poisoned. Of an unreduced float the
/// members of a group hold 1/2, 1/4, ... of the value, so that only what is linear may work on them; of an
/// unreduced integer the first holds all.
llvm::SmallVector<Tensor> distribute(const Tensor &whole, ShardingAttr sharding, MeshAttr mesh);

/// The whole of what the ranks hold. Fails with an error at `at` where replicas disagree or padding has
/// leaked.
mlir::FailureOr<Tensor> collect(mlir::Operation *at, llvm::ArrayRef<Tensor> shards, mlir::RankedTensorType whole,
                                ShardingAttr sharding, MeshAttr mesh);

/// Runs the ops of a block on all `ranks` in lock step; values[rank][...] maps block arguments and results.
/// One rank and a null mesh: one device. The terminator is not run.
using RankValues = llvm::DenseMap<mlir::Value, Tensor>;
mlir::LogicalResult runBlock(mlir::Block &block, llvm::MutableArrayRef<RankValues> values, MeshAttr mesh);
mlir::LogicalResult runOp(mlir::Operation &op, llvm::MutableArrayRef<RankValues> values, MeshAttr mesh);

/// Deterministic small values for variables and inputs of a module's steps: floats uniform in [-1, 1),
/// integers within what indexes them (the tables they address, the classes they label).
Named makeInputs(StepOp step, uint64_t seed);
Named makeInputs(mlir::ModuleOp module, llvm::StringRef entry, uint64_t seed);
Named makeVariables(mlir::ModuleOp module, uint64_t seed);

/// The size of the smallest dim that integers of this value, or others made of them, are indices of; nothing if they
/// are of none.
std::optional<int64_t> indexLimit(mlir::Value value);

/// The arrays of a safetensors file (F32, F64, I32, I64, BOOL), by name. Where it cannot be read, `reason` says why,
/// to follow the file's name.
std::optional<Named> readValues(llvm::StringRef file, mlir::MLIRContext *context, std::string &reason);

/// Names of the module's steps, or of its programs' entries.
llvm::SmallVector<llvm::StringRef> entryNames(mlir::ModuleOp module);

/// Holds what entries compute after each phase against what they computed when they were first seen: outputs,
/// accumulators and written variables, on the same random inputs. Each difference above `tolerance` of the tensor's
/// largest element is an error.
class PhaseCheck {
public:
  explicit PhaseCheck(uint64_t seed, double tolerance = 1e-9) : seed(seed), tolerance(tolerance) {}

  /// Interprets every entry of the module once; new ones are what later modules are held against.
  mlir::LogicalResult check(mlir::ModuleOp module);

  /// Tensors that the last module was held against, over all entries.
  struct Counts {
    size_t outputs = 0, gradients = 0, variables = 0;
  };
  const Counts &counts() const { return compared; }

private:
  struct Entry {
    Named inputs;
    Outcome outcome;
    int64_t calls = 1; ///< of a step
  };
  uint64_t seed;
  double tolerance;
  std::map<std::string, Entry> entries;
  Counts compared;
};

/// Two forms of the same entries, with a check of their own.
mlir::LogicalResult comparePhases(mlir::ModuleOp before, mlir::ModuleOp after, uint64_t seed, double tolerance = 1e-9);

} // namespace par::interp
