#include "par/Phases/Import/Import.h"
#include "par/Phases/Import/Names.h"

namespace par {

static void readLoss(const PlanLoss &loss, ImportOptions &options) {
  if (loss.kind->empty() && loss.output->empty())
    return; // the only scalar float output
  AttachedLoss &attached = options.loss.emplace();
  attached.kind = loss.kind->empty() ? *loss.output : *loss.kind;
  attached.output = loss.kind->empty() ? "" : *loss.output;
  if (!loss.labels->empty())
    attached.labels = *loss.labels;
  attached.ignore = *loss.ignore;
  attached.smoothing = *loss.smoothing;
  attached.shift = *loss.shift;
  attached.weights = *loss.weights;
  attached.soft = *loss.soft;
}

/// Number of groups of consecutive samples of a batch with statistics of their own.
static int64_t countBatchNormGroups(const Plan &plan) {
  int64_t groups = 1, microbatches = plan.batch.microbatches->value_or(1);
  if (!llvm::StringRef(*plan.batchNorm).getAsInteger(10, groups))
    return groups;
  return *plan.batchNorm == "local" ? microbatches / plan.turns() * plan.axesSize(*plan.batch.over) : microbatches;
}

/// Other inputs and the labels have the batch in the dim with its symbol.
static void readBatchDim(const Plan &plan, const NameTable &names, ImportOptions &options) {
  std::optional<InputDim> at = findBatchDim(plan, names);
  if (!at) {
    if (!plan.batch.dim->empty())
      options.batchSymbol = *plan.batch.dim;
    return;
  }
  const NameTable::Value &input = names.inputs[at->input];
  if (at->dim != 0)
    options.batchDims[input.name] = at->dim;
  int64_t size = 0;
  bool named = at->dim >= 0 && at->dim < int64_t(input.shape.size()) &&
               llvm::StringRef(input.shape[at->dim]).getAsInteger(10, size);
  options.batchSymbol = named ? input.shape[at->dim] : "";
}

ImportOptions importOptions(const Plan &plan, const NameTable &names, PlanErrors &errors) {
  ImportOptions options;
  for (const auto &[symbol, size] : plan.dims)
    options.dims[symbol] = *size;
  for (const auto &[symbol, size] : plan.prefill)
    options.prefill[symbol] = *size;
  options.batch = *plan.batch.size;
  readBatchDim(plan, names, options);
  for (const PlanInput &input : plan.inputs)
    for (unsigned index : resolvePattern(input.name, names, errors).inputs) {
      const std::string &name = names.inputs[index].name;
      if (input.batch)
        options.batchDims[name] = *saidBatchDim(plan, names, index);
      if (input.value)
        options.values[name] = **input.value;
    }
  options.carry = resolveCarries(plan, names, errors);
  options.batchNormGroups = countBatchNormGroups(plan);
  options.seed = *plan.seed;
  options.train = plan.train.has_value();
  options.serve = !options.train;
  if (plan.train) {
    options.allowLost = *plan.train->lost == "allow";
    readLoss(plan.train->loss, options);
  }
  return options;
}

} // namespace par
