// The table of plan keys.
#include "par/Plan/Language/Schema.h"
#include "par/Solver/Schedules/Schedules.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace par {

// clang-format off
/// The machine, the model and its batch.
static const PlanKey modelKeys[] = {
  {"par", "<int>", "1", "language version"},
  {"use", "<list>", "[]", "plan files or shipped recipes, read before this file, as layers"},
  {"target", "cpu|cuda|<text>|<map>", "cpu",
   "device that the bundle runs on: cuda is h100-sxm; or a hardware file"},
  {"target.device", "cpu|cuda", "cpu", "the kind of device"},
  {"target.hardware", "<text>", "(of the device)", "a hardware file: one that ships, or the path of a .yaml"},
  {"target.memory", "<size>", "(unlimited)", "maximum bytes of a rank"},
  {"target.host_memory", "!", "", "maximum bytes of a rank on its host"},
  {"target.isa", "<text>", "native", "instruction set of generated code: x86-64-v3, sm_90, or all"},
  {"ranks", "<int>", "(product of mesh)", "number of ranks"},
  {"mesh", "!auto|<map>", "{}", "named axes, outermost first"},
  {"mesh.<axis>", "<int>|!auto|<map>", "", "size of the axis"},
  {"mesh.<axis>.size", "<int>", "", "number of ranks along it"},
  {"mesh.<axis>.within", "node|<text>", "(anywhere)", "its ranks must be on one host, or in one unit of that level"},
  {"mesh_order", "written|auto|<axes>", "written", "axes by which ranks are numbered, outermost first"},
  {"dims", "<map>", "{}", "sizes of the model's symbolic dims"},
  {"dims.<symbol>", "<int>", "", "size of the symbol"},
  {"inputs", "<map>", "{}", "facts about graph inputs"},
  {"inputs.<pattern>", "<map>", "", "one input"},
  {"inputs.<pattern>.batch", "none|<int>", "(as batch.dim)", "the dim that is the batch"},
  {"inputs.<pattern>.value", "zeros|ones|iota|<number>|<elements>|<arrays>", "(fed)", "binds the input now"},
  {"batch", "<int>|<map>", "(batch.size)", "samples of one optimizer step over all ranks"},
  {"batch.size", "<int>", "(the model's batch, else ranks on over x microbatches)", "samples of one step"},
  {"batch.dim", "<symbol>|<int>", "(dim 0 of the first input)", "dim split into microbatches"},
  {"batch.over", "<axes>", "(dp if in a mesh)", "data parallelism: the batch dim is sharded over these"},
  {"batch.microbatches", "!auto|<int>", "(1, or up to 4 a stage with a pipeline)", "number per step"},
  {"batch.microbatch_size", "!auto|<int>", "(from size and microbatches)", "samples of one on one rank"},
  {"sequence", "!", "", "context parallelism"},
};

/// Keys of training.
static const PlanKey trainKeys[] = {
  {"train", "<map>", "(absent: inference)", "present: a training bundle"},
  {"train.loss", "cross_entropy|bce|mse|l1|<text>|<map>", "(the only scalar float output)",
   "a scalar graph output, or a loss attached to an output"},
  {"train.loss.kind", "cross_entropy|bce|mse|l1", "cross_entropy", "which loss"},
  {"train.loss.output", "<text>", "(the only float output)", "the graph output it is attached to"},
  {"train.loss.labels", "<text>", "labels", "name of the graph input it makes"},
  {"train.loss.ignore", "<int>", "-100", "label that does not count"},
  {"train.loss.smoothing", "<number>", "0", "share of all classes in every label of cross_entropy"},
  {"train.loss.shift", "<int>", "0", "labels are shifted by this many positions"},
  {"train.loss.class_weights", "<numbers>", "(1 each)", "of cross_entropy: a weight for each class"},
  {"train.loss.soft", "<bool>", "false", "of cross_entropy: labels are the shares of all classes, which add up to 1"},
  {"train.freeze", "<patterns>", "[]", "parameters that are not trained"},
  {"train.only", "<patterns>", "(all)", "only these are trained"},
  {"train.lost", "refuse|allow", "refuse", "parameters that the exporter folded or merged"},
  {"train.tie", "<map>", "{}", "parameters that are another one under a second name"},
  {"train.tie.<pattern>", "<pattern>", "", "the parameter that they are"},
  {"train.init", "<map>", "{}", "initial weights of par-run --init"},
  {"train.init.<pattern>", "<init>|xavier|kaiming", "", "zeros ones normal(s) uniform(a) xavier kaiming"},
};

