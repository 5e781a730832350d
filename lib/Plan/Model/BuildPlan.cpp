// A checked tree to typed values.
#include "PlanBuilder.h"

#include "par/Plan/Language/Schema.h"
#include "par/Plan/Model/ReadPlan.h"
#include "par/Solver/Order/OrderTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

int64_t toInt(const PlanNode &node) {
  int64_t number = 0;
  (void)StringRef(node.text).getAsInteger(10, number);
  return number;
}

double toNumber(const PlanNode &node) {
  double number = 0;
  (void)StringRef(node.text).getAsDouble(number);
  return number;
}

PlanAxes toAxes(const PlanNode &node) {
  PlanAxes axes;
  if (node.kind == PlanNode::Scalar && node.text != "none")
    axes.push_back(node.text);
  for (const PlanNode &item : node.items)
    axes.push_back(item.text);
  return axes;
}

Plan PlanBuilder::run() {
  Plan plan;
  plan.par = integer("par", 1);
  target(plan.target);
  mesh(plan);
  plan.meshOrder = buildMeshOrder(root, plan, errors);
  dims(plan);
  inputs(plan);
  if (const PlanNode *node = root.at("carry"))
    for (const PlanEntry &entry : node->entries)
      plan.carry.push_back({pattern(entry.key, entry.origin), pattern(entry.value.text, entry.value.origin)});
  batch(plan);
  if (const PlanEntry *entry = root.find("train"))
    train(plan.train.emplace(), entry->origin);
  precision(plan.precision);
  shards(plan);
  zero(plan);
  offload(plan);
  pipeline(plan);
  plan.recompute = buildRecompute(root, errors);
  collectives(plan.collectives, plan.target.device);
  plan.attention = word("attention", "auto");
  plan.batchNorm = word("batch_norm", "microbatch");
  plan.seed = integer("seed", 0);
  return plan;
}

static void buildBucket(const PlanNode *node, PlanCollectives &collectives) {
  collectives.choosesBucket = node && node->isWord("auto");
  bool hasSize = node && !collectives.choosesBucket;
  collectives.bucket = {hasSize ? *parseSize(node->text) : 25ull << 20, node ? node->origin : Origin()};
}

/// Orders of additions that a device cannot keep.
static void refuseOrders(const PlanCollectives &collectives, StringRef device, PlanErrors &errors) {
  if (*collectives.deterministic && device == "cuda")
    errors.error(collectives.deterministic.origin, PlanMessage::keyNotYet,
                 "collectives.deterministic with target cuda");
  if (*collectives.sums == "microbatches" && device == "cuda")
    errors.error(collectives.sums.origin, PlanMessage::keyNotYet, "collectives.sums: microbatches with target cuda");
}

void PlanBuilder::collectives(PlanCollectives &collectives, const WithOrigin<std::string> &device) {
  buildBucket(root.at("collectives.bucket"), collectives);
  collectives.overlap = boolean("collectives.overlap", true);
  collectives.algorithm = word("collectives.algorithm", "auto");
  collectives.deterministic = boolean("collectives.deterministic", false);
  collectives.sums = word("collectives.sums", "ranks");
  refuseOrders(collectives, *device, errors);
  const PlanNode *decompose = root.at("collectives.decompose");
  if (!decompose || decompose->text == "auto" || decompose->text == "none") {
    collectives.decompose = {decompose && decompose->text == "none" ? 1 : 0, decompose ? decompose->origin : Origin()};
    return;
  }
  collectives.decompose = integer("collectives.decompose", 0);
  if (constexpr int64_t most = 64; *collectives.decompose < 2 || *collectives.decompose > most)
    errors.error(collectives.decompose.origin, PlanMessage::wrongValue, "collectives.decompose",
                 "auto, none or 2 to " + std::to_string(most) + " chunks", decompose->describe());
}

