// Every decision of a plan as typed values.
#pragma once

#include "par/Plan/Language/Pattern.h"
#include "par/Plan/Language/Tree.h"
#include <map>

namespace par {

struct NameTable;
struct OptimizerSetting;

/// A value of the plan and its origin.
template <typename T>
struct WithOrigin {
  T value{};
  Origin origin;

  const T &operator*() const { return value; }
  const T *operator->() const { return &value; }
  /// Whether a file or --set gave it, as opposed to a default or a choice.
  bool given() const { return origin.kind == Origin::File || origin.kind == Origin::Set; }
};

/// A pattern and its origin.
struct PatternWithOrigin {
  NamePattern pattern;
  Origin origin;
};

/// PlanAxes of one dim, major first.
using PlanAxes = std::vector<std::string>;

/// Named axes and their sizes, outermost first.
using PlanMesh = std::vector<std::pair<std::string, WithOrigin<int64_t>>>;
int64_t ranksOf(const PlanMesh &mesh);
/// The number of the rank at each place of `mesh`, of which the last axis varies fastest, where neighbours on the last
/// axis of `numbering` are neighbouring ranks. Both have the same axes.
std::vector<int64_t> numberRanks(const PlanMesh &mesh, const PlanMesh &numbering);

/// A level of the machine: its name, and the ranks of one of its units (0: all are in one).
using PlanLevel = std::pair<std::string, int64_t>;

/// The axes by which ranks are numbered: neighbours on the last one are neighbouring ranks. Coordinates in the mesh,
/// and so all that is computed and the order of its sums, do not depend on it.
struct PlanMeshOrder {
  enum Kind { Written, Auto, Given };
  WithOrigin<Kind> kind;
  PlanAxes axes; ///< of Given, outermost first
};

struct PlanTarget {
  WithOrigin<std::string> device;             ///< "cpu" or "cuda"
  WithOrigin<std::string> hardware;           ///< name or path of a hardware file; default: that of the device
  WithOrigin<std::optional<uint64_t>> memory; ///< bytes per rank; none: unlimited
  WithOrigin<std::string> isa;                ///< "native" or e.g. "x86-64-v3", "sm_90"
};

/// One input, by pattern: `batch` is its batch dim, `value` binds it.
struct PlanInput {
  PatternWithOrigin name;
  std::optional<WithOrigin<std::optional<int64_t>>> batch; ///< inner nullopt: "none"
  std::optional<WithOrigin<std::string>> value;            ///< zeros, ones, iota or a number
};

/// The outputs that `output` matches become, of the next call, the inputs that `input` matches.
struct PlanCarry {
  PatternWithOrigin output, input;
};

struct PlanBatch {
  WithOrigin<std::optional<int64_t>> size;           ///< samples of one step over all ranks
  WithOrigin<std::string> dim;                       ///< symbol or dim number; empty: dim 0 of the first input
  WithOrigin<PlanAxes> over;                         ///< the batch dim is sharded over these
  WithOrigin<std::optional<int64_t>> microbatches;   ///< number per step
  WithOrigin<std::optional<int64_t>> microbatchSize; ///< samples of one microbatch on one rank
};

struct PlanLoss {
  /// "": a scalar output of the graph; else cross_entropy, mse or l1, attached to `output`.
  WithOrigin<std::string> kind;
  WithOrigin<std::string> output;          ///< graph output; empty: the only float output
  WithOrigin<std::string> labels;          ///< graph input that an attached loss makes
  WithOrigin<int64_t> ignore;              ///< label that does not count (cross_entropy)
  WithOrigin<double> smoothing;            ///< share of every label that is spread over all classes (cross_entropy)
  WithOrigin<int64_t> shift;               ///< labels are this many positions ahead along dim 1
  WithOrigin<std::vector<double>> weights; ///< of the classes (cross_entropy); empty: 1 each
  WithOrigin<bool> soft;                   ///< labels are the shares of all classes (cross_entropy)
};

/// Learning rate at step t (from 1): peak * min(1, t / warmup), then the decay. With cosine and t > warmup:
/// floor + (peak - floor) * (1 + cos(pi * min(1, (t - warmup) / (steps - warmup)))) / 2.
struct PlanLearningRate {
  WithOrigin<double> peak;
  WithOrigin<int64_t> warmup;
  WithOrigin<std::string> decay; ///< "constant", "linear", "cosine", "rsqrt", "step" or "one_cycle"
  WithOrigin<int64_t> steps;     ///< of linear, cosine and one_cycle; 0 otherwise
  WithOrigin<double> floor;
  // The decay step: the rate is multiplied by `gamma` after each milestone, or after each `stepSize` steps.
  WithOrigin<std::vector<int64_t>> milestones;
  WithOrigin<int64_t> stepSize; ///< 0: milestones
  WithOrigin<double> gamma;
  // The decay one_cycle, as torch.optim.lr_scheduler.OneCycleLR has them.
  WithOrigin<double> pctStart, divFactor, finalDivFactor;
  WithOrigin<std::string> anneal; ///< "cosine" or "linear"
  WithOrigin<bool> threePhase;
};

/// PyTorch's formulas and defaults.
struct PlanOptimizer {
  WithOrigin<std::string> kind; ///< "sgd", "momentum", "adamw", "lion", "muon"
  PlanLearningRate lr;
  WithOrigin<double> momentum;     ///< of momentum and muon
  WithOrigin<bool> nesterov;       ///< of momentum and muon
  WithOrigin<double> beta1, beta2; ///< of adamw and lion
  WithOrigin<double> eps;          ///< of adamw
  WithOrigin<double> weightDecay;
};

/// Overrides for the parameters that `name` matches; of two groups the later one wins, key by key.
struct PlanGroup {
  PatternWithOrigin name;
  std::optional<WithOrigin<double>> lr; ///< absolute peak; as a factor it is lr / optimizer.lr.peak
  std::optional<WithOrigin<double>> lrScale;
  std::optional<WithOrigin<double>> weightDecay;
  std::optional<WithOrigin<bool>> sparse;      ///< gradients are kept as looked-up rows
  std::optional<WithOrigin<std::string>> kind; ///< another optimizer starts from its own defaults
  struct Setting {
    const OptimizerSetting *setting;
    WithOrigin<double> value; ///< true and false are 1 and 0
  };
  std::vector<Setting> settings;
};

/// How parameters that `name` matches are first filled: zeros, ones, normal(s) or uniform(a).
struct PlanInit {
  PatternWithOrigin name;
  WithOrigin<std::string> rule;
};

/// The parameters that `name` matches are the one that `owner` matches.
struct PlanTie {
  PatternWithOrigin name, owner;
};

/// Averages of the weights after each step: a' = decay a + (1 - decay) w.
struct PlanAverages {
  WithOrigin<double> decay;
  WithOrigin<bool> warmup;    ///< the decay is at most (1 + t) / (10 + t) after t averages
  WithOrigin<bool> evaluated; ///< evaluations are of the averages
};

struct PlanTrain {
  Origin origin;
  PlanLoss loss;
  std::vector<PatternWithOrigin> freeze;
  std::optional<std::vector<PatternWithOrigin>> only;
  WithOrigin<std::string> lost; ///< "refuse" or "allow": parameters that the exporter folded away
  std::vector<PlanTie> tie;
  std::vector<PlanInit> init;
  PlanOptimizer optimizer;
  std::vector<PlanGroup> groups;
  WithOrigin<std::optional<double>> clip; ///< largest global norm; none: no clipping
  WithOrigin<bool> clipsValues;           ///< `clip` is the largest element instead
  std::optional<PlanAverages> averages;   ///< `ema`
  WithOrigin<bool> skipsNan;              ///< `on_nan: skip`: a step whose loss or gradient is NaN updates nothing
};

/// One rule of `shard`.
struct PlanShard {
  PatternWithOrigin name;
  std::vector<std::pair<int64_t, WithOrigin<PlanAxes>>> dims; ///< dim (negative: from the end) and its axes
  bool replicated = false;                                    ///< closed without dims
  std::optional<WithOrigin<bool>> closed;
  std::optional<WithOrigin<int64_t>> blocks;
  std::optional<WithOrigin<int64_t>> priority; ///< lower goes first; default 1
  std::optional<WithOrigin<PlanAxes>> partial; ///< the value may stay an unreduced sum over these
};

/// ZeRO, over the batch's ranks: shards states from level 1 on, gradients from 2, parameters from 3.
struct PlanZero {
  WithOrigin<int64_t> level;
  WithOrigin<PlanAxes> over;      ///< of batch.over
  WithOrigin<std::string> gather; ///< "use": parameters are gathered for each use
  WithOrigin<int64_t> minSize;    ///< parameters of fewer elements stay whole
};

/// Values kept in host memory.
struct PlanOffload {
  bool states = false, params = false;     ///< all of the optimizer's states, all parameters
  bool saved = false;                      ///< values that forward saves for backward
  std::vector<PatternWithOrigin> patterns; ///< parameters and, by state(P), states
  Origin origin;                           ///< of the list

