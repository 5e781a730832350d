// All facts as one JSON object, whose keys docs/report.md explains. Keys of absent facts are left out.
#include "par/Report/Json.h"

#include "Pictures.h"

#include "llvm/Support/JSON.h"

using namespace llvm;

namespace par {

namespace {
class ReportWriter;
} // namespace

/// Declared here because its argument's namespace is another one.
static void attributes(ReportWriter &writer, const verify::Proof &proof);

namespace {

/// Attributes of the object that is written. `attributes` of a struct writes its fields, in their order.
class ReportWriter {
public:
  explicit ReportWriter(raw_ostream &os) : json(os, /*IndentSize=*/1) {}

  /// Names of files and of models may be no UTF-8.
  void text(StringRef key, StringRef value) { json.attribute(key, json::fixUTF8(value)); }
  void optionalText(StringRef key, StringRef value) {
    if (!value.empty())
      text(key, value);
  }
  void number(StringRef key, int64_t value) { json.attribute(key, value); }
  void texts(StringRef key, ArrayRef<std::string> values) {
    json.attributeArray(key, [&] {
      for (const std::string &value : values)
        json.value(json::fixUTF8(value));
    });
  }
  /// An array of objects, whose attributes `write` writes.
  template <typename Range, typename Fn>
  void objects(StringRef key, const Range &values, Fn write) {
    json.attributeArray(key, [&] {
      for (const auto &value : values)
        json.object([&] { write(value); });
    });
  }
  template <typename T>
  void list(StringRef key, const std::vector<T> &values) {
    objects(key, values, [&](const T &value) { attributes(*this, value); });
  }
  template <typename T>
  void optionalList(StringRef key, const std::optional<std::vector<T>> &values) {
    if (values)
      list(key, *values);
  }
  template <typename T>
  void optionalObject(StringRef key, const std::optional<T> &value) {
    if (value)
      json.attributeObject(key, [&] { attributes(*this, *value); });
  }

