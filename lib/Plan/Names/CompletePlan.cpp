// Defaults of a plan that follow from the model.
#include "par/Plan/Names/NameTable.h"
#include "par/Solver/Order/OrderTable.h"
#include "par/Solver/Schedules/Schedules.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

static bool isSymbol(StringRef dim) {
  int64_t number = 0;
  return !dim.empty() && dim.getAsInteger(10, number);
}

/// Counts a negative dim from the last.
static int64_t countedDim(int64_t dim, const NameTable::Value &input) {
  return dim < 0 ? dim + int64_t(input.shape.size()) : dim;
}

std::optional<int64_t> saidBatchDim(const Plan &plan, const NameTable &names, unsigned input) {
  std::optional<int64_t> said;
  for (const PlanInput &rule : plan.inputs)
    if (rule.batch && is_contained(matchPattern(rule.name.pattern, names).inputs, input))
      said = **rule.batch ? countedDim(***rule.batch, names.inputs[input]) : -1;
  return said;
}

std::optional<InputDim> findBatchDim(const Plan &plan, const NameTable &names) {
  int64_t number = 0;
  if (isSymbol(*plan.batch.dim))
    return std::nullopt;
  (void)StringRef(*plan.batch.dim).getAsInteger(10, number);
  for (auto [index, input] : enumerate(names.inputs)) {
    std::optional<int64_t> said = saidBatchDim(plan, names, index);
    if (said != -1)
      return InputDim{unsigned(index), said && plan.batch.dim->empty() ? *said : countedDim(number, input)};
  }
  return std::nullopt;
}

/// The size or symbol of the batch dim; empty if there is none.
static std::string batchDim(const Plan &plan, const NameTable &names) {
  if (isSymbol(*plan.batch.dim))
    return *plan.batch.dim;
  std::optional<InputDim> at = findBatchDim(plan, names);
  if (!at)
    return "";
  ArrayRef<std::string> shape = names.inputs[at->input].shape;
  return at->dim >= 0 && at->dim < int64_t(shape.size()) ? shape[at->dim] : "";
}

/// The setting for a batch in another dim, as with the sequence first.
static std::string otherDims(const Plan &plan, const NameTable &names) {
  for (const NameTable::Value &input : names.inputs)
    for (auto [dim, text] : enumerate(input.shape))
      if (is_contained(names.symbols, text) &&
          none_of(plan.dims, [&](const auto &entry) { return entry.first == text; }))
        return formatv("; \"{0}\" has \"{1}\" in dim {2}: say batch.dim: {1} if that is the batch", input.name, text,
                       dim)
            .str();
  return "; if another dim is the batch, say which: batch.dim";
}

/// The largest divisor of `number` that is at most `limit`.
static int64_t largestDivisor(int64_t number, int64_t limit) {
  for (int64_t divisor = std::min(number, limit); divisor > 1; --divisor)
    if (number % divisor == 0)
      return divisor;
  return 1;
}

/// Who shares a microbatch: `4 ranks of "dp"`.
static std::string ranksOver(const Plan &plan) {
  int64_t ranks = plan.axesSize(*plan.batch.over);
  if (plan.batch.over->empty() || plan.turns() > 1)
    return "1 rank";
  return formatv("{0} rank{1} of \"{2}\"", ranks, ranks == 1 ? "" : "s", llvm::join(*plan.batch.over, "\", \"")).str();
}

/// The origin for an error about a batch that does not divide: its size, else the key that divides it.
static const Origin &splitOrigin(const PlanBatch &batch) {
  if (batch.size.given())
    return batch.size.origin;
  if (batch.microbatches.given())
    return batch.microbatches.origin;
  return batch.microbatchSize.origin;
}

/// Checks the number of groups that share batch-norm statistics: none may span two microbatches, and all have one size.
static bool splitGroups(const Plan &plan, PlanErrors &errors) {
  int64_t groups = 0, size = **plan.batch.size, microbatches = **plan.batch.microbatches;
  if (StringRef(*plan.batchNorm).getAsInteger(10, groups))
    return true; // a word
  if (groups % microbatches != 0) {
    errors.error(plan.batchNorm.origin, PlanMessage::groupsDoNotSplit, groups, microbatches);
    return false;
  }
  if (size % groups != 0) {
    int64_t below = std::max(size / groups * groups, groups);
    errors.error(plan.batchNorm.origin, PlanMessage::batchIntoGroups, size, groups, below, below + groups);
    return false;
  }
  return true;
}

/// Maximum batch size: far above any real one, and far below an overflow.
static constexpr int64_t maxSamples = int64_t(1) << 40;

/// The number of microbatches of a plan that does not set it.
static WithOrigin<std::optional<int64_t>> chooseMicrobatches(const Plan &plan) {
  const PlanBatch &batch = plan.batch;
  if (!plan.carry.empty())
    return {1, plan.carry.front().output.origin};
  if (plan.pipeline.ordered)
    return {*plan.pipeline.ordered * plan.turns(), plan.pipeline.schedule.origin};
  int64_t p = plan.numDevices(), rounds = p > 1 ? 4 * p : 1;
  if (batch.size->has_value()) {
    int64_t share = std::max<int64_t>(1, **batch.size / plan.axesSize(*batch.over));
    bool sized = batch.microbatchSize->has_value();
    rounds = sized ? std::max<int64_t>(1, share / **batch.microbatchSize) : p > 1 ? largestDivisor(share, 4 * p) : 1;
  }
  if (const Schedule *schedule = findSchedule(*plan.pipeline.schedule))
    rounds = std::min<int64_t>(rounds, schedule->maxMicrobatches);
  return {rounds * plan.turns(), Origin::automatic()};
}