void PlanBuilder::precision(PlanPrecision &precision) {
  const PlanNode *compute = shorthand("precision", "compute");
  precision.compute = {compute ? compute->text : "f32", compute ? compute->origin : Origin()};
  if (const PlanNode *params = root.at("precision.params"); params && params->text != *precision.compute)
    errors.error(params->origin, PlanMessage::wrongValue, "precision.params", *precision.compute + ", which compute is",
                 params->text);
  precision.states = word("precision.states", "f32");
  precision.accumulate = word("precision.accumulate", "f32");
  precision.reduce = word("precision.reduce", "f32");
  const PlanNode *scale = shorthand("precision.loss_scale", "initial");
  bool dynamic = !scale || scale->text == "dynamic" || root.at("precision.loss_scale.initial");
  if (!root.at("precision.loss_scale") && *precision.compute != "fp16")
    precision.lossScale = {0, Origin()};
  else if (!scale || scale->text == "dynamic")
    precision.lossScale = {65536, scale ? scale->origin : Origin()};
  else
    precision.lossScale = {scale->text == "none" ? 0 : toNumber(*scale), scale->origin};
  if (precision.lossScale.given() && scale->text != "none" && !(*precision.lossScale > 0))
    errors.error(precision.lossScale.origin, PlanMessage::wrongValue, "precision.loss_scale", "a positive number",
                 scale->text);
  precision.growth = integer("precision.loss_scale.growth", dynamic ? 2000 : 0);
  if (const PlanNode *node = root.at("precision.keep"))
    for (const PlanEntry &entry : node->entries)
      precision.keep.push_back(pattern(entry.key, entry.origin));
}

namespace {

/// A hardware file that ships with Par, and the kind of its device.
struct ShippedHardware {
  StringRef name, device;
};

} // namespace

static constexpr ShippedHardware shippedHardware[] = {
#include "par/Plan/Model/HardwareNames.inc"
};

/// The kind of device of a hardware file that ships; empty for another.
static StringRef deviceOf(StringRef hardware) {
  for (const ShippedHardware &file : shippedHardware)
    if (file.name == hardware)
      return file.device;
  return "";
}

/// An error of a word that is no device and no hardware file: "H100" may mean one that ships.
static void refuseTarget(const PlanNode &node, PlanErrors &errors) {
  SmallVector<StringRef> names; // all but cpu, which is a device as well
  for (const ShippedHardware &file : shippedHardware)
    if (file.name != "cpu")
      names.push_back(file.name);
  std::string takes = "cpu, cuda, " + llvm::join(names, ", ") + " or the path of a hardware file (.yaml)";
  StringRef nearest = nearestWord(StringRef(node.text).lower(), names, 2);
  if (nearest.empty())
    errors.error(node.origin, PlanMessage::wrongValue, "target", takes, node.describe());
  else
    errors.error(node.origin, PlanMessage::wrongWord, "target", takes, node.describe(), nearest);
}

void PlanBuilder::target(PlanTarget &target) {
  target.device = {"cpu", Origin()};
  const PlanNode *node = shorthand("target", "device");
  bool named = node && !node->isWord("cpu") && !node->isWord("cuda"); // a word for the machine, not for its kind
  if (node && !named)
    target.device = {node->text, node->origin};
  target.hardware = word("target.hardware", *target.device == "cuda" ? "h100-sxm" : "cpu");
  if (named)
    target.hardware = {node->text, node->origin};
  if (named && deviceOf(node->text).empty() && !StringRef(node->text).ends_with(".yaml"))
    refuseTarget(*node, errors);
  if (!target.device.given() && target.hardware.given() && !deviceOf(*target.hardware).empty())
    target.device = {deviceOf(*target.hardware).str(), target.hardware.origin};
  if (const PlanNode *memory = root.at("target.memory"))
    target.memory = {*parseSize(memory->text), memory->origin};
  target.isa = word("target.isa", "native");
}

static void collectElements(const PlanNode &node, std::vector<std::string> &elements) {
  if (node.kind == PlanNode::Scalar)
    elements.push_back(node.text);
  for (const PlanNode &item : node.items)
    collectElements(item, elements);
}

/// The text of a word, a number or a file; of lists, all their elements in order as one: `[1, 2, 3]`.
static std::string elementsText(const PlanNode &node) {
  if (node.kind == PlanNode::Scalar)
    return node.text;
  std::vector<std::string> elements;
  collectElements(node, elements);
  return "[" + llvm::join(elements, ", ") + "]";
}

