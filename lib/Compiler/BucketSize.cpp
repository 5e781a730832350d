// Compiles on from the kernels with buckets of several sizes, and plays each bundle. Small buckets begin to be reduced
// early in backward and leave little for its end, large ones have fewer latencies: how much of either shows depends on
// all that runs beside them, which is why the whole step is played.
#include "CostChoices.h"

#include <map>

namespace par {

/// Phases whose modules do not depend on the size of buckets.
std::vector<std::string> bucketPhases() { return {"import", "partition", "kernels"}; }

static uint64_t maxPeak(const format::Bundle &bundle) {
  uint64_t peak = 0;
  for (const format::Program &program : bundle.programs)
    peak = std::max<uint64_t>(peak, program.arena.state + program.arena.pool);
  return peak;
}

/// Bytes of all parameters as the largest format has them: no bucket holds more.
static uint64_t parameterBytes(const format::Manifest &manifest) {
  uint64_t bytes = 0;
  for (const format::Tensor &tensor : manifest.tensors)
    if (tensor.kind == format::TensorKind::Parameter) {
      uint64_t elements = 1;
      for (int64_t dim : tensor.layout.shape)
        elements *= static_cast<uint64_t>(dim);
      bytes += elements * sizeof(float);
    }
  return bytes;
}

namespace {
/// Predicts the step with buckets of a size, each size once.
class BucketTrials {
public:
  BucketTrials(const Compiled &first, const CompilerOptions &options) : first(first), options(trialOptions(options)) {
    std::optional<uint64_t> memory = first.planned.memoryLimit();
    limit = std::max(memory.value_or(UINT64_MAX), maxPeak(*first.bundle));
  }

  void tryDefault() { enter(*first.planned.plan.plan.collectives.bucket, playStep(first.planned, *first.bundle)); }

  void tryOne(uint64_t size) {
    if (size == 0 || steps.count(size))
      return;
    PlannedModel planned = first.planned;
    planned.plan.plan.collectives.bucket.value = size;
    CompileObserver silent;
    Compiled trial = compile(std::move(planned), options, silent, &first);
    bool fits = trial.bundle && maxPeak(*trial.bundle) <= limit;
    enter(size, fits ? playStep(trial.planned, *trial.bundle) : std::nullopt);
  }

  /// On a tie the size that was tried first.
  uint64_t best() const { return bestSize; }
  const std::map<uint64_t, int64_t> &all() const { return steps; }

private:
  void enter(uint64_t size, std::optional<int64_t> ns) {
    int64_t step = steps[size] = ns.value_or(INT64_MAX);
    if (steps.size() == 1 || step < steps[bestSize])
      bestSize = size;
  }

  const Compiled &first;
  CompilerOptions options;
  uint64_t limit, bestSize = 0;
  std::map<uint64_t, int64_t> steps; ///< by size
};
} // namespace

std::optional<BucketChoice> chooseBucket(const Compiled &first, const CompilerOptions &options) {
  constexpr uint64_t smallest = 64 << 10, largest = uint64_t(1) << 30;
  uint64_t bytes = parameterBytes(first.bundle->manifest);
  BucketTrials trials(first, options);
  trials.tryDefault();
  for (uint64_t size = smallest; size <= largest; size *= 4) {
    trials.tryOne(size);
    if (size >= bytes) // larger ones hold the same
      break;
  }
  uint64_t best = trials.best();
  trials.tryOne(best / 2);
  trials.tryOne(best * 2);
  const std::map<uint64_t, int64_t> &steps = trials.all();
  BucketChoice choice{trials.best(), steps.size(), steps.at(trials.best()),
                      steps.at(*first.planned.plan.plan.collectives.bucket)};
  return choice.ns == INT64_MAX ? std::nullopt : std::optional(choice);
}

} // namespace par