/// Checks the number of microbatches of an asynchronous schedule.
static bool checkAsynchronous(const Plan &plan, PlanErrors &errors) {
  const PlanPipeline &pipeline = plan.pipeline;
  const Schedule *schedule = findSchedule(*pipeline.schedule);
  const Origin &origin = plan.batch.microbatches.given() ? plan.batch.microbatches.origin : pipeline.schedule.origin;
  int64_t rounds = plan.rounds(), stages = *pipeline.stages, turns = plan.turns();
  if (schedule && rounds > int64_t(schedule->maxMicrobatches)) {
    errors.error(origin, PlanMessage::asynchronousMicrobatches, schedule->name, rounds * turns, turns);
    return false;
  }
  if (schedule && schedule->microbatchForEachStage && rounds < stages) {
    errors.error(origin, PlanMessage::fewMicrobatches, schedule->name, stages, rounds * turns, stages * turns);
    return false;
  }
  int64_t flush = *pipeline.flushEvery;
  if (plan.train && schedule && schedule->behind && rounds <= maxOrderCount && flush * rounds > maxOrderCount) {
    errors.error(pipeline.flushEvery.given() ? pipeline.flushEvery.origin : origin, PlanMessage::flushTooLate, flush,
                 rounds, flush * rounds, int64_t(maxOrderCount), maxOrderCount / rounds);
    return false;
  }
  return true;
}

/// Whole microbatches go round, and a table orders rounds.
static bool splitRounds(const Plan &plan, PlanErrors &errors) {
  const PlanPipeline &pipeline = plan.pipeline;
  int64_t microbatches = **plan.batch.microbatches, turns = plan.turns();
  if (microbatches % turns != 0) {
    errors.error(plan.batch.microbatches.origin, PlanMessage::roundsDoNotSplit, microbatches, turns,
                 microbatches / turns * turns + turns);
    return false;
  }
  if (pipeline.ordered && *pipeline.ordered != plan.rounds()) {
    errors.error(pipeline.schedule.origin, PlanMessage::tableMicrobatches, *pipeline.schedule,
                 *pipeline.ordered * turns, microbatches);
    return false;
  }
  return checkAsynchronous(plan, errors);
}

static bool splitBatch(Plan &plan, PlanErrors &errors) {
  PlanBatch &batch = plan.batch;
  int64_t over = plan.axesSize(*batch.over) / plan.turns(); // ranks that share a microbatch
  if (!batch.microbatches->has_value())
    batch.microbatches = chooseMicrobatches(plan);
  int64_t microbatches = **batch.microbatches;
  if (microbatches > maxSamples / over) {
    errors.error(batch.microbatches.origin, PlanMessage::tooLarge, "batch.microbatches", maxSamples / over,
                 microbatches);
    return false;
  }
  if (int64_t most = maxSamples / over / microbatches; batch.microbatchSize->value_or(1) > most) {
    errors.error(batch.microbatchSize.origin, PlanMessage::tooLarge, "batch.microbatch_size", most,
                 **batch.microbatchSize);
    return false;
  }
  if (!splitRounds(plan, errors))
    return false;
  if (!batch.size->has_value())
    batch.size = {over * microbatches * batch.microbatchSize->value_or(1), Origin::automatic()};
  int64_t size = **batch.size, unit = over * microbatches;
  if (size % unit != 0) {
    int64_t below = size / unit * unit;
    int64_t first = below > 0 ? below : unit;
    errors.error(splitOrigin(batch), PlanMessage::batchDoesNotSplit, size, microbatches, ranksOver(plan), first,
                 first + unit);
    return false;
  }
  int64_t each = size / unit;
  if (batch.microbatchSize->has_value() && **batch.microbatchSize != each) {
    // A written plan holds all three.
    std::string product = std::to_string(unit * **batch.microbatchSize);
    if (batch.microbatches.given())
      product += "; batch.microbatch_size=null makes them of " + std::to_string(each);
    errors.error(splitOrigin(batch), PlanMessage::batchContradicts, size, microbatches, **batch.microbatchSize,
                 ranksOver(plan), product);
    return false;
  }
  if (!batch.microbatchSize->has_value())
    batch.microbatchSize = {each, Origin::automatic()};
  return splitGroups(plan, errors);
}

bool completePlan(Plan &plan, const NameTable &names, PlanErrors &errors) {
  std::string dim = batchDim(plan, names);
  int64_t fixed = 0;
  auto bound = llvm::find_if(plan.dims, [&](const auto &entry) { return entry.first == dim; });
  if (bound != plan.dims.end())
    fixed = *bound->second;
  else if (StringRef(dim).getAsInteger(10, fixed))
    fixed = 0;
  if (fixed > 0) {
    if (plan.batch.size->has_value() && **plan.batch.size != fixed) {
      if (bound != plan.dims.end())
        errors.error(plan.batch.size.origin, PlanMessage::batchNotDims, **plan.batch.size, dim, fixed);
      else
        errors.error(plan.batch.size.origin, PlanMessage::batchNotTheModels, **plan.batch.size, fixed,
                     otherDims(plan, names));
      return false;
    }
    if (!plan.batch.size->has_value())
      plan.batch.size = {fixed, Origin::automatic()};
  }
  if (!splitBatch(plan, errors))
    return false;
  if (bound == plan.dims.end() && llvm::is_contained(names.symbols, dim))
    plan.dims.push_back({dim, {**plan.batch.size, Origin::automatic()}});
  return true;
}

} // namespace par
