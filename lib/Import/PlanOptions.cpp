#include "par/Import/Import.h"
#include "par/Import/Names.h"

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
}

/// In how many groups of consecutive samples a batch has statistics of its own.
static int64_t countBatchNormGroups(const Plan &plan) {
  int64_t groups = 1, microbatches = plan.batch.microbatches->value_or(1);
  if (!llvm::StringRef(*plan.batchNorm).getAsInteger(10, groups))
    return groups;
  return *plan.batchNorm == "local" ? microbatches / plan.turns() * plan.axesSize(*plan.batch.over) : microbatches;
}

ImportOptions importOptions(const Plan &plan, const NameTable &names, PlanErrors &errors) {
  ImportOptions options;
  for (const auto &[symbol, size] : plan.dims)
    options.dims[symbol] = *size;
  options.batch = *plan.batch.size;
  int64_t dim = 0;
  bool isNumber = !llvm::StringRef(*plan.batch.dim).getAsInteger(10, dim);
  if (!plan.batch.dim->empty() && !isNumber)
    options.batchSymbol = *plan.batch.dim;
  if (isNumber && !names.inputs.empty()) {
    options.batchDims[names.inputs.front().name] = dim;
    const auto &shape = names.inputs.front().shape;
    int64_t size = 0;
    bool named = dim >= 0 && dim < int64_t(shape.size()) && llvm::StringRef(shape[dim]).getAsInteger(10, size);
    options.batchSymbol = named ? shape[dim] : ""; // other inputs and the labels have it where they have the symbol
  }
  for (const PlanInput &input : plan.inputs)
    for (unsigned index : resolvePattern(input.name, names, errors).inputs) {
      const std::string &name = names.inputs[index].name;
      if (input.batch)
        options.batchDims[name] = (**input.batch).value_or(-1);
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
