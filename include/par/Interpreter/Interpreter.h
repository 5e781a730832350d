#pragma once

#include "par/Base/Tensor.h"
#include "par/Dialect/Par.h"

#include <map>
#include <optional>
#include <string>

namespace par::interp {

using Named = std::map<std::string, Tensor>;

/// The results of one call of a step: unsharded tensors, whatever the sharding.
struct Outcome {
  Named outputs; ///< by the step's output names, else "0", "1", ...
  Named written; ///< new values of variables; a copy under its own name
  /// Gradients by variable: par.gradient's values, a loop's results by their labels, or what programs store last in
  /// the buffers that say so. Summands of a tied parameter's gradient are added up.
  Named accumulators;
};

/// Runs a step of any form between Import and Schedule: on one device, or, once fragments are local, all ranks of their
/// stage in lock step. `variables` and `inputs` are unsharded; an input of the batch (B, ...) is accepted for one of
/// (m, B/m, ...). A missing variable takes its `value`, a copy its owner's, else zeros. Padding is filled with NaN
/// (floats) or an index out of range (integers). If padding reaches a result, or replicas disagree, the error is at the
/// op. With several calls (par/Dialect/Calls.h) inputs and outputs are concatenated, and a gradient is the last call's.
mlir::FailureOr<Outcome> runStep(StepOp step, const Named &variables, const Named &inputs, int64_t calls = 1);

/// Runs an entry of all programs of a module (after Schedule): each role's ranks in lock step, roles among each other
/// by rendezvous, one communication at a time. Fails with an error if roles deadlock, if a send and its receive do not
/// match, or if a slot that is read holds another value.
mlir::FailureOr<Outcome> runPrograms(mlir::ModuleOp module, llvm::StringRef entry, const Named &variables,
                                     const Named &inputs);

/// Runs the step of that name or, if there is none, the entry of the programs.
mlir::FailureOr<Outcome> runEntry(mlir::ModuleOp module, llvm::StringRef name, const Named &variables,
                                  const Named &inputs);

/// Value of a variable before the first step: of `variables`, else its own.
Tensor initialValue(VariableOp variable, const Named &variables);

/// The first elements of a tensor as another type; further elements of the type are poisoned.
Tensor seeAs(const Tensor &tensor, mlir::RankedTensorType type);

/// Shards of an unsharded tensor, one a member rank of the mesh; padding is poisoned. If the sharding is unreduced,
/// members of a group hold 1/2, 1/4, ... of a float, so that only linear ops may work on them, and the first holds all
/// of an integer.
llvm::SmallVector<Tensor> distribute(const Tensor &whole, ShardingAttr sharding, MeshAttr mesh);

/// Joins the shards of all ranks. Fails with an error at `at` if replicas disagree or padding has leaked.
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

/// The size of the smallest dim that integers of this value, or others computed from them, index; nothing if they index
/// none.
std::optional<int64_t> indexLimit(mlir::Value value);

/// The arrays of a safetensors file (F32, F64, I32, I64, BOOL), by name. If it cannot be read, `reason` says why; the
/// caller puts the file's name before it.
std::optional<Named> readValues(llvm::StringRef file, mlir::MLIRContext *context, std::string &reason);

/// Names of the module's steps, or of its programs' entries.
llvm::SmallVector<llvm::StringRef> entryNames(mlir::ModuleOp module);

/// Compares the results of entries after each phase with their first results: outputs, accumulators and written
/// variables, on the same random inputs. Each difference above `tolerance` of the tensor's largest element is an error.
class PhaseCheck {
public:
  explicit PhaseCheck(uint64_t seed, double tolerance = 1e-9) : seed(seed), tolerance(tolerance) {}

  /// Interprets every entry of the module once. The results of a new entry are the reference for later modules.
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

/// Compares two forms of the same entries.
mlir::LogicalResult comparePhases(mlir::ModuleOp before, mlir::ModuleOp after, uint64_t seed, double tolerance = 1e-9);

} // namespace par::interp