void PlanBuilder::inputs(Plan &plan) {
  const PlanEntry *inputs = root.find("inputs");
  if (!inputs)
    return;
  for (const PlanEntry &entry : inputs->value.entries) {
    PlanInput input{pattern(entry.key, entry.origin), std::nullopt, std::nullopt};
    if (const PlanEntry *batch = entry.value.find("batch")) {
      input.batch.emplace();
      input.batch->origin = batch->value.origin;
      if (!batch->value.isWord("none"))
        input.batch->value = toInt(batch->value);
    }
    if (const PlanEntry *value = entry.value.find("value"))
      input.value = WithOrigin<std::string>{elementsText(value->value), value->value.origin};
    plan.inputs.push_back(std::move(input));
  }
}

void PlanBuilder::batch(Plan &plan) {
  if (const PlanNode *node = shorthand("batch", "size"))
    plan.batch.size = {toInt(*node), node->origin};
  plan.batch.dim = word("batch.dim", "");
  plan.batch.microbatches = optionalInteger("batch.microbatches");
  plan.batch.microbatchSize = optionalInteger("batch.microbatch_size");
  if (const PlanNode *node = root.at("batch.over"))
    plan.batch.over = {toAxes(*node), node->origin};
  else if (llvm::is_contained(plan.axes(), "dp"))
    plan.batch.over = {{"dp"}, Origin()};
}

void PlanBuilder::shards(Plan &plan) {
  const PlanEntry *shard = root.find("shard");
  if (!shard)
    return;
  for (const PlanEntry &entry : shard->value.entries) {
    PlanShard rule;
    rule.name = pattern(entry.key, entry.origin);
    rule.replicated = entry.value.isWord("replicated");
    for (const PlanEntry &option : entry.value.entries) {
      const PlanNode &value = option.value;
      int64_t dim;
      if (!StringRef(option.key).getAsInteger(10, dim))
        rule.dims.push_back({dim, {toAxes(value), value.origin}});
      else if (option.key == "closed")
        rule.closed = WithOrigin<bool>{value.text == "true", value.origin};
      else if (option.key == "blocks")
        rule.blocks = WithOrigin<int64_t>{toInt(value), value.origin};
      else if (option.key == "partial")
        rule.partial = WithOrigin<PlanAxes>{toAxes(value), value.origin};
      else if (option.key == "priority")
        rule.priority = WithOrigin<int64_t>{toInt(value), value.origin};
    }
    if (rule.priority && **rule.priority < 0)
      errors.error(rule.priority->origin, PlanMessage::wrongValue, "shard." + entry.key + ".priority",
                   "a number from 0", std::to_string(**rule.priority));
    plan.shard.push_back(std::move(rule));
  }
}

void PlanBuilder::zero(Plan &plan) {
  PlanZero &zero = plan.zero;
  const PlanNode *level = shorthand("zero", "level");
  zero.level = {level ? toInt(*level) : 0, level ? level->origin : Origin()};
  zero.over = plan.batch.over;
  zero.over.origin = Origin();
  if (const PlanNode *over = root.at("zero.over"))
    zero.over = {toAxes(*over), over->origin};
  zero.gather = {"use", Origin::automatic()};
  if (const PlanNode *gather = root.at("zero.gather"); gather && !gather->isWord("auto"))
    zero.gather = {gather->text, gather->origin};
  if (*zero.gather == "step" && *zero.level < 3)
    errors.error(zero.gather.origin, PlanMessage::wrongValue, "zero.gather",
                 formatv("auto or use at level {0}, which keeps parameters whole", *zero.level).str(), "\"step\"");
  zero.minSize = integer("zero.min_size", 1024);
  std::string batch = plan.batch.over->empty() ? "none" : llvm::join(*plan.batch.over, ", ");
  for (const std::string &axis : *zero.over)
    if (!llvm::is_contained(*plan.batch.over, axis))
      errors.error(zero.over.origin, PlanMessage::zeroOver, axis, batch);
  if (*zero.level > 0 && zero.over->empty() && *plan.ranks > 1)
    errors.error(zero.level.origin, PlanMessage::zeroNothing, *zero.level);
}

void PlanBuilder::offload(Plan &plan) {
  const PlanNode *what = shorthand("offload", "what");
  if (!what)
    return;
  plan.offload.origin = what->origin;
  const std::pair<StringRef, bool PlanOffload::*> words[] = {
      {"states", &PlanOffload::states}, {"params", &PlanOffload::params}, {"saved", &PlanOffload::saved}};
  for (const PlanNode &item : what->items) {
    if (auto word = llvm::find_if(words, [&](const auto &word) { return item.isWord(word.first); });
        word != std::end(words)) {
      plan.offload.*(word->second) = true;
      continue;
    }
    PatternWithOrigin name = pattern(item.text, item.origin);
    if (name.pattern.form() == NamePattern::Name || name.pattern.form() == NamePattern::State)
      plan.offload.patterns.push_back(std::move(name));
    else
      errors.error(item.origin, PlanMessage::wrongValue, "offload",
                   "states, params, saved, names of parameters, or state(NAME)", item.describe());
  }
}