  bool empty() const { return !states && !params && !saved && patterns.empty(); }
};

struct PlanPipeline {
  WithOrigin<std::string> over; ///< axis of the stages; empty: one stage
  WithOrigin<int64_t> stages;   ///< 1 without a pipeline
  WithOrigin<std::vector<PlanMesh>>
      meshes; ///< one a stage, in place of `mesh` and `over`; empty: all stages have the rest of `mesh`
  enum CutKind { AutoCuts, Starts, Even, Counts };
  WithOrigin<CutKind> cuts;                ///< how the model is split into stages
  std::vector<PatternWithOrigin> starts;   ///< Starts: the modules that begin stages 1, 2, ...
  std::optional<PatternWithOrigin> repeat; ///< Even, Counts: the modules that are dealt out
  std::vector<int64_t> counts;             ///< Counts: matches per stage
  WithOrigin<std::string> schedule;        ///< a name of par/Solver/Schedules/Schedules.h, or the path of a table
  std::optional<int64_t> ordered;          ///< microbatches that the table orders
  WithOrigin<int64_t> flushEvery;          ///< of an asynchronous schedule: consecutive batches between two flushes
  WithOrigin<bool> verticalSync; ///< of pipedream: all stages use the version that the microbatch had at stage 0
  WithOrigin<std::string>
      replicas; ///< "split": ranks over batch.over share each microbatch; "round_robin": each gets whole ones, in turn
  WithOrigin<bool> scatterGather; ///< ranks that hold a value alike send a part of it each, and gather it after receipt
};

struct PlanRecompute {
  enum Kind { None, Full, Selective, Each, Values, Keep, Memory, Auto };
  WithOrigin<Kind> kind;
  std::vector<PatternWithOrigin> patterns; ///< of each, values and keep
  WithOrigin<uint64_t> memory = {};        ///< of memory: bytes of a rank
  /// For memory and auto: bytes by which roles ("s0+2") exceeded their limit in compilations of this plan so far.
  std::map<std::string, int64_t> excess = {};