  json::OStream json;
};

} // namespace

static void attributes(ReportWriter &writer, const ModelFacts &model) {
  writer.text("name", model.name);
  writer.number("nodes", model.nodes);
  writer.number("parameters", model.parameters);
  writer.number("elements", model.elements);
  writer.number("frozen", model.frozen);
  writer.number("unnamed", model.unnamed);
  writer.texts("ties", model.ties);
}

static void attributes(ReportWriter &writer, const ModuleFacts &module) {
  writer.texts("frozen", module.frozen);
  writer.texts("unfrozen", module.unfrozen);
  writer.texts("notes", module.notes);
}

static void attributes(ReportWriter &writer, const PlanFacts &plan) {
  writer.number("ranks", plan.ranks);
  writer.json.attributeArray("meshes", [&] {
    for (const AxisSizes &mesh : plan.meshes)
      writer.json.array([&] {
        for (const auto &[axis, size] : mesh)
          writer.json.object([&] {
            writer.text("axis", axis);
            writer.number("size", size);
          });
      });
  });
  writer.number("stages", plan.stages);
  writer.text("schedule", plan.schedule);
  writer.number("flush_every", plan.flushEvery);
  writer.number("microbatches", plan.microbatches);
  writer.number("microbatch_size", plan.microbatchSize);
  writer.texts("sample_dims", plan.sampleDims);
  writer.number("replicas", plan.replicas);
  writer.json.attribute("trains", plan.trains);
  writer.texts("optimizers", plan.optimizers);
  writer.text("compute", plan.compute);
  writer.text("states", plan.states);
  writer.text("accumulate", plan.accumulate);
  writer.text("reduce", plan.reduce);
  writer.texts("master_types", plan.masterTypes);
  writer.text("batch_norm", plan.batchNorm);
  writer.number("seed", plan.seed);
}

static void attributes(ReportWriter &writer, const RecipeFacts &recipes) {
  writer.texts("recipes", recipes.recipes);
  writer.json.attribute("cut_percent", recipes.cutPercent);
  writer.texts("whole", recipes.whole);
}

static void attributes(ReportWriter &writer, const PaddedDim &dim) {
  writer.text("name", dim.name);
  writer.number("dim", dim.dim);
  writer.number("size", dim.size);
  writer.number("shards", dim.shards);
  writer.number("kept", dim.kept);
}

static void attributes(ReportWriter &writer, const UnshardedHeads &heads) {
  writer.text("module", heads.module);
  writer.text("axis", heads.axis);
  writer.number("heads", heads.heads);
  writer.number("degree", heads.degree);
  writer.number("shards", heads.shards);
  writer.number("nearest", heads.nearest);
}

static void attributes(ReportWriter &writer, const PatternMatch &match) {
  writer.text("origin", match.origin);
  writer.text("pattern", match.pattern);
  writer.objects("kinds", match.kinds, [&](const PatternMatch::Kind &kind) {
    writer.text("kind", kind.kind);
    writer.texts("names", kind.names);
  });
}

static void attributes(ReportWriter &writer, const RoleMemory &role) {
  writer.text("role", role.name);
  writer.number("ranks", role.ranks);
  writer.number("params", role.params);
  writer.number("grads", role.grads);
  writer.number("states", role.states);
  writer.number("saved", role.saved);
  writer.number("buffers", role.buffers);
  writer.number("peak", role.peak);
  writer.number("host", role.host);
}

static void attributes(ReportWriter &writer, const MemoryFacts &memory) {
  if (memory.limit)
    writer.number("limit", *memory.limit);
  writer.list("roles", memory.roles);
}

static void attributes(ReportWriter &writer, const RoleSaved &role) {
  writer.text("role", role.name);
  writer.number("bytes", role.bytes);
  writer.number("slots", role.slots);
  writer.objects("values", role.values, [&](const SavedValues &values) {
    writer.optionalText("place", values.place);
    writer.optionalText("layers", values.layers);
    writer.text("type", values.type);
    writer.number("count", values.count);
    writer.number("bytes", values.bytes);
  });
}

static void attributes(ReportWriter &writer, const ForcingRule &rule) {
  writer.text("origin", rule.origin);
  writer.text("text", rule.text);
}

static void attributes(ReportWriter &writer, const Communication &communication) {
  writer.text("role", communication.role);
  writer.text("axis", communication.axis);
  writer.text("kind", communication.kind);
  writer.text("type", communication.type);
  writer.number("bytes", communication.bytes);
  writer.number("count", communication.count);
  writer.optionalText("place", communication.place);
  writer.optionalText("overlap", communication.overlap);
  writer.optionalObject("rule", communication.rule);
  writer.optionalText("reason", communication.reason);
}

static void attributes(ReportWriter &writer, const KernelResources &resources) {
  writer.number("registers", resources.registers);
  writer.number("stack_bytes", resources.stackBytes);
  writer.number("spill_bytes", resources.spillBytes);
  writer.number("shared_bytes", resources.sharedBytes);
}

static void attributes(ReportWriter &writer, const KernelUse &kernel) {
  writer.text("gpu", kernel.gpu);
  writer.text("symbol", kernel.symbol);
  writer.text("kernel", kernel.kernel);
  writer.number("blocks", kernel.blocks);
  writer.number("threads", kernel.threads);
  if (kernel.resources)
    writer.number("occupancy", kernel.occupancy);
  writer.optionalObject("resources", kernel.resources);
  writer.number("bytes", kernel.bytes);
  writer.json.attribute("bytes_per_element", kernel.bytesPerElement);
  writer.number("wide_percent", kernel.widePercent);
  writer.number("launches", kernel.launches);
  writer.json.attribute("on_few_blocks", kernel.onFewBlocks);
}

static void attributes(ReportWriter &writer, const KernelFacts &kernels) {
  writer.text("device", kernels.device);
  writer.json.attribute("assembled", kernels.assembled);
  writer.list("list", kernels.kernels);
}

static void attributes(ReportWriter &writer, const Measures &measures) {
  writer.number("peak", measures.peak);
  writer.number("step_ns", measures.stepNs);
}

static void attributes(ReportWriter &writer, const Way &way) {
  writer.text("setting", way.setting);
  attributes(writer, way.measures);
}

static void attributes(ReportWriter &writer, const WaysOut &ways) {
  writer.json.attributeObject("plan", [&] { attributes(writer, ways.plan); });
  writer.list("helpful", ways.helpful);
  writer.list("fitting", ways.fitting);
  writer.optionalObject("together", ways.together);
}

static void attributes(ReportWriter &writer, const ExpectedBubble &bubble) {
  writer.text("schedule", bubble.schedule);
  writer.number("microbatches", bubble.microbatches);
  writer.json.attribute("closed_form", bubble.closedForm);
  writer.json.attribute("percent", bubble.percent);
}

static void attributes(ReportWriter &writer, const Prediction &prediction) {
  writer.number("step_ns", prediction.stepNs);
  writer.number("compute_permille", prediction.computePermille);
  writer.number("bubble_permille", prediction.bubblePermille);
  writer.number("communication_permille", prediction.communicationPermille);
  writer.number("core_permille", prediction.corePermille);
  auto [measured, table, peak] = prediction.sourcePermille;
  writer.number("measured_permille", measured);
  writer.number("table_permille", table);
  writer.number("peak_permille", peak);
  if (prediction.cores > 0)
    writer.number("cores", prediction.cores);
  writer.optionalObject("expected_bubble", prediction.expected);
}

static void attributes(ReportWriter &writer, const BucketChoice &bucket) {
  writer.number("size", static_cast<int64_t>(bucket.size));
  writer.number("sizes", bucket.sizes);
  writer.number("ns", bucket.ns);
  writer.number("default_ns", bucket.defaultNs);
}

static void attributes(ReportWriter &writer, const RankOrderChoice &choice) {
  writer.number("orders", choice.orders);
  writer.number("different", choice.different);
  writer.number("ns", choice.ns);
  writer.number("first_ns", choice.firstNs);
  writer.number("slowest_ns", choice.slowestNs);
}

static void attributes(ReportWriter &writer, const RankOrderFacts &order) {
  writer.texts("axes", order.axes);
  writer.optionalObject("choice", order.choice);
  writer.objects("traffic", order.traffic, [&](const AxisTraffic &axis) {
    writer.text("axis", axis.axis);
    writer.number("ranks", axis.ranks);
    writer.text("level", axis.level);
    writer.number("bytes", axis.bytes);
    writer.number("ns", axis.ns);
  });
}

static void attributes(ReportWriter &writer, const verify::Proof &proof) {
  writer.number("programs", proof.programs);
  writer.number("ranks", proof.ranks);
  writer.number("communications", proof.communications);
  writer.number("groups", proof.groups);
  writer.number("longest_chain", proof.longestChain);
}

static void attributes(ReportWriter &writer, const CompileDiagnostic &finding) {
  writer.json.attribute("warning", finding.warning);
  writer.optionalText("file", finding.file);
  if (finding.line > 0) {
    writer.number("line", finding.line);
    writer.number("column", finding.column);
  }
  writer.text("message", finding.message);
  writer.optionalText("shown", finding.shown);
  writer.texts("notes", finding.notes);
}

static void writeStages(ReportWriter &writer, ArrayRef<StageShare> stages) {
  double all = 0;
  for (const StageShare &stage : stages)
    all += stage.work;
  writer.objects("stages", stages, [&](const StageShare &stage) {
    writer.texts("modules", stage.modules);
    writer.json.attribute("flops", stage.work);
    writer.json.attribute("percent", all > 0 ? 100 * stage.work / all : 0.0);
  });
}

static void attributes(ReportWriter &writer, const StageRecompute &stage) {
  writer.text("role", "s" + stage.stages);
  writer.number("all_bytes", stage.allBytes);
  writer.number("saved_bytes", stage.savedBytes);
  writer.number("moved_bytes", stage.movedBytes);
  writer.number("ns", stage.ns);
  if (!stage.isChosen)
    return;
  writer.number("chosen_ns", stage.chosenNs);
  writer.number("min_ns", stage.minNs);
  writer.number("unhidden_ns", stage.unhiddenNs);
  writer.number("next_bytes", stage.nextBytes);
  writer.number("next_ns", stage.moreNs);
  writer.number("smallest_bytes", stage.smallestBytes);
  writer.number("bound_bytes", stage.boundBytes);
}

static void attributes(ReportWriter &writer, const RecomputeFacts &facts) {
  writer.text("mode", facts.mode);
  if (facts.limit)
    writer.number("limit", *facts.limit);
  writer.number("microbatches", facts.microbatches);
  writer.list("roles", facts.stages);
}

static void attributes(ReportWriter &writer, const KeyFact &key) {
  writer.text("key", key.key);
  writer.text("value", key.value);
  writer.text("origin", key.origin);
  writer.optionalText("reason", key.reason);
}

static void attributes(ReportWriter &writer, const SearchFacts::Reason &reason) {
  writer.text("key", reason.key);
  writer.text("value", reason.value);
  writer.optionalText("second", reason.second);
  writer.json.attribute("slower_percent", reason.slowerPercent);
  writer.optionalText("others", reason.others);
  writer.json.attribute("compiled", reason.compiled);
}

static void attributes(ReportWriter &writer, const SearchFacts::Alternative &plan) {
  writer.text("plan", plan.plan);
  writer.number("step_ns", plan.stepNs);
  writer.number("peak", plan.peak);
  writer.json.attribute("slower_percent", plan.slowerPercent);
  writer.json.attribute("compiled", plan.compiled);
  writer.json.attribute("recomputes", plan.recomputes);
}

static void attributes(ReportWriter &writer, const SearchFacts::Fewest &fewest) {
  writer.number("ranks", fewest.ranks);
  writer.text("plan", fewest.plan);
  writer.number("step_ns", fewest.stepNs);
  writer.number("peak", fewest.peak);
  writer.number("may_do", fewest.mayDo);
}

static void attributes(ReportWriter &writer, const SearchFacts &search) {
  writer.number("ranks", search.ranks);
  writer.number("candidates", search.candidates);
  writer.number("compiled", search.compiled);
  writer.optionalText("layers", search.layers);
  writer.number("bound_ns", search.boundNs);
  writer.json.attribute("gap_percent", search.gapPercent);
  writer.list("reasons", search.reasons);
  writer.list("alternatives", search.alternatives);
  writer.optionalObject("fewest", search.fewest);
}

static void attributes(ReportWriter &writer, const FitFacts &fit) {
  writer.text("machine", fit.machine);
  writer.json.attribute("samples_per_second", fit.samplesPerSecond);
  if (fit.tokensPerSecond)
    writer.json.attribute("tokens_per_second", *fit.tokensPerSecond);
  writer.text("limited_by", fit.limitedBy);
}

static void attributes(ReportWriter &writer, const Utilization &utilization) {
  writer.json.attribute("flops", utilization.flops);
  writer.json.attribute("flops_per_second", utilization.perSecond);
  writer.json.attribute("peak_per_second", utilization.peakPerSecond);
  writer.json.attribute("percent", utilization.percent());
  writer.text("type", utilization.type);
  writer.text("hardware", utilization.hardware);
}

static void writeFacts(ReportWriter &writer, const Facts &facts) {
  writer.optionalObject("model", facts.model);
  writer.optionalObject("module", facts.module);
  writer.optionalObject("plan", facts.plan);
  writer.list("keys", facts.keys);
  writer.optionalObject("search", facts.search);
  writer.optionalObject("fit", facts.fit);
  writer.optionalObject("recipes", facts.recipes);
  writer.list("padding", facts.padding);
  writer.optionalList("matches", facts.matches);
  writeStages(writer, facts.stages);
  writer.list("heads", facts.heads);
  writer.optionalObject("memory", facts.memory);
  writer.optionalObject("recompute", facts.recompute);
  writer.optionalList("saved", facts.saved);
  writer.optionalList("collectives", facts.communications);
  writer.optionalObject("kernels", facts.kernels);
  writer.optionalObject("ways_out", facts.waysOut);
  writer.optionalObject("prediction", facts.prediction);
  writer.optionalObject("utilization", facts.utilization);
  writer.optionalObject("order", facts.order);
  writer.optionalObject("bucket", facts.bucket);
  writePictures(writer.json, facts);
  writer.optionalObject("proof", facts.proof);
}

/// An object of this schema with what `write` writes between the exit code and the findings, and a line end.
static std::string writeReport(const RunOutcome &outcome, function_ref<void(ReportWriter &)> write) {
  std::string text;
  raw_string_ostream os(text);
  {
    ReportWriter writer(os);
    writer.json.object([&] {
      writer.number("par_report", reportVersion);
      writer.number("code", outcome.code);
      writer.optionalText("bundle", outcome.bundle);
      write(writer);
      writer.list("findings", outcome.findings);
    });
  }
  os << "\n";
  return text;
}

std::string reportAsJson(const Facts &facts, const RunOutcome &outcome) {
  return writeReport(outcome, [&](ReportWriter &writer) { writeFacts(writer, facts); });
}

std::string comparisonAsJson(const Facts *before, const Facts *after, const RunOutcome &outcome) {
  return writeReport(outcome, [&](ReportWriter &writer) {
    for (auto [key, facts] : {std::pair("before", before), std::pair("after", after)})
      if (facts)
        writer.json.attributeObject(key, [&, facts = facts] { writeFacts(writer, *facts); });
  });
}

} // namespace par