/// Whether a schedule supports that many stages on p ranks.
static bool fits(const Schedule &schedule, int64_t stages, int64_t p) {
  return stages % p == 0 && stages / p >= int64_t(schedule.minChunks) && stages / p <= int64_t(schedule.maxChunks);
}

/// The number of stages that a schedule needs on the p ranks of an axis.
static std::string stagesNeeded(const Schedule &schedule, int64_t p, StringRef axis) {
  if (schedule.maxChunks == 1)
    return formatv("{0} stage{1}, one on each rank of \"{2}\"", p, p == 1 ? "" : "s", axis);
  if (schedule.maxChunks == schedule.minChunks)
    return formatv("{0} stages", schedule.minChunks * p);
  if (schedule.minChunks == 1)
    return formatv("a multiple of {0} stages", p);
  return formatv("a multiple of {0} stages above {1}", p, (schedule.minChunks - 1) * p);
}

/// The axis of the stages shards neither the batch nor a value: its ranks compute different parts of the graph.
static void checkStageAxis(const Plan &plan, PlanErrors &errors) {
  if (llvm::is_contained(*plan.batch.over, *plan.pipeline.over))
    errors.error(plan.batch.over.given() ? plan.batch.over.origin : plan.pipeline.over.origin,
                 PlanMessage::axisTwoRoles, *plan.pipeline.over, "batch.over", "pipeline.over");
  if (*plan.pipeline.stages < 2 || plan.pipeline.over->empty())
    return;
  auto check = [&](const WithOrigin<PlanAxes> &axes, StringRef key) {
    if (llvm::is_contained(*axes, *plan.pipeline.over))
      errors.error(axes.origin, PlanMessage::axisTwoRoles, *plan.pipeline.over, key, "pipeline.over");
  };
  for (const PlanShard &shard : plan.shard) {
    std::string rule = "shard." + shard.name.pattern.text().str() + ".";
    for (const auto &[dim, axes] : shard.dims)
      check(axes, rule + std::to_string(dim));
    if (shard.partial)
      check(*shard.partial, rule + "partial");
  }
}

void PlanBuilder::pipeline(Plan &plan) {
  PlanPipeline &pipeline = plan.pipeline;
  if (const PlanNode *over = root.at("pipeline.over"))
    pipeline.over = {over->isWord("none") ? "" : over->text, over->origin};
  else if (llvm::any_of(plan.mesh, [](const auto &axis) { return axis.first == "pp"; }))
    pipeline.over = {"pp", Origin()};
  int64_t width = plan.numDevices();
  pipeline.stages = integer("pipeline.stages", width);
  if (!pipeline.meshes->empty() && *pipeline.stages != width)
    errors.error(pipeline.stages.origin, PlanMessage::meshesCount, width, *pipeline.stages);
  // A stage without an axis has an error of its own.
  pipeline.schedule =
      word("pipeline.schedule", *pipeline.stages > width && !pipeline.over->empty() ? "interleaved" : "1f1b");
  pipeline.replicas = word("pipeline.replicas", "split");
  pipeline.scatterGather = boolean("pipeline.scatter_gather", false);
  if (pipeline.schedule.given() && !plan.train)
    errors.error(pipeline.schedule.origin, PlanMessage::scheduleInInference);
  checkStageAxis(plan, errors);
  const Schedule *schedule = findSchedule(*pipeline.schedule);
  if (!pipeline.meshes->empty() && schedule && !fits(*schedule, width, width))
    errors.error(pipeline.schedule.origin, PlanMessage::meshesSchedule, *pipeline.schedule,
                 stagesNeeded(*schedule, width, ""));
  else if (pipeline.meshes->empty() && pipeline.over->empty() && *pipeline.stages > 1)
    errors.error(pipeline.stages.origin, PlanMessage::oneStageARank, *pipeline.schedule,
                 "a mesh axis of its own (pipeline.over)", *pipeline.stages);
  else if (pipeline.meshes->empty() && schedule && !fits(*schedule, *pipeline.stages, width))
    errors.error(pipeline.stages.origin, PlanMessage::oneStageARank, *pipeline.schedule,
                 stagesNeeded(*schedule, width, *pipeline.over), *pipeline.stages);
  if (OrderTableProblem::isPath(*pipeline.schedule))
    table(pipeline, width);
  cuts(pipeline);
  asynchronous(plan);
}