  /// Whether all that is in layers is recomputed, whatever the memory.
  bool recomputesLayers() const { return *kind == Full || *kind == Each; }
  bool hasBudget() const { return *kind == Memory || *kind == Auto; }
  /// Whether there are bytes to reach. `limited`: the memory of a rank is known.
  bool isBounded(bool limited) const { return *kind == Memory || (*kind == Auto && limited); }

  /// The plan's word for a kind.
  static llvm::StringRef nameOf(Kind kind);
};

struct PlanCollectives {
  WithOrigin<uint64_t> bucket; ///< bytes; 0: every gradient separately
  bool choosesBucket = false;  ///< `auto`: `bucket` is the default until a compilation chooses it
  WithOrigin<bool> overlap;
  WithOrigin<std::string> algorithm; ///< auto or hierarchical
  WithOrigin<int64_t> decompose;     ///< chunks of a collective that overlaps with its matmul; 0: auto, 1: none
  WithOrigin<bool> deterministic;
  /// "ranks": each rank adds up its microbatches, then the ranks' sums are added; "microbatches": one microbatch after
  /// the other, in one order whatever the number of replicas.
  WithOrigin<std::string> sums;
};

/// Number formats; masters and the loss are f32.
struct PlanPrecision {
  WithOrigin<std::string> compute; ///< "f32", "bf16" or "fp16": matmuls, activations and the weights they read
  WithOrigin<std::string> states;  ///< "f32" or "bf16": the optimizer's, between steps
  WithOrigin<std::string> accumulate, reduce; ///< "f32" or "bf16": gradients summed over microbatches, and over ranks
  WithOrigin<double> lossScale;               ///< factor on the loss before the first step; 0: none
  WithOrigin<int64_t> growth;          ///< good steps until it doubles, and it halves after a bad one; 0: it stays
  std::vector<PatternWithOrigin> keep; ///< parameters that stay f32, and so do their matmuls
};

/// A plan. From `buildPlan` on every key has a value or an explicit "open"; `completePlan` sets the open ones from the
/// model.
struct Plan {
  WithOrigin<int64_t> par;
  PlanTarget target;
  WithOrigin<int64_t> ranks;
  PlanMesh mesh; ///< empty if stages have meshes of their own
  std::vector<std::pair<std::string, WithOrigin<std::string>>>
      within; ///< axis, level of the machine that its ranks must not leave
  PlanMeshOrder meshOrder;
  std::vector<std::pair<std::string, WithOrigin<int64_t>>> dims; ///< symbol, size
  std::vector<PlanInput> inputs;
  std::vector<PlanCarry> carry;
  std::vector<std::pair<std::string, WithOrigin<int64_t>>> prefill; ///< symbol, size in the entry `prefill`
  PlanBatch batch;
  std::optional<PlanTrain> train; ///< none: inference
  PlanPrecision precision;
  std::vector<PlanShard> shard;
  PlanZero zero;
  PlanOffload offload;
  PlanPipeline pipeline;
  PlanRecompute recompute;
  PlanCollectives collectives;
  WithOrigin<std::string> attention; ///< "auto", or "unfused": matmuls and a softmax, with scores in memory
  WithOrigin<std::string> batchNorm; ///< "microbatch", "local", or a number of groups of a batch
  WithOrigin<int64_t> seed;
  std::vector<UsedRecipe> recipes;