/// How it is trained.
static const PlanKey optimizerKeys[] = {
  {"train.optimizer", "sgd|momentum|adamw|lion|muon|<map>", "adamw", "the optimizer"},
  {"train.optimizer.kind", "sgd|momentum|adamw|lion|muon|<op>", "adamw", "the optimizer"},
  {"train.optimizer.lr", "<number>|<map>", "0.001", "learning rate"},
  {"train.optimizer.lr.peak", "<number>", "0.001", "learning rate after the warm-up"},
  {"train.optimizer.lr.warmup", "<int>", "0", "steps from 0 to the peak"},
  {"train.optimizer.lr.decay", "constant|linear|cosine|rsqrt|step|one_cycle", "constant", "how it falls"},
  {"train.optimizer.lr.steps", "<int>", "", "the step at which the decay ends"},
  {"train.optimizer.lr.floor", "<number>", "0", "where it ends"},
  {"train.optimizer.lr.milestones", "<ints>", "", "of step: steps after which the rate is multiplied by gamma"},
  {"train.optimizer.lr.step_size", "<int>", "", "of step: the rate is multiplied by gamma after each so many steps"},
  {"train.optimizer.lr.gamma", "<number>", "0.1", "of step: the factor"},
  {"train.optimizer.lr.pct_start", "<number>", "0.3", "of one_cycle: share of the steps in which the rate rises"},
  {"train.optimizer.lr.anneal", "cosine|linear", "cosine", "of one_cycle: how it rises and falls"},
  {"train.optimizer.lr.div_factor", "<number>", "25", "of one_cycle: the first rate is the peak divided by this"},
  {"train.optimizer.lr.final_div_factor", "<number>", "10000",
   "of one_cycle: the last rate is the first one divided by this"},
  {"train.optimizer.lr.three_phase", "<bool>", "false",
   "of one_cycle: the rate falls to the first one as it rose, and then to the last one"},
  {"train.optimizer.momentum", "<number>", "(0.9 with momentum, 0.95 with muon)", "of momentum and muon"},
  {"train.optimizer.nesterov", "<bool>", "(false with momentum, true with muon)", "of momentum and muon"},
  {"train.optimizer.betas", "<numbers>", "([0.9, 0.999] with adamw, [0.9, 0.99] with lion)", "of adamw and lion"},
  {"train.optimizer.eps", "<number>", "1e-08", "of adamw"},
  {"train.optimizer.weight_decay", "<number>", "(0.01 with adamw, 0.1 with muon, else 0)",
   "decoupled with adamw, lion and muon, added to the gradient otherwise"},
  {"train.groups", "<map>", "{}", "per-parameter overrides"},
  {"train.groups.<pattern>", "<map>", "", "overrides of one group"},
  {"train.groups.<pattern>.lr", "<number>", "",
   "learning rate of the group: the peak, as a share of which the schedule runs"},
  {"train.groups.<pattern>.lr_scale", "<number>", "1", "factor on the learning rate"},
  {"train.groups.<pattern>.weight_decay", "<number>", "", "weight decay of the group"},
  {"train.groups.<pattern>.kind", "sgd|momentum|adamw|lion|muon", "",
   "optimizer of the group; another one starts from its own defaults"},
  {"train.groups.<pattern>.momentum", "<number>", "", "momentum of the group"},
  {"train.groups.<pattern>.nesterov", "<bool>", "", "nesterov of the group"},
  {"train.groups.<pattern>.betas", "<numbers>", "", "betas of the group"},
  {"train.groups.<pattern>.eps", "<number>", "", "eps of the group"},
  {"train.groups.<pattern>.sparse", "<bool>", "false", "gradient kept as looked-up rows; only these are updated"},
  {"train.clip", "none|<number>|<map>", "none", "gradient clipping"},
  {"train.clip.norm", "<number>", "", "largest global norm"},
  {"train.clip.value", "<number>", "", "largest element of each gradient"},
  {"train.ema", "none|<number>|<map>", "none", "averages of the trained weights: the decay"},
  {"train.ema.decay", "<number>", "0.999", "share of the average that a step keeps"},
  {"train.ema.warmup", "<bool>", "false", "the decay is at most (1 + t) / (10 + t) after t averages"},
  {"train.ema.eval", "<bool>", "false", "evaluations are of the averages"},
  {"train.on_nan", "stop|skip", "stop", "skip: a step whose loss or gradient is not finite updates nothing"},
};

