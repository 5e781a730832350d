// The choice of an engine for a graph, and plans.
#include "par/cuda/dnn/DnnGraph.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace par::cuda {

using dnn::Attribute;
using dnn::Kind;
using dnn::Type;

std::string DnnChoice::text() const {
  std::string text = std::to_string(engine);
  for (auto [type, value] : knobs)
    text += "," + std::to_string(type) + ":" + std::to_string(value);
  return text;
}

std::optional<DnnChoice> DnnChoice::read(const std::string &text) {
  DnnChoice choice;
  const char *at = text.data(), *end = at + text.size();
  auto number = [&](auto &value) {
    auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc();
  };
  auto skip = [&](char c) { return at != end && *at++ == c; };
  if (!number(choice.engine))
    return std::nullopt;
  while (at != end) {
    auto &[type, value] = choice.knobs.emplace_back();
    if (!skip(',') || !number(type) || !skip(':') || !number(value))
      return std::nullopt;
  }
  return choice;
}

namespace {

/// The choice that a configuration of the heuristic's stands for, and its engine's notes.
struct Candidate {
  DnnChoice choice;
  std::vector<int> notes;

  bool has(int note) const { return std::find(notes.begin(), notes.end(), note) != notes.end(); }
};

Candidate candidateOf(const DnnNode &config) {
  Candidate candidate;
  auto engine = config.others(Attribute::ConfigEngine, Kind::Engine, 1);
  candidate.choice.engine = engine.at(0)->integers(Attribute::EngineIndex, 1).at(0);
  candidate.notes = engine.at(0)->members(Attribute::EngineNotes, Type::NumericalNote, dnn::noteCount);
  for (const auto &knob : config.others(Attribute::ConfigKnobChoices, Kind::KnobChoice, dnn::knobCount))
    candidate.choice.knobs.emplace_back(knob->members(Attribute::KnobType, Type::KnobType, 1).at(0),
                                        knob->integers(Attribute::KnobValue, 1).at(0));
  return candidate;
}

} // namespace

/// Why an engine must not be taken, whatever it needs; nothing where it may be.
static const char *refusalOf(const Candidate &candidate, const DnnLimits &limits) {
  if (candidate.has(dnn::noteNondeterministic))
    return "give other bits each time";
  bool rounds = candidate.has(dnn::noteTensorCore) || candidate.has(dnn::noteDownConvert);
  if (candidate.has(dnn::noteReducedPrecision) || (!limits.tensorCores && rounds))
    return "round f32 to less";
  return nullptr;
}

std::vector<DnnChoice> DnnGraph::propose(const DnnLimits &limits, size_t most, std::string *why) const {
  std::vector<DnnChoice> good;
  std::map<std::string, int> reasons;
  uint64_t least = UINT64_MAX;
  for (int mode : {dnn::heuristicBest, dnn::heuristicFallback}) {
    if (good.size() == most)
      break;
    DnnNode heuristic(dnn, Kind::Heuristic, whose, "the heuristic");
    heuristic.set(Attribute::HeuristicGraph, *graph).set(Attribute::HeuristicMode, Type::HeuristicMode, mode);
    if (dnn.device)
      heuristic.set(Attribute::HeuristicDevice, dnn.device, Type::Descriptor);
    // A mode that knows nothing of the graph says so here.
    if (int status = heuristic.tryFinalize()) {
      ++reasons["of the heuristic: " + dnn.words(status)];
      continue;
    }
    constexpr int64_t room = 64;
    for (const auto &config : heuristic.others(Attribute::HeuristicResults, Kind::EngineConfig, room)) {
      Candidate candidate = candidateOf(*config);
      if (const char *refusal = refusalOf(candidate, limits)) {
        ++reasons[refusal];
        continue;
      }
      int status = 0;
      DnnPlan plan(*this, candidate.choice, &status);
      if (status != 0) {
        ++reasons["cannot be planned: " + dnn.words(status)];
        continue;
      }
      if (plan.workspace() > limits.workspace) {
        least = std::min(least, plan.workspace());
        ++reasons["want more memory"];
        continue;
      }
      good.push_back(candidate.choice);
      if (good.size() == most)
        break;
    }
  }
  if (why && good.empty()) {
    *why = reasons.empty() ? "none was proposed" : "";
    for (const auto &[reason, count] : reasons)
      *why += (why->empty() ? "" : "; ") + std::to_string(count) + " " + reason;
    if (least != UINT64_MAX)
      *why += ", at least " + core::grouped(least) + " bytes";
  }
  return good;
}

DnnPlan::DnnPlan(const DnnGraph &graph, const DnnChoice &choice) : dnn(graph.dnn), whose(graph.whose) {
  dnn.check(build(graph, choice), whose, "the plan of engine " + choice.text());
}

DnnPlan::DnnPlan(const DnnGraph &graph, const DnnChoice &choice, int *status) : dnn(graph.dnn), whose(graph.whose) {
  *status = build(graph, choice);
}

int DnnPlan::build(const DnnGraph &graph, const DnnChoice &choice) {
  auto part = [&](Kind kind, const char *what) -> DnnNode & { return parts.emplace_back(dnn, kind, whose, what); };
  DnnNode &engine = part(Kind::Engine, "the engine");
  engine.set(Attribute::EngineGraph, graph.closed()).set(Attribute::EngineIndex, choice.engine);
  if (dnn.device)
    engine.set(Attribute::EngineDevice, dnn.device, Type::Descriptor);
  if (int status = engine.tryFinalize())
    return status;
  std::vector<DnnDescriptor> knobs;
  for (auto [type, value] : choice.knobs) {
    DnnNode &knob = part(Kind::KnobChoice, "a knob");
    knob.set(Attribute::KnobType, Type::KnobType, type).set(Attribute::KnobValue, value);
    if (int status = knob.tryFinalize())
      return status;
    knobs.push_back(knob);
  }
  DnnNode &config = part(Kind::EngineConfig, "the engine's configuration");
  config.set(Attribute::ConfigEngine, engine);
  if (!knobs.empty())
    config.set(Attribute::ConfigKnobChoices, knobs);
  if (int status = config.tryFinalize())
    return status;
  DnnNode &made = part(Kind::Plan, "the plan");
  if (dnn.device)
    made.set(Attribute::PlanDevice, dnn.device, Type::Descriptor);
  else
    made.set(Attribute::PlanHandle, dnn.handle, Type::Handle);
  made.set(Attribute::PlanConfig, config);
  if (int status = made.tryFinalize())
    return status;
  bytes = static_cast<uint64_t>(made.integers(Attribute::PlanWorkspace, 1).at(0));
  plan = &made;
  return 0;
}

void DnnPlan::run(std::span<const int64_t> ids, std::span<void *const> pointers, void *workspace, Stream stream) const {
  DnnNode pack(dnn, Kind::VariantPack, whose, "the variant pack");
  pack.set(Attribute::PackIds, ids)
      .set(Attribute::PackPointers, pointers, Type::Pointer)
      .set(Attribute::PackWorkspace, workspace, Type::Pointer)
      .finalize();
  dnn.check(dnn.setStream(dnn.handle, stream), whose, "cudnnSetStream");
  dnn.check(dnn.execute(dnn.handle, *plan, pack), whose, "cudnnBackendExecute");
}

} // namespace par::cuda