/// Reads the keys of asynchronous schedules, and refuses those that need a wait for other stages before an update.
void PlanBuilder::asynchronous(Plan &plan) {
  PlanPipeline &pipeline = plan.pipeline;
  pipeline.flushEvery = integer("pipeline.flush_every", 64);
  pipeline.verticalSync = boolean("pipeline.vertical_sync", false);
  const Schedule *schedule = findSchedule(*pipeline.schedule);
  bool updatesAlone = schedule && schedule->behind;
  if (pipeline.flushEvery.given() && !updatesAlone)
    errors.error(pipeline.flushEvery.origin, PlanMessage::notAsynchronous, "pipeline.flush_every", *pipeline.schedule);
  if (*pipeline.verticalSync && !(updatesAlone && schedule->maxMicrobatches == 1))
    errors.error(pipeline.verticalSync.origin, PlanMessage::verticalSyncOf, *pipeline.schedule);
  if (*pipeline.flushEvery < 1 || *pipeline.flushEvery > maxOrderCount)
    errors.error(pipeline.flushEvery.origin, *pipeline.flushEvery < 1 ? PlanMessage::tooSmall : PlanMessage::tooLarge,
                 "pipeline.flush_every", *pipeline.flushEvery < 1 ? 1 : int64_t(maxOrderCount), *pipeline.flushEvery);
  if (!updatesAlone || !plan.train)
    return;
  if (*plan.train->clip > 0 && !*plan.train->clipsValues)
    errors.error(plan.train->clip.origin, PlanMessage::asynchronousClip, *pipeline.schedule);
  if (*plan.precision.lossScale > 0) // the default for fp16
    errors.error(plan.precision.lossScale.given() ? plan.precision.lossScale.origin : plan.precision.compute.origin,
                 PlanMessage::asynchronousScale, *pipeline.schedule);
  if (*plan.train->skipsNan)
    errors.error(plan.train->skipsNan.origin, PlanMessage::asynchronousNan, *pipeline.schedule);
  if (plan.train->averages)
    errors.error(plan.train->averages->decay.origin, PlanMessage::asynchronousAverages, *pipeline.schedule);
  if (*plan.zero.gather == "step")
    errors.error(plan.zero.gather.origin, PlanMessage::asynchronousGather, *pipeline.schedule);
  if (!plan.offload.empty())
    errors.error(pipeline.schedule.origin, PlanMessage::asynchronousOffload, *pipeline.schedule);
}

/// Reads a table of the user's own here, so that its errors are at its lines.
void PlanBuilder::table(PlanPipeline &pipeline, int64_t devices) {
  std::string content;
  auto read = OrderTableProblem::readTable(*pipeline.schedule, &content);
  if (!read) {
    errors.addSource(*pipeline.schedule, content);
    std::string reason = llvm::toString(read.takeError());
    StringRef rest = reason;
    unsigned line = 0;
    if (!rest.consume_front("line ") || rest.consumeInteger(10, line) || !rest.consume_front(": "))
      errors.error(pipeline.schedule.origin, PlanMessage::wrongTable, *pipeline.schedule + ": " + reason);
    else
      errors.error(Origin{Origin::File, *pipeline.schedule, line, 1}, PlanMessage::wrongTable, rest);
    return;
  }
  auto count = [](int64_t number, StringRef what) {
    return formatv("{0} {1}{2}", number, what, number == 1 ? "" : "s").str();
  };
  if (read->stages != *pipeline.stages || read->numDevices() != devices)
    errors.error(pipeline.schedule.origin, PlanMessage::tableOfOthers, *pipeline.schedule, count(read->stages, "stage"),
                 count(read->numDevices(), "device"), *pipeline.stages, count(devices, "device"));
  pipeline.ordered = read->microbatches;
}

