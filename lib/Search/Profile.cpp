// Compiles thin models without machine code, plays them, and takes the first microbatch and the update apart.
#include "par/Search/Profile.h"

#include "par/Compiler/Trial.h"
#include "par/Inspect/Memory.h"
#include "par/Phases/Import/Names.h"
#include "par/Simulator/Simulator.h"

#include "llvm/ADT/MapVector.h"

#include <cmath>
#include <future>

using namespace llvm;

namespace par {

static constexpr int64_t RankCost::*members[] = {&RankCost::forward, &RankCost::backward, &RankCost::compute,
                                                 &RankCost::update,  &RankCost::params,   &RankCost::grads,
                                                 &RankCost::states,  &RankCost::saved,    &RankCost::buffers};

static constexpr std::vector<int64_t> RankCost::*fronts[] = {&RankCost::kept, &RankCost::again};

RankCost RankCost::operator+(const RankCost &other) const {
  RankCost sum = *this;
  for (auto member : members)
    sum.*member += other.*member;
  if (prices.empty())
    sum.prices = other.prices;
  for (auto front : fronts) {
    (sum.*front).resize(std::max((sum.*front).size(), (other.*front).size()));
    for (auto [point, more] : zip(sum.*front, other.*front)) // one without a front adds nothing
      point += more;
  }
  return sum;
}

/// Applies a function to each number.
template <typename Change>
static RankCost changed(RankCost cost, Change change) {
  for (auto member : members)
    cost.*member = change(cost.*member);
  for (auto front : fronts)
    for (int64_t &point : cost.*front)
      point = change(point);
  return cost;
}

RankCost RankCost::operator*(int64_t times) const {
  return changed(*this, [&](int64_t number) { return number * times; });
}

RankCost RankCost::operator/(int64_t parts) const {
  return changed(*this, [&](int64_t number) { return number / parts; });
}

/// One run of a block: its name, when its local work begins, how long that is, and how long it is without elements.
struct PlayedRun {
  StringRef block;
  int64_t begin = 0, work = 0, fixed = 0;
};

static std::vector<PlayedRun> runsOf(const format::Program &program, const Simulation &simulation, int64_t launch) {
  MapVector<uint32_t, PlayedRun> runs;
  for (const PlayedInstruction &played : simulation.instructionsOf(0)) {
    if (played.communication)
      continue;
    PlayedRun fresh{program.blocks[played.block].name, played.start};
    PlayedRun &run = runs.try_emplace(played.run, fresh).first->second;
    run.begin = std::min(run.begin, played.start);
    run.work += played.duration;
    run.fixed += std::min(played.duration, launch);
  }
  std::vector<PlayedRun> ordered;
  for (auto &[number, run] : runs)
    ordered.push_back(run);
  llvm::stable_sort(ordered, [](const PlayedRun &a, const PlayedRun &b) { return a.begin < b.begin; });
  return ordered;
}

/// Times of the first forward and the first backward, which with several microbatches have no reduction of gradients
/// beside them, and of the update of all elements, which are so many times the rank's.
static RankCost timesOf(const format::Program &program, const Simulation &simulation, int64_t launch, double shares) {
  RankCost cost;
  std::vector<PlayedRun> runs = runsOf(program, simulation, launch);
  for (auto [index, run] : enumerate(runs)) {
    int64_t end = index + 1 < runs.size() ? runs[index + 1].begin : simulation.step;
    StringRef part = run.block.split('.').second;
    bool forward = part.starts_with("forward"), backward = part.starts_with("backward");
    if (forward && cost.forward == 0) {
      cost.forward = end - run.begin;
      cost.compute += run.work;
    } else if (backward && cost.backward == 0) {
      cost.backward = end - run.begin;
      cost.compute += run.work;
    } else if (!forward && !backward) {
      cost.update += run.fixed + std::llround(static_cast<double>(run.work - run.fixed) * shares);
    }
  }
  return cost;
}

static RankCost costOf(const Compiled &compiled, const Simulation &simulation, double shares) {
  const format::Bundle &bundle = *compiled.bundle;
  int64_t launch = CostTable(compiled.planned.hardware).kernel(0).ns;
  RankCost cost = timesOf(bundle.programs.front(), simulation, launch, shares);
  RoleMemory memory = measureMemory(bundle).front();
  cost.params = memory.params;
  cost.grads = memory.grads;
  cost.states = memory.states;
  cost.saved = memory.saved;
  cost.buffers = memory.buffers;
  for (const StageRecompute &stage : compiled.recomputes) {
    if (stage.front.empty())
      continue;
    cost.kept.push_back(stage.allBytes);
    cost.again.push_back(0);
    cost.prices.push_back(0);
    for (const RecomputePoint &point : stage.front) {
      cost.kept.push_back(point.savedBytes);
      cost.again.push_back(point.ns);
      cost.prices.push_back(point.nsPerByte);
    }
    break; // a profile has one stage
  }
  return cost;
}

Profiler::Profiler(const std::shared_ptr<const Model> &model, const PlanText &base, const Space &space)
    : base(base), space(space), batch(space.batch), stack(LayerStack::find(model->graph)),
      one{model, std::nullopt, 0, ""} {
  if (!stack)
    return;
  auto thin = [&](int64_t kept) -> std::shared_ptr<const Model> {
    onnx::Model graph = stack->keep(model->graph, kept);
    NameTable names = collectNames(graph);
    return std::make_shared<const Model>(Model{std::move(graph), std::move(names)});
  };
  one.model = thin(1);
  two.model = thin(2);
  PlanText single = base;
  for (const char *setting : {"ranks=null", "pipeline=null", "zero=null", "mesh_order=null", "offload=null",
                              "batch.microbatch_size=null", "mesh={pp: 1, dp: 1, tp: 1}"})
    single.settings.push_back(setting);
  auto isPlanned = [&](const std::shared_ptr<const Model> &of) {
    return planModel(of, single, {}, [](const CompileDiagnostic &) {}).has_value();
  };
  // Ranks of a profile are as many as its batch needs, which for thousands costs more than the layers.
  constexpr int64_t fewSamples = 64; // two microbatches of all numbers of samples, on several ranks
  if (space.open.microbatches && space.batch > fewSamples && space.batch % fewSamples == 0) {
    single.settings.push_back("batch.size=" + std::to_string(fewSamples));
    if (isPlanned(one.model))
      batch = fewSamples;
    single.settings.pop_back();
  }
  // A plan may name a layer that these lack.
  if (!isPlanned(one.model) && isPlanned(model)) {
    stack.reset();
    one.model = model;
  }
}

/// Samples of the step of a candidate's profile: of two microbatches or more, on several ranks.
int64_t Profiler::batchOf(const Candidate &candidate) const {
  if (batch == space.batch)
    return batch;
  constexpr int64_t fewest = 4;
  int64_t parts = fewest;
  while (2 * parts * candidate.samples <= batch)
    parts *= 2;
  return parts * candidate.samples;
}

/// The candidate's tensor axis and samples on one stage. Two microbatches where the batch has so many: beside the first
/// one no gradients are reduced.
Candidate Profiler::profiled(const Candidate &candidate) const {
  Candidate plain;
  plain.tensor = candidate.tensor;
  plain.sequence = candidate.sequence;
  plain.lean = candidate.lean;
  plain.samples = candidate.samples;
  int64_t parts = batchOf(candidate) / candidate.samples;
  plain.microbatches = 1;
  for (int64_t divisor = 2; plain.microbatches == 1 && divisor <= parts; ++divisor)
    if (parts % divisor == 0)
      plain.microbatches = divisor;
  plain.data = parts / plain.microbatches;
  plain.zero = space.rounds && candidate.zero > 0 && plain.data > 1;
  return plain;
}

std::optional<RankCost> Profiler::measure(Thin &thin, const Candidate &plain) const {
  PlanText text = base;
  for (const char *setting : {"mesh=null", "pipeline=null", "zero=null", "batch.microbatch_size=null", "offload=null",
                              "mesh_order=null", "recompute=none"})
    text.settings.push_back(setting);
  Space whole = space;
  whole.open = {.recipe = space.open.recipe};
  if (batch != space.batch)
    text.settings.push_back("batch.size=" + std::to_string(batchOf(plain)));
  for (const std::string &setting : whole.settingsOf(plain))
    text.settings.push_back(setting);
  auto keepFirst = [&](const CompileDiagnostic &finding) {
    if (!finding.warning && thin.refused.empty())
      thin.refused = finding.message;
  };
  std::optional<PlannedModel> planned = planModel(thin.model, text, {}, keepFirst);
  if (!planned)
    return std::nullopt;
  // Split keeps weights that are rounded once a step up to a share of memory, which few layers are below and all are
  // not: without a limit both models round alike.
  planned->plan.plan.target.memory.value = std::nullopt;
  planned->hardware.capacity = 0;
  if (space.open.recompute)
    planned->plan.plan.recompute.excess["s0"] = 0; // nothing is recomputed; its front is found
  CompileObserver silent;
  ++thin.compiled;
  Compiled trial = compileTrial(std::move(*planned), silent, thin.first ? &*thin.first : nullptr, TrialEffort::Sample);
  llvm::for_each(trial.findings, keepFirst);
  if (!trial.bundle)
    return std::nullopt;
  Hardware hardware = trial.planned.hardware;
  hardware.cores = 0;
  Expected<Simulation> simulation = simulate(*trial.bundle, trial.planned.entry(), hardware);
  if (!simulation) {
    consumeError(simulation.takeError());
    return std::nullopt;
  }
  double shares = plain.zero ? space.shares(plain.data) : 1; // masters and states of all its ranks
  RankCost cost = par::costOf(trial, *simulation, shares);
  for (auto member : {&RankCost::params, &RankCost::states})
    cost.*member = std::llround(static_cast<double>(cost.*member) * shares);
  if (!thin.first)
    thin.first.emplace(std::move(trial));
  return cost;
}

int64_t Profiler::layers() const { return stack ? stack->all() : std::max<int64_t>(1, one.model->graph.nodes.size()); }

std::string Profiler::describeLayers() const {
  if (!stack)
    return "";
  return stack->module() + ", of which " + std::to_string(stack->size()) + " of " + std::to_string(stack->all()) +
         " are equal";
}

const std::optional<ModelCost> &Profiler::costOf(const Candidate &candidate) {
  auto [entry, fresh] = known.try_emplace(keyOf(candidate));
  std::optional<ModelCost> &cost = entry->second;
  if (!fresh)
    return cost;
  Candidate plain = profiled(candidate);
  if (!stack) {
    if (std::optional<RankCost> whole = measure(one, plain))
      cost = ModelCost{*whole, {}, 0};
    return cost;
  }
  // Each has a context of its own, so they compile at once.
  auto beside = std::async(std::launch::async, [&] { return measure(two, plain); });
  std::optional<RankCost> first = measure(one, plain), second = beside.get();
  if (first && second) {
    ModelCost made;
    made.layer = *second + *first * -1;
    made.rest = *first + made.layer * -1;
    made.layers = stack->size();
    cost = made;
  }
  return cost;
}

} // namespace par