  /// Size of an axis; 1 for one that is not in the mesh. If stages have meshes of their own, the least common multiple
  /// of its sizes: a size that this divides is divisible on each stage.
  int64_t axisSize(llvm::StringRef axis) const;
  int64_t axesSize(llvm::ArrayRef<std::string> axes) const;
  /// Maximum number of shards on one stage: the product of the axes' sizes.
  int64_t maxShards(llvm::ArrayRef<std::string> axes) const;
  /// The names of all axes, of every stage's mesh.
  PlanAxes axes() const;
  /// The mesh in the order by which ranks are numbered; as written while `meshOrder` is Auto.
  PlanMesh numberingMesh() const;
  /// Number of replicas that take microbatches in turn: the size of batch.over with `pipeline.replicas: round_robin`,
  /// else 1.
  int64_t turns() const;
  /// Number of forwards of a stage's ranks a step: one for each round of `turns` microbatches.
  int64_t rounds() const { return **batch.microbatches / turns(); }
  /// Batches in a call of `train`: those between two flushes of an asynchronous schedule, else one.
  int64_t calls() const { return updatesBehind().empty() ? 1 : *pipeline.flushEvery; }
  /// Staleness of each stage's parameters, in updates, under an asynchronous schedule; else empty.
  std::vector<int64_t> updatesBehind() const;
  /// Number of rank lists that have stages: the size of `pipeline.over`, or one a mesh.
  int64_t numDevices() const;
  /// The name of the axis of stages: `pipeline.over`, or a name that no axis has.
  std::string stageAxis() const;

  /// The completed plan as YAML, which reads as this plan again. With `origins` every line has its origin.
  std::string toText(bool origins) const;
  /// The text that the plan hash is taken of: every key but those that may change while running (lr, clip,
  /// seed).
  std::string hashText() const;
};

/// Makes a plan of a tree that `checkPlanTree` passed; std::nullopt after errors between values.
std::optional<Plan> buildPlan(const PlanNode &tree, llvm::ArrayRef<UsedRecipe> recipes, PlanErrors &errors);

/// Reads layers, checks and builds the plan of [PLAN...] and every --set; reports all errors.
std::optional<Plan> readPlan(llvm::ArrayRef<std::string> files, llvm::ArrayRef<std::string> settings,
                             PlanErrors &errors);

/// Fills the keys that depend on the model: batch.size, microbatches, microbatch_size, the size of the batch's symbol
/// (appended to `dims`); checks that the batch divides (error 5). Returns whether there was no error.
bool completePlan(Plan &plan, const NameTable &names, PlanErrors &errors);

/// `mesh.AXIS.within: LEVEL` on a machine of these levels: an error at each axis that joins ranks of two units of it,
/// and at each level that the machine lacks. With `mesh_order: auto` some order must fit.
void checkWithin(const Plan &plan, llvm::ArrayRef<PlanLevel> levels, PlanErrors &errors);
/// The orders of a plan's axes, outermost first, in which each axis stays in the unit that the plan says; the order of
/// `numberingMesh` first where it does. Axes of one rank stay where they are. Nothing above maxOrderedAxes.
std::vector<PlanAxes> fittingOrders(const Plan &plan, llvm::ArrayRef<PlanLevel> levels);
/// Axes of more than one rank that `mesh_order: auto` orders: 720 orders.
inline constexpr size_t maxOrderedAxes = 6;

/// Whether the hardware can have what collectives.algorithm says: `nodeRanks` of a host (0: all), and a link
/// between hosts.
void checkAlgorithm(const Plan &plan, int64_t nodeRanks, bool hasLinkBetween, PlanErrors &errors);
/// Warns where ranks that need one host's memory are on several.
void checkHosts(const Plan &plan, int64_t nodeRanks, PlanErrors &errors);
/// Refuses more ranks on shared cores than can take turns.
void checkSharedCores(const Plan &plan, int64_t nodeRanks, PlanErrors &errors);

} // namespace par