void PlanBuilder::cuts(PlanPipeline &pipeline) {
  pipeline.cuts = {PlanPipeline::AutoCuts, Origin()};
  const PlanNode *cuts = root.at("pipeline.cuts");
  if (!cuts)
    return;
  pipeline.cuts.origin = cuts->origin;
  if (cuts->kind == PlanNode::List) {
    pipeline.cuts.value = PlanPipeline::Starts;
    pipeline.starts = patterns(*cuts);
    size_t count = pipeline.starts.size();
    std::string said = count == 1 ? "1 cut makes" : llvm::formatv("{0} cuts make", count).str();
    if (pipeline.over->empty() && pipeline.meshes->empty() && count > 0)
      errors.error(cuts->origin, PlanMessage::cutsNoAxis, said, count + 1);
    else if (int64_t(count) + 1 != *pipeline.stages)
      errors.error(cuts->origin, PlanMessage::cutsCount, said, count + 1, *pipeline.stages);
    return;
  }
  if (cuts->kind != PlanNode::Map)
    return;
  if (cuts->entries.size() != 1) {
    errors.error(cuts->origin, PlanMessage::wrongValue, "pipeline.cuts", "a mapping with one pattern",
                 std::to_string(cuts->entries.size()));
    return;
  }
  const PlanEntry &only = cuts->entries.front();
  pipeline.repeat = pattern(only.key, only.origin);
  pipeline.cuts.value = only.value.isWord("even") ? PlanPipeline::Even : PlanPipeline::Counts;
  for (const PlanNode &count : only.value.items) {
    pipeline.counts.push_back(toInt(count));
    if (toInt(count) < 1) // modules beside the matches join them, so that none becomes a stage of its own
      errors.error(count.origin, PlanMessage::tooSmall, "a count of pipeline.cuts", 1, count.text);
  }
  if (*pipeline.cuts == PlanPipeline::Counts && int64_t(pipeline.counts.size()) != *pipeline.stages)
    errors.error(only.value.origin, PlanMessage::cutCounts, pipeline.counts.size(), *pipeline.stages);
}

/// Error 11 comes before "not supported yet": the number of stages would be wrong in any compiler.
static void checkStagesADevice(const PlanNode &tree, PlanErrors &errors) {
  const PlanNode *word = tree.at("pipeline.schedule");
  const PlanNode *stages = tree.at("pipeline.stages");
  const PlanNode *over = tree.at("pipeline.over");
  const PlanNode *size = tree.at("mesh." + (over ? over->text : std::string("pp")));
  const Schedule *schedule = word ? findSchedule(word->text) : nullptr;
  if (!schedule || schedule->minChunks == 1 || !size || size->kind != PlanNode::Scalar)
    return;
  int64_t p = toInt(*size), count = stages ? toInt(*stages) : p, fewest = schedule->minChunks;
  if (p < 1 || fits(*schedule, count, p))
    return;
  errors.error(word->origin, PlanMessage::stagesADevice, schedule->name, stagesNeeded(*schedule, p, ""), count,
               fewest * p, fewest);
}

std::optional<Plan> buildPlan(const PlanNode &tree, ArrayRef<UsedRecipe> recipes, PlanErrors &errors) {
  size_t before = errors.size();
  Plan plan = PlanBuilder(tree, errors).run();
  plan.recipes = recipes;
  if (errors.size() != before)
    return std::nullopt;
  return plan;
}

std::optional<Plan> readPlan(ArrayRef<std::string> files, ArrayRef<std::string> settings, PlanErrors &errors) {
  return readPlan(files, {}, settings, errors);
}

std::optional<Plan> readPlan(ArrayRef<std::string> files, ArrayRef<std::pair<std::string, std::string>> texts,
                             ArrayRef<std::string> settings, PlanErrors &errors) {
  PlanLayers layers(errors);
  for (const std::string &file : files)
    layers.addFile(file);
  for (const auto &[name, text] : texts)
    layers.addText(text, name);
  for (const std::string &setting : settings)
    layers.addSet(setting);
  // If a layer is missing, errors in other layers would be its consequences.
  if (errors.any())
    return std::nullopt;
  checkStagesADevice(layers.tree(), errors);
  if (!checkPlanTree(layers.tree(), errors) || errors.any())
    return std::nullopt;
  return buildPlan(layers.tree(), layers.recipes(), errors);
}

} // namespace par
