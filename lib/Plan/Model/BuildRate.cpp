// The key train.optimizer.lr.
#include "PlanBuilder.h"

#include <cmath>

using namespace llvm;

namespace par {

/// A number of one_cycle or step that must be positive.
static WithOrigin<double> positive(const PlanReader &reader, const std::string &path, double fallback) {
  WithOrigin<double> number = reader.number(path, fallback);
  if (!(*number > 0))
    reader.errors.error(number.origin, PlanMessage::wrongValue, path, "a positive number", reader.root.at(path)->text);
  return number;
}

static WithOrigin<std::vector<int64_t>> readMilestones(const PlanReader &reader, const std::string &path) {
  WithOrigin<std::vector<int64_t>> milestones;
  const PlanNode *node = reader.root.at(path);
  if (!node)
    return milestones;
  milestones.origin = node->origin;
  for (const PlanNode &step : node->items)
    if (milestones.value.emplace_back(toInt(step)) < 0)
      reader.errors.error(step.origin, PlanMessage::tooSmall, "a step of " + path, 0, step.text);
  return milestones;
}

static void readCycle(const PlanReader &reader, const std::string &path, PlanLearningRate &lr) {
  lr.divFactor = positive(reader, path + ".div_factor", 25);
  lr.finalDivFactor = positive(reader, path + ".final_div_factor", 1e4);
  lr.anneal = reader.word(path + ".anneal", "cosine");
  lr.threePhase = reader.boolean(path + ".three_phase", false);
  lr.pctStart = reader.number(path + ".pct_start", 0.3);
  // With three phases the rate falls for as long as it rose.
  if (double most = *lr.threePhase ? 0.5 : 1; !(*lr.pctStart >= 0 && *lr.pctStart <= most))
    reader.errors.error(lr.pctStart.origin, PlanMessage::wrongValue, path + ".pct_start",
                        *lr.threePhase ? "a number from 0 to 0.5 with three_phase" : "a number from 0 to 1",
                        reader.root.at(path + ".pct_start")->text);
  if (const PlanNode *said = reader.root.at(path + ".div_factor"); said && *lr.divFactor > 0)
    if (!std::isfinite(static_cast<float>(*lr.peak / *lr.divFactor)))
      reader.errors.error(said->origin, PlanMessage::wrongValue, path + ".div_factor",
                          "a number by which the peak is divided within f32", said->text);
}

PlanLearningRate buildRate(const PlanReader &reader) {
  const std::string path = "train.optimizer.lr";
  PlanLearningRate lr;
  const PlanNode *peak = reader.shorthand(path, "peak");
  lr.peak = {peak ? toNumber(*peak) : 1e-3, peak ? peak->origin : Origin()};
  lr.warmup = reader.integer(path + ".warmup", 0);
  lr.decay = reader.word(path + ".decay", "constant");
  lr.steps = reader.integer(path + ".steps", 0);
  lr.floor = reader.number(path + ".floor", 0);
  lr.milestones = readMilestones(reader, path + ".milestones");
  lr.stepSize = reader.integer(path + ".step_size", 0);
  lr.gamma = positive(reader, path + ".gamma", 0.1);
  readCycle(reader, path, lr);
  bool cycles = *lr.decay == "one_cycle", ends = cycles || *lr.decay == "cosine" || *lr.decay == "linear";
  if (ends && *lr.steps <= (cycles ? 0 : *lr.warmup))
    reader.errors.error(lr.decay.origin, PlanMessage::lrSteps, *lr.decay,
                        *lr.steps ? std::to_string(*lr.steps) : "none");
  if (*lr.decay == "step" && lr.milestones->empty() == (*lr.stepSize == 0))
    reader.errors.error(lr.decay.origin, PlanMessage::lrMilestones, *lr.stepSize ? "both" : "none");
  return lr;
}

} // namespace par
