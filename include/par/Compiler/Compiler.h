// The compiler as a function: a model and a plan to a bundle in memory, with everything that it found.
#pragma once

#include "par/Compiler/Model.h"
#include "par/Compiler/Phases.h"
#include "par/Phases/Bundle/Bundle.h"

namespace par {

/// Facts about a step that have to be read off the module while it holds steps: after Import.
struct StepFacts {
  std::map<std::string, InputLimits> inputLimits;
  std::optional<format::TextFeed> text;
  /// Inputs and outputs whose integers have no sign.
  std::set<std::string> unsignedValues;
  /// Outputs that the model has with the batch in another dim than 0.
  std::map<std::string, int64_t> outputBatchDims;
  /// By modelFlops, of one batch; 0 before Annotate.
  double modelFlops = 0;
};

/// A text of everything in the plan that the result of a phase depends on, beside the phases in front of it.
struct PhaseKey {
  std::string phase, text;
  bool operator==(const PhaseKey &) const = default;
};

struct CompilerOptions {
  /// Stop after this phase; empty: go on to the bundle.
  std::string until;
  /// Phases after which a copy of the module is kept in `Compiled::modules`: to look at, and for a later compilation to
  /// start from. The module of the last phase that ran is always there.
  std::vector<std::string> keep;
  bool hostCode = false;     ///< compile kernels for this host, also those formed for another device
  bool keepKernelIR = false; ///< of kernels for a GPU, for checkKernels
  std::string cache;         ///< folder that keeps kernels' code between compilations; empty: none does
};

/// The order of the mesh's axes that `mesh_order: auto` takes, and the predicted steps of a compilation for the first
/// order that fits, played in each.
struct RankOrderChoice {
  PlanAxes order;                   ///< outermost first
  size_t orders = 0, different = 0; ///< that fit the plan; of them those that differ in some group's units
  int64_t ns = 0;                   ///< of a batch in this order
  int64_t firstNs = 0;              ///< in the mesh's, or in the first that fits
  int64_t slowestNs = 0;            ///< of all
};

/// The size of buckets that `collectives.bucket: auto` takes, and predicted steps.
struct BucketChoice {
  uint64_t size = 0;
  size_t sizes = 0; ///< that were tried
  int64_t ns = 0;   ///< of a batch with this size
  int64_t defaultNs = 0;
};

/// The outcome of a compilation; also of one that failed, as far as it came.
struct Compiled {
  explicit Compiled(PlannedModel planned) : planned(std::move(planned)) {}
  Compiled(Compiled &&) = default;
  Compiled &operator=(Compiled &&) = delete; // would destroy the context before its modules

  PlannedModel planned;
  std::shared_ptr<mlir::MLIRContext> context; ///< shared with the compilation that this one started from
  mlir::OwningOpRef<mlir::ModuleOp> module;   ///< after the last phase that ran; null where Import failed
  std::map<std::string, mlir::OwningOpRef<mlir::ModuleOp>> modules; ///< after the phases of `keep`
  StepFacts facts;
  std::optional<RankOrderChoice> order; ///< only of mesh_order: auto
  std::optional<BucketChoice> bucket;   ///< only of collectives.bucket: auto
  RecomputeOutcomes recomputes;         ///< empty if nothing was to be recomputed
  CompiledKernels kernels;
  std::optional<onnx::FileFacts> file;     ///< of the model's file
  std::optional<format::Bundle> bundle;    ///< set if all went well and no phase was to be the last
  std::vector<CompileDiagnostic> findings; ///< in the order in which they were found
  bool failed = false;
  /// Number of phases, Import first, that were taken from the earlier compilation.
  unsigned reused = 0;
  std::vector<PhaseKey> keys; ///< of every phase, Import first
};

/// Observes a compilation: prints, measures, or does nothing.
class CompileObserver {
public:
  virtual ~CompileObserver() = default;
  /// A finding, as it is made.
  virtual void found(const CompileDiagnostic &) {}
  /// Before a step: "import", each phase, "codegen", "bundle". `phase` is null of those that are no pipeline.
  virtual void begins(const char * /*step*/, const Compiled &, const Phase * /*phase*/) {}
  /// Called after a step that succeeded. Return false to stop the compilation, after reporting an error.
  virtual bool ended(llvm::StringRef /*step*/, const Compiled &) { return true; }
};

/// Compiles in memory: writes no file, prints nothing, keeps nothing between calls.
///
/// With `earlier`, a compilation of the same model, the phases before the first one for which the plans differ are
/// skipped if it kept their module, and code of kernels that both have is reused:
///
///     keep {split}, plan A           import annotate train split propagate ... bundle
///     zero.level=3 on top of A                                   propagate ... bundle
///
/// The bundle is the same, byte for byte, as without `earlier`. Both share a context: only one thread at a time may
/// compile on from it. Files that plans name (hardware, tables of schedules) are assumed to be unchanged.
Compiled compile(PlannedModel planned, const CompilerOptions &options, CompileObserver &observer,
                 const Compiled *earlier = nullptr);

} // namespace par