/// Keys of number formats and layouts.
static const PlanKey layoutKeys[] = {
  {"precision", "f32|bf16|fp16|<map>", "f32", "number formats"},
  {"precision.compute", "f32|bf16|fp16", "f32", "of matmuls and activations"},
  {"precision.params", "f32|bf16|fp16", "(compute)", "of the weights that matmuls read"},
  {"precision.master", "f32|!bf16|!fp16", "f32", "of the weights that are updated and saved"},
  {"precision.states", "f32|bf16|!fp16", "f32", "of the optimizer's states between steps"},
  {"precision.accumulate", "f32|bf16|!fp16", "f32", "of sums over microbatches"},
  {"precision.reduce", "f32|bf16|!fp16", "f32", "of gradients summed over ranks"},
  {"precision.loss_scale", "none|dynamic|<number>|<map>", "(dynamic with fp16, else none)", "factor on the loss"},
  {"precision.loss_scale.initial", "<number>", "65536", "before the first step"},
  {"precision.loss_scale.growth", "<int>", "2000", "good steps until it doubles; 0: it stays"},
  {"precision.keep", "<map>", "{}", "parameters in another format"},
  {"precision.keep.<pattern>", "f32|!bf16|!fp16", "", "format of these"},
  {"shard", "<map>", "{}", "shardings of parameters and values"},
  {"shard.<pattern>", "replicated|<map>", "", "one rule"},
  {"shard.<pattern>.<dim>", "<axes>", "", "axes of the dim, major first"},
  {"shard.<pattern>.closed", "<bool>", "false", "propagation may not shard the other dims"},
  {"shard.<pattern>.priority", "<int>", "1", "lower goes first; the batch is 0, zero is 2"},
  {"shard.<pattern>.partial", "none|<axes>", "none", "may stay an unreduced sum over these"},
  {"shard.<pattern>.blocks", "<int>", "(found)", "the sharded dim is this many concatenated parts"},
  {"zero", "0|1|2|3|<map>", "0", "shards states, gradients, parameters over data parallelism"},
  {"zero.level", "0|1|2|3", "0", "1: states; 2: gradients too; 3: parameters too"},
  {"zero.over", "<axes>", "(batch.over)", "the axes, of those of batch.over"},
  {"zero.gather", "auto|use|step", "auto", "when parameters are gathered: for each use, or once a step"},
  {"zero.min_size", "<int>", "1024", "parameters of fewer elements stay whole"},
  {"offload", "<patterns>|<map>", "[]", "values in host memory: states, params, saved, names"},
  {"offload.what", "<patterns>", "[]", "values in host memory: states, params, saved, names"},
  {"offload.update", "device|!host", "device", "where states are updated",
   ", which is also faster if a host has 3 GPUs or more (\"Updates on the host\" in bench/README.md)"},
};

/// Keys of stages and schedules.
static const PlanKey pipelineKeys[] = {
  {"pipeline", "<map>", "{}", "stages"},
  {"pipeline.over", "<axis>", "(pp if in the mesh)", "axis of the stages"},
  {"pipeline.stages", "<int>", "(size of over)", "number of stages"},
  {"pipeline.meshes", "<meshes>", "", "one mesh per stage, instead of mesh and over"},
  {"pipeline.cuts", "auto|<patterns>|<map>", "auto", "the begin of each stage"},
  {"pipeline.cuts.<pattern>", "even|<ints>", "", "matches per stage"},
  {"pipeline.schedule", "<table>|!dualpipev", "1f1b", "order of forward and backward, or the path of a table"},
  {"pipeline.replicas", "split|round_robin", "split", "how replicas share microbatches"},
  {"pipeline.scatter_gather", "<bool>", "false",
   "ranks that hold a value alike send a part of it each to the next stage, which gathers it"},
  {"pipeline.flush_every", "<int>", "64", "of pipedream and pipedream-2bw: batches until the pipeline is flushed"},
  {"pipeline.vertical_sync", "<bool>", "false",
   "of pipedream: all stages use the version that the microbatch met at stage 0"},
  {"recompute", "auto|none|full|selective|<map>", "auto", "values that backward recomputes instead of saved ones"},
  {"recompute.each", "<pattern>|<patterns>", "", "save only the inputs of every matching module"},
  {"recompute.values", "<pattern>|<patterns>", "", "recompute the values of these nodes and modules, save all others"},
  {"recompute.keep", "<pattern>|<patterns>", "", "save the values of these nodes and modules, recompute all others"},
  {"recompute.memory", "<size>", "", "recompute the cheapest values by which a rank needs no more bytes"},
};

