// A plan as YAML with the origin of every key.
#include "par/Plan/Language/Schema.h"
#include "par/Plan/Model/Optimizers.h"
#include "par/Plan/Names/NameTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>

using namespace llvm;

namespace par {
namespace {

/// The shortest text that reads back as the same number.
std::string numberText(double number) {
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), number).ptr;
  return std::string(buffer, end);
}

/// A text as a YAML key or value: quoted unless it is plainly a name or a simple pattern.
std::string quoted(StringRef text) {
  auto plain = [](char c) { return isAlnum(c) || StringRef("_.^*()/-").contains(c); };
  bool simple = !text.empty() && llvm::all_of(text, plain) && (isAlnum(text[0]) || text[0] == '_' || text[0] == '^') &&
                text != "null";
  if (simple)
    return text.str();
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string patternText(const PatternWithOrigin &pattern) {
  return quoted((pattern.pattern.text() + (pattern.pattern.optional() ? "?" : "")).str());
}

std::string axesText(const PlanAxes &axes) {
  if (axes.empty())
    return "none";
  return axes.size() == 1 ? axes[0] : "[" + llvm::join(axes, ", ") + "]";
}

std::string meshText(const PlanMesh &mesh) {
  auto axes =
      llvm::map_range(mesh, [](const auto &axis) { return quoted(axis.first) + ": " + std::to_string(*axis.second); });
  return "{" + llvm::join(axes, ", ") + "}";
}

std::string patternsText(ArrayRef<PatternWithOrigin> patterns) {
  return "[" + llvm::join(llvm::map_range(patterns, patternText), ", ") + "]";
}

std::string offloadText(const PlanOffload &offload) {
  SmallVector<std::string> items;
  for (auto [word, said] : {std::pair("states", offload.states), {"params", offload.params}, {"saved", offload.saved}})
    if (said)
      items.push_back(word);
  llvm::append_range(items, llvm::map_range(offload.patterns, patternText));
  return "[" + llvm::join(items, ", ") + "]";
}

static std::string recomputeText(const PlanRecompute &recompute) {
  std::string kind = PlanRecompute::nameOf(*recompute.kind).str();
  if (*recompute.kind == PlanRecompute::Memory)
    return "{" + kind + ": " + formatSize(*recompute.memory) + "}";
  if (recompute.patterns.empty())
    return kind;
  bool one = recompute.patterns.size() == 1;
  return "{" + kind + ": " + (one ? patternText(recompute.patterns.front()) : patternsText(recompute.patterns)) + "}";
}

static std::string bucketText(const PlanCollectives &collectives) {
  return collectives.choosesBucket ? "auto" : formatSize(*collectives.bucket);
}

static std::string chunksText(int64_t chunks) {
  return chunks == 0 ? "auto" : chunks == 1 ? "none" : std::to_string(chunks);
}

static std::string countsText(const PlanPipeline &pipeline) {
  auto counts = llvm::map_range(pipeline.counts, [](int64_t count) { return std::to_string(count); });
  return *pipeline.cuts == PlanPipeline::Even ? "even" : "[" + llvm::join(counts, ", ") + "]";
}

/// The size of an axis: 8, or {size: 8, within: node}.
static std::string axisText(const Plan &plan, StringRef axis, int64_t size) {
  for (const auto &[name, level] : plan.within)
    if (name == axis)
      return "{size: " + std::to_string(size) + ", within: " + quoted(*level) + "}";
  return std::to_string(size);
}

/// {seq: 32}
static std::string sizesText(ArrayRef<std::pair<std::string, WithOrigin<int64_t>>> sizes) {
  auto items = llvm::map_range(sizes, [](auto &dim) { return quoted(dim.first) + ": " + std::to_string(*dim.second); });
  return "{" + llvm::join(items, ", ") + "}";
}

static std::string meshOrderText(const PlanMeshOrder &order) {
  return *order.kind == PlanMeshOrder::Auto ? "auto" : "[" + llvm::join(order.axes, ", ") + "]";
}

/// [1, 0.5]
std::string numbersText(const std::vector<double> &numbers) {
  return "[" + llvm::join(llvm::map_range(numbers, numberText), ", ") + "]";
}

/// [30, 60]
std::string stepsText(const std::vector<int64_t> &steps) {
  return "[" + join(map_range(steps, [](int64_t step) { return std::to_string(step); }), ", ") + "]";
}

struct PlanLine {
  const char *key;
  std::string text;
  Origin origin;
};

/// The keys of train.optimizer.lr that its decay has.
std::vector<PlanLine> rateLines(const PlanLearningRate &lr) {
  StringRef decay = *lr.decay;
  std::vector<PlanLine> lines;
  auto number = [&](const char *key, const WithOrigin<double> &value) {
    lines.push_back({key, numberText(*value), value.origin});
  };
  auto integer = [&](const char *key, const WithOrigin<int64_t> &value) {
    lines.push_back({key, std::to_string(*value), value.origin});
  };
  bool cycles = decay == "one_cycle";
  number("peak", lr.peak);
  if (!cycles)
    integer("warmup", lr.warmup);
  lines.push_back({"decay", decay.str(), lr.decay.origin});
  if (cycles || decay == "cosine" || decay == "linear")
    integer("steps", lr.steps);
  if (!cycles && decay != "constant")
    number("floor", lr.floor);
  if (decay == "step" && lr.milestones->empty())
    integer("step_size", lr.stepSize);
  else if (decay == "step")
    lines.push_back({"milestones", stepsText(*lr.milestones), lr.milestones.origin});
  if (decay == "step")
    number("gamma", lr.gamma);
  if (!cycles)
    return lines;
  number("pct_start", lr.pctStart);
  lines.push_back({"anneal", *lr.anneal, lr.anneal.origin});
  number("div_factor", lr.divFactor);
  number("final_div_factor", lr.finalDivFactor);
  lines.push_back({"three_phase", *lr.threePhase ? "true" : "false", lr.threePhase.origin});
  return lines;
}

constexpr size_t originColumn = 40; ///< at which comments with origins begin

/// Writes keys by mapping; a mapping is opened by its first key.
class Printer {
public:
  Printer(const Plan &plan, raw_string_ostream &os, bool origins, bool forHash)
      : plan(plan), os(os), origins(origins), forHash(forHash) {}

  void run() {
    line(0, "par", std::to_string(*plan.par), plan.par.origin);
    targetMeshDims();
    inputs();
    batch();
    if (plan.train)
      train(*plan.train);
    precision(plan.precision);
    shard();
    if (*plan.zero.level > 0)
      zero(plan.zero);
    if (!plan.offload.empty())
      line(0, "offload", offloadText(plan.offload), plan.offload.origin);
    pipeline();
    line(0, "recompute", recomputeText(plan.recompute), plan.recompute.kind.origin);
    open(0, "collectives");
    line(1, "bucket", bucketText(plan.collectives), plan.collectives.bucket.origin);
    boolean(1, "overlap", plan.collectives.overlap);
    line(1, "algorithm", *plan.collectives.algorithm, plan.collectives.algorithm.origin);
    line(1, "decompose", chunksText(*plan.collectives.decompose), plan.collectives.decompose.origin);
    boolean(1, "deterministic", plan.collectives.deterministic);
    if (*plan.collectives.sums != "ranks")
      line(1, "sums", *plan.collectives.sums, plan.collectives.sums.origin);
    if (!plan.carry.empty())
      open(0, "carry");
    for (const PlanCarry &carry : plan.carry)
      line(1, patternText(carry.output), patternText(carry.input), carry.output.origin);
    if (!plan.prefill.empty())
      line(0, "prefill", sizesText(plan.prefill), plan.prefill.front().second.origin);
    if (*plan.attention != "auto")
      line(0, "attention", *plan.attention, plan.attention.origin);
    if (*plan.batchNorm != "microbatch")
      line(0, "batch_norm", *plan.batchNorm, plan.batchNorm.origin);
    if (!forHash)
      line(0, "seed", std::to_string(*plan.seed), plan.seed.origin);
  }

private:
  void precision(const PlanPrecision &precision) {
    std::pair<const char *, const WithOrigin<std::string> *> narrow[] = {
        {"states", &precision.states}, {"accumulate", &precision.accumulate}, {"reduce", &precision.reduce}};
    bool wide = llvm::all_of(narrow, [](auto &format) { return **format.second == "f32"; });
    if (*precision.lossScale == 0 && precision.keep.empty() && *precision.compute != "fp16" && wide)
      return line(0, "precision", *precision.compute, precision.compute.origin);
    open(0, "precision");
    line(1, "compute", *precision.compute, precision.compute.origin);
    for (auto [key, format] : narrow)
      if (**format != "f32")
        text(1, key, *format);
    if (*precision.lossScale == 0) {
      line(1, "loss_scale", "none", precision.lossScale.origin);
    } else {
      open(1, "loss_scale");
      number(2, "initial", precision.lossScale);
      integer(2, "growth", precision.growth);
    }
    if (!precision.keep.empty())
      open(1, "keep");
    for (const PatternWithOrigin &pattern : precision.keep)
      line(2, patternText(pattern), "f32", pattern.origin);
  }
  void open(unsigned depth, StringRef key) { os.indent(2 * depth) << key << ":\n"; }
  void line(unsigned depth, StringRef key, StringRef value, const Origin &origin) {
    std::string text = (std::string(2 * depth, ' ') + key + ": " + value).str();
    os << text;
    if (origins)
      os.indent(text.size() < originColumn ? originColumn - text.size() : 1) << " # " << origin.comment();
    os << "\n";
  }
  void number(unsigned depth, StringRef key, const WithOrigin<double> &value) {
    line(depth, key, numberText(*value), value.origin);
  }
  void integer(unsigned depth, StringRef key, const WithOrigin<int64_t> &value) {
    line(depth, key, std::to_string(*value), value.origin);
  }
  void integer(unsigned depth, StringRef key, const WithOrigin<std::optional<int64_t>> &value) {
    if (value->has_value())
      line(depth, key, std::to_string(**value), value.origin);
  }
  void boolean(unsigned depth, StringRef key, const WithOrigin<bool> &value) {
    line(depth, key, *value ? "true" : "false", value.origin);
  }
  void text(unsigned depth, StringRef key, const WithOrigin<std::string> &value) {
    if (!value->empty())
      line(depth, key, quoted(*value), value.origin);
  }
  void targetMeshDims() {
    open(0, "target");
    text(1, "device", plan.target.device);
    if (plan.target.hardware.given())
      text(1, "hardware", plan.target.hardware);
    if (plan.target.memory->has_value())
      line(1, "memory", formatSize(**plan.target.memory), plan.target.memory.origin);
    text(1, "isa", plan.target.isa);
    integer(0, "ranks", plan.ranks);
    if (!plan.mesh.empty())
      open(0, "mesh");
    for (const auto &[axis, size] : plan.mesh)
      line(1, quoted(axis), axisText(plan, axis, *size), size.origin);
    if (const PlanMeshOrder &order = plan.meshOrder; *order.kind != PlanMeshOrder::Written)
      line(0, "mesh_order", meshOrderText(order), order.kind.origin);
    if (!plan.dims.empty())
      open(0, "dims");
    for (const auto &[symbol, size] : plan.dims)
      integer(1, quoted(symbol), size);
  }
  void inputs() {
    if (!plan.inputs.empty())
      open(0, "inputs");
    for (const PlanInput &input : plan.inputs) {
      open(1, patternText(input.name));
      if (input.batch) {
        std::string dim = **input.batch ? std::to_string(***input.batch) : "none";
        line(2, "batch", dim, input.batch->origin);
      }
      if (input.value && StringRef(**input.value).starts_with("["))
        line(2, "value", **input.value, input.value->origin);
      else if (input.value)
        text(2, "value", *input.value);
    }
  }

  void batch() {
    const PlanBatch &batch = plan.batch;
    open(0, "batch");
    integer(1, "size", batch.size);
    text(1, "dim", batch.dim);
    line(1, "over", axesText(*batch.over), batch.over.origin);
    integer(1, "microbatches", batch.microbatches);
    integer(1, "microbatch_size", batch.microbatchSize);
  }

  void train(const PlanTrain &train) {
    open(0, "train");
    loss(train.loss);
    line(1, "freeze", patternsText(train.freeze), train.freeze.empty() ? Origin() : train.freeze.front().origin);
    if (train.only)
      line(1, "only", patternsText(*train.only), train.only->empty() ? train.origin : train.only->front().origin);
    if (*train.lost != "refuse")
      text(1, "lost", train.lost);
    if (!train.tie.empty())
      open(1, "tie");
    for (const PlanTie &tie : train.tie)
      line(2, patternText(tie.name), patternText(tie.owner), tie.name.origin);
    if (!train.init.empty())
      open(1, "init");
    for (const PlanInit &init : train.init)
      line(2, patternText(init.name), *init.rule, init.rule.origin);
    optimizer(train.optimizer);
    if (!train.groups.empty())
      open(1, "groups");
    for (const PlanGroup &group : train.groups) {
      bool empty =
          !group.lr && !group.lrScale && !group.weightDecay && !group.kind && !group.sparse && group.settings.empty();
      if (empty)
        line(2, patternText(group.name), "{}", group.name.origin);
      else
        open(2, patternText(group.name));
      for (auto [key, value] :
           {std::pair{"lr", &group.lr}, {"lr_scale", &group.lrScale}, {"weight_decay", &group.weightDecay}})
        if (*value)
          number(3, key, **value);
      if (group.kind)
        text(3, "kind", *group.kind);
      if (group.sparse)
        line(3, "sparse", **group.sparse ? "true" : "false", group.sparse->origin);
      auto said = [](const PlanGroup::Setting &said) { return std::pair(said.setting, said.value); };
      settings(3, llvm::map_to_vector(group.settings, said));
    }
    clip(train);
    if (train.averages) {
      open(1, "ema");
      number(2, "decay", train.averages->decay);
      boolean(2, "warmup", train.averages->warmup);
      boolean(2, "eval", train.averages->evaluated);
    }
    if (*train.skipsNan)
      line(1, "on_nan", "skip", train.skipsNan.origin);
  }

  /// The threshold may change at run time, so the hash only includes the kind of clipping.
  void clip(const PlanTrain &train) {
    std::string number = !*train.clip ? "none" : forHash ? "" : numberText(**train.clip);
    if (*train.clipsValues)
      line(1, "clip", "{value: " + number + "}", train.clip.origin);
    else if (!forHash)
      line(1, "clip", number, train.clip.origin);
  }

  void loss(const PlanLoss &loss) {
    if (loss.kind->empty())
      return text(1, "loss", loss.output);
    open(1, "loss");
    text(2, "kind", loss.kind);
    text(2, "output", loss.output);
    text(2, "labels", loss.labels);
    integer(2, "ignore", loss.ignore);
    if (*loss.smoothing != 0)
      number(2, "smoothing", loss.smoothing);
    integer(2, "shift", loss.shift);
    if (!loss.weights->empty())
      line(2, "class_weights", numbersText(*loss.weights), loss.weights.origin);
    if (*loss.soft)
      boolean(2, "soft", loss.soft);
  }

  void optimizer(const PlanOptimizer &optimizer) {
    open(1, "optimizer");
    text(2, "kind", optimizer.kind);
    if (!forHash) {
      open(2, "lr");
      for (const PlanLine &each : rateLines(optimizer.lr))
        line(3, each.key, each.text, each.origin);
    }
    const OptimizerKind *kind = findOptimizerKind(*optimizer.kind);
    auto said = [&](const OptimizerSetting &setting) {
      Origin origin = setting.flag ? (optimizer.*setting.flag).origin : (optimizer.*setting.number).origin;
      return std::pair(&setting, WithOrigin<double>{settingOf(optimizer, setting), origin});
    };
    settings(2, llvm::map_to_vector(kind ? kind->settings : ArrayRef<OptimizerSetting>(), said));
    number(2, "weight_decay", optimizer.weightDecay);
  }

  /// A line a key; consecutive settings of one key are a list.
  void settings(unsigned depth, ArrayRef<std::pair<const OptimizerSetting *, WithOrigin<double>>> said) {
    for (size_t i = 0; i < said.size(); ++i) {
      const auto &[setting, value] = said[i];
      StringRef key = setting->key;
      if (setting->flag) {
        line(depth, key, *value != 0 ? "true" : "false", value.origin);
        continue;
      }
      SmallVector<std::string> numbers{numberText(*value)};
      while (i + 1 < said.size() && key == said[i + 1].first->key)
        numbers.push_back(numberText(*said[++i].second));
      line(depth, key, numbers.size() == 1 ? numbers.front() : "[" + join(numbers, ", ") + "]", value.origin);
    }
  }

  void shard() {
    if (!plan.shard.empty())
      open(0, "shard");
    for (const PlanShard &rule : plan.shard) {
      std::vector<std::string> options;
      for (const auto &[dim, axes] : rule.dims)
        options.push_back(std::to_string(dim) + ": " + axesText(*axes));
      if (rule.closed)
        options.push_back(std::string("closed: ") + (**rule.closed ? "true" : "false"));
      if (rule.blocks)
        options.push_back("blocks: " + std::to_string(**rule.blocks));
      if (rule.priority)
        options.push_back("priority: " + std::to_string(**rule.priority));
      if (rule.partial)
        options.push_back("partial: " + axesText(**rule.partial));
      line(1, patternText(rule.name), rule.replicated ? "replicated" : "{" + llvm::join(options, ", ") + "}",
           rule.name.origin);
    }
  }

  void zero(const PlanZero &zero) {
    open(0, "zero");
    integer(1, "level", zero.level);
    line(1, "over", axesText(*zero.over), zero.over.origin);
    text(1, "gather", zero.gather);
    integer(1, "min_size", zero.minSize);
  }

  void pipeline() {
    const PlanPipeline &pipeline = plan.pipeline;
    open(0, "pipeline");
    line(1, "over", pipeline.over->empty() ? "none" : *pipeline.over, pipeline.over.origin);
    if (!pipeline.meshes->empty()) {
      auto meshes = llvm::map_range(*pipeline.meshes, [](const PlanMesh &mesh) { return meshText(mesh); });
      line(1, "meshes", "[" + llvm::join(meshes, ", ") + "]", pipeline.meshes.origin);
    }
    integer(1, "stages", pipeline.stages);
    if (*pipeline.replicas != "split")
      text(1, "replicas", pipeline.replicas);
    if (*pipeline.scatterGather)
      boolean(1, "scatter_gather", pipeline.scatterGather);
    if (!plan.updatesBehind().empty())
      integer(1, "flush_every", pipeline.flushEvery);
    if (*pipeline.verticalSync)
      boolean(1, "vertical_sync", pipeline.verticalSync);
    switch (*pipeline.cuts) {
    case PlanPipeline::AutoCuts:
      line(1, "cuts", "auto", pipeline.cuts.origin);
      break;
    case PlanPipeline::Starts:
      line(1, "cuts", patternsText(pipeline.starts), pipeline.cuts.origin);
      break;
    case PlanPipeline::Even:
    case PlanPipeline::Counts:
      open(1, "cuts");
      line(2, patternText(*pipeline.repeat), countsText(pipeline), pipeline.cuts.origin);
      break;
    }
    // An inference bundle streams forward: there the key is an error.
    if (plan.train)
      line(1, "schedule", *pipeline.schedule, pipeline.schedule.origin);
  }

  const Plan &plan;
  raw_string_ostream &os;
  bool origins, forHash;
};

} // namespace

std::string Plan::toText(bool origins) const {
  std::string text;
  raw_string_ostream os(text);
  Printer(*this, os, origins, /*forHash=*/false).run();
  return text;
}

std::string Plan::hashText() const {
  std::string text;
  raw_string_ostream os(text);
  Printer(*this, os, /*origins=*/false, /*forHash=*/true).run();
  return text;
}

} // namespace par
