#include "SaidPlan.h"

#include "par/Plan/Language/Tree.h"
#include "par/Solver/Schedules/Schedules.h"

using namespace llvm;

namespace par {

/// The stages that the keys of a pipeline say: their number, or one more than its cuts.
static int64_t stagesOf(const PlanNode &tree) {
  int64_t stages = 0;
  if (const PlanNode *number = tree.at("pipeline.stages"))
    return StringRef(number->text).getAsInteger(10, stages) || stages < 1 ? 0 : stages;
  const PlanNode *cuts = tree.at("pipeline.cuts");
  if (!cuts)
    return 0;
  if (cuts->kind == PlanNode::List)
    return static_cast<int64_t>(cuts->items.size()) + 1;
  bool counts = cuts->kind == PlanNode::Map && cuts->entries.size() == 1;
  return counts ? static_cast<int64_t>(cuts->entries.front().value.items.size()) : 0; // of `even` none
}

/// "mesh={pp: 2, dp: 1, tp: 1}"
static std::string meshOf(int64_t stages) { return ("mesh={pp: " + Twine(stages) + ", dp: 1, tp: 1}").str(); }

/// Settings under which a plan with these keys may be read, the plainest first.
static std::vector<std::vector<std::string>> assumptionsFor(const PlanNode &tree, int64_t stages) {
  if (stages > 1)
    return {{meshOf(stages)}, {meshOf(2), "pipeline.stages=" + std::to_string(stages)}};
  std::vector<std::vector<std::string>> all{{meshOf(1)}};
  const PlanNode *word = tree.at("pipeline.schedule");
  if (const Schedule *schedule = word ? findSchedule(word->text) : nullptr)
    all.push_back({meshOf(2), "pipeline.stages=" + std::to_string(2 * schedule->minChunks)});
  return all;
}

std::optional<Plan> readSaidPlan(const PlanText &text, SaidPlan &said) {
  auto read = [&](ArrayRef<std::string> more) {
    PlanErrors reported; // planModel reports them again
    std::vector<std::string> settings = text.settings;
    append_range(settings, more);
    return readPlan(text.files, settings, reported);
  };
  PlanErrors reported;
  PlanLayers layers(reported);
  for (const std::string &file : text.files)
    layers.addFile(file);
  for (const std::string &setting : text.settings)
    layers.addSet(setting);
  const PlanNode *mesh = layers.tree().at("mesh"), *meshes = layers.tree().at("pipeline.meshes");
  said.hasMesh = meshes || (mesh && !mesh->isWord("none") && !mesh->entries.empty());
  said.stages = stagesOf(layers.tree());
  std::optional<Plan> plain = read({});
  if (said.hasMesh)
    return plain;
  std::vector<std::vector<std::string>> assumptions = assumptionsFor(layers.tree(), said.stages);
  said.assumption = assumptions.front();
  said.namesAxes = !plain || !plain->shard.empty();
  for (const std::vector<std::string> &assumption : assumptions)
    if (std::optional<Plan> plan = read(assumption)) {
      said.assumption = assumption;
      return plan;
    }
  return std::nullopt;
}

} // namespace par