/// Keys of communication and of the rest of the step.
static const PlanKey runKeys[] = {
  {"collectives", "<map>", "{}", "how communication is grouped"},
  {"collectives.bucket", "auto|<size>", "25MiB", "gradients reduced together; 0: one each"},
  {"collectives.overlap", "<bool>", "true", "collectives run beside compute"},
  {"collectives.algorithm", "auto|hierarchical|!ring|!tree|!direct", "auto",
   "of collectives whose ranks are on several hosts"},
  {"collectives.decompose", "auto|none|<int>", "auto", "chunks of a gather or scatter that overlaps with its matmul"},
  {"collectives.sums", "ranks|microbatches", "ranks",
   "order of a step's sums: microbatches of a rank, then ranks; or all microbatches in the order of their samples"},
  {"collectives.deterministic", "<bool>", "false", "a fixed order of additions, which cpu always has"},
  {"attention", "auto|unfused", "auto", "one kernel where it can be, or matmuls and a softmax with scores in memory"},
  {"batch_norm", "microbatch|local|<int>", "microbatch", "whose samples share statistics"},
  {"moe", "!", "", "dispatch with static capacity"},
  {"carry", "<map>", "{}", "outputs that become inputs of the next call"},
  {"carry.<pattern>", "<pattern>", "", "the inputs that they become, wildcard by wildcard"},
  {"prefill", "<map>", "{}", "of an inference bundle: a second entry, with these sizes of symbolic dims"},
  {"prefill.<symbol>", "<int>", "", "size of the symbol in that entry"},
  {"seed", "<int>", "0", "of dropout, initial weights and data order"},
};
// clang-format on

/// Adds the solver's schedules before the key's other values.
static void addSchedules(PlanKey &key) {
  static const std::string values = [&] {
    std::string words;
    for (const Schedule *schedule : getSchedules())
      words += schedule->name.str() + "|";
    return words + key.values;
  }();
  key.values = values.c_str();
}

llvm::ArrayRef<PlanKey> planKeys() {
  static const llvm::SmallVector<PlanKey> keys = [] {
    llvm::SmallVector<PlanKey> all;
    for (llvm::ArrayRef<PlanKey> part :
         {llvm::ArrayRef(modelKeys), llvm::ArrayRef(trainKeys), llvm::ArrayRef(optimizerKeys),
          llvm::ArrayRef(layoutKeys), llvm::ArrayRef(pipelineKeys), llvm::ArrayRef(runKeys)})
      llvm::append_range(all, part);
    for (PlanKey &key : all)
      if (llvm::StringRef(key.path) == "pipeline.schedule")
        addSchedules(key);
    return all;
  }();
  return keys;
}

llvm::StringRef PlanKey::lastSegment() const {
  llvm::StringRef whole = path;
  return whole.contains('.') ? whole.rsplit('.').second : whole;
}

bool PlanKey::fits(llvm::StringRef name) const {
  llvm::StringRef sort = lastSegment();
  int64_t number;
  if (sort == "<dim>")
    return !name.getAsInteger(10, number);
  return sort.starts_with("<") || sort == name;
}

llvm::SmallVector<const PlanKey *> planKeysBelow(llvm::StringRef table) {
  llvm::SmallVector<const PlanKey *> result;
  for (const PlanKey &key : planKeys()) {
    llvm::StringRef path = key.path;
    llvm::StringRef parent = path.contains('.') ? path.rsplit('.').first : "";
    if (parent == table)
      result.push_back(&key);
  }
  return result;
}

} // namespace par
