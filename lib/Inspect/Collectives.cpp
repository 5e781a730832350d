// Counts the communication of one rank of each role in a step: instructions of the program, a group as one, equal ones
// together. The module of an instruction's provenance leads to the rule of `shard` that forced it.
#include "par/Inspect/Collectives.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace llvm;

namespace par {

std::string axesOfCommunicator(StringRef name, StringRef stageAxis) {
  if (name.contains('>') || name.split('.').first == "stages")
    return stageAxis.str();
  SetVector<StringRef> axes;
  for (StringRef axis : split(name, '+'))
    axes.insert(axis.split('.').first);
  return join(axes, "+");
}

namespace {

/// The formats of a group's messages: "bf16", and with one of f32 "bf16+f32".
std::string withFormat(const std::string &formats, StringRef format) {
  if (formats.empty() || is_contained(split(formats, '+'), format))
    return formats.empty() ? format.str() : formats;
  return formats + "+" + format.str();
}

/// Counts the communication of one rank of a role in one run of an entry.
class CommunicationCounter {
public:
  CommunicationCounter(const format::Bundle &bundle, const format::Program &program, std::string stageAxis,
                       const Hardware &hardware)
      : bundle(bundle), program(program), stageAxis(std::move(stageAxis)), hardware(hardware) {}

  std::vector<Communication> run(uint32_t entry) {
    for (const format::Run &run : program.entries[entry].runs) {
      ArrayRef<format::Instruction> all = program.blocks[run.block].instructions;
      for (size_t n = 0; n < all.size(); ++n) {
        size_t members = all[n].op == format::Op::Group ? all[n].n : 1;
        size_t first = n + (all[n].op == format::Op::Group);
        add(all.slice(first, std::min(members, all.size() - first)));
        n = first + members - 1;
      }
    }
    std::vector<Communication> list;
    uint64_t calls = format::callsOf(program.entries[entry]); // the counts of several batches are given for one
    for (auto &[key, traffic] : sorts) {
      list.push_back(traffic);
      list.back().role = program.name;
      list.back().count = divideCeil(traffic.count, calls);
    }
    return list;
  }

private:
  /// Messages of one group over one communicator are one.
  void add(ArrayRef<format::Instruction> group) {
    std::map<std::pair<uint32_t, std::string>, Communication> joined;
    for (const format::Instruction &instruction : group) {
      std::string kind;
      if (instruction.op == format::Op::Coll)
        kind = std::string(toString(instruction.coll)) + levelOf(program.comms[instruction.comm].name).str();
      else if (instruction.op == format::Op::Send)
        kind = "send, recv"; // counted once, at the sender
      else
        continue;
      Communication &traffic = joined[{instruction.comm, kind}];
      traffic.axis = axesOfCommunicator(program.comms[instruction.comm].name, stageAxis);
      if (instruction.op == format::Op::Coll && instruction.queue != 0)
        traffic.overlap =
            program.queues[instruction.queue] == "data" ? "overlapped with the last backward" : "beside compute";
      traffic.kind = kind;
      traffic.type = withFormat(traffic.type, toString(instruction.type));
      traffic.bytes += bytesOf(instruction);
      if (instruction.provenance >= 0 && traffic.place.empty())
        traffic.place = bundle.provenance[instruction.provenance];
    }
    for (auto &[key, traffic] : joined) {
      Communication &sort = sorts[{traffic.axis, traffic.kind, traffic.bytes, traffic.place}];
      traffic.count = sort.count + 1;
      sort = traffic;
    }
  }

  /// Bytes of the whole tensor: the result of a gather, the operand of a scatter.
  uint64_t bytesOf(const format::Instruction &instruction) const {
    uint64_t bytes = instruction.n * sizeOf(instruction.type);
    bool ofShards = instruction.op == format::Op::Coll && (instruction.coll == format::CollKind::AllGather ||
                                                           instruction.coll == format::CollKind::ReduceScatter);
    const format::Communicator *comm =
        ofShards ? bundle.manifest.findCommunicator(program.comms[instruction.comm].name) : nullptr;
    return comm ? bytes * comm->groups[0].size() : bytes;
  }

  /// " in hosts" or " between hosts", if ranks are on several.
  StringRef levelOf(StringRef name) {
    if (hardware.hostOf(bundle.manifest.ranks.size() - 1) == 0)
      return "";
    auto [known, fresh] = levels.try_emplace(name);
    if (!fresh)
      return known->second;
    const format::Communicator *comm = bundle.manifest.findCommunicator(name.str());
    bool far = comm && any_of(comm->groups, [&](const std::vector<uint32_t> &ranks) {
                 return hardware.groupOf(to_vector_of<int64_t>(ranks)).hosts > 1;
               });
    return known->second = far ? " between hosts" : " in hosts";
  }

  const format::Bundle &bundle;
  const format::Program &program;
  std::string stageAxis;
  const Hardware &hardware;
  StringMap<StringRef> levels; ///< by communicator
  std::map<std::tuple<std::string, std::string, uint64_t, std::string>, Communication> sorts;
};

/// Finds the rule on a parameter of the module that a communication is from.
class RuleFinder {
public:
  explicit RuleFinder(const ModelPlan &model) : names(model.names) {
    PlanErrors known; // planning has checked the patterns
    rules = resolveShards(model.plan, names, known);
    for (const ResolvedShard &rule : rules) {
      if (rule.kind != ResolvedShard::Parameter)
        continue;
      SetVector<StringRef> modules;
      (void)names.parameters[rule.index].anyName([&](const std::string &name) {
        modules.insert(StringRef(name).rsplit('.').first);
        return false;
      });
      for (StringRef module : modules)
        ofModule[module].push_back(&rule);
    }
  }

  /// `attn.c_proj.weight {0: tp}` for `transformer.h.0.attn.c_proj, pytorch_utils.py:119`; nothing if no rule is known.
  std::optional<ForcingRule> ruleFor(StringRef place, StringRef axis) const {
    StringRef module = place.split(',').first;
    auto found = module.empty() ? ofModule.end() : ofModule.find(module);
    if (found == ofModule.end())
      return std::nullopt;
    for (const ResolvedShard *rule : found->second)
      for (const auto &[dim, axes] : rule->dims)
        if (is_contained(*axes, axis))
          return ForcingRule{axes.origin.comment(), shortName(names.parameters[rule->index].name) + " {" +
                                                        std::to_string(dim) + ": " + axis.str() + "}"};
    return std::nullopt;
  }

private:
  static std::string shortName(StringRef name) {
    SmallVector<StringRef, 8> parts = splitName(name);
    size_t keep = std::min<size_t>(parts.size(), 3);
    return join(ArrayRef<StringRef>(parts).take_back(keep), ".");
  }

  const NameTable &names;
  std::vector<ResolvedShard> rules;
  StringMap<SmallVector<const ResolvedShard *, 2>> ofModule;
};

} // namespace

/// The reason for communication over an axis: a rule of the plan, or the key that stands for one; empty if none is
/// known.
static std::string reasonOf(const Communication &traffic, const ModelPlan &model) {
  const Plan &plan = model.plan;
  if (traffic.rule)
    return traffic.rule->origin + ": " + traffic.rule->text;
  if (traffic.kind == "all_gather" && *plan.zero.level > 0 && is_contained(*plan.zero.over, traffic.axis)) {
    StringRef when = *plan.zero.level < 3 ? "after the update" : "at each use";
    if (*plan.zero.level < 3 && traffic.type != "f32")
      when = "once a step, rounded from f32 masters";
    return formatv("{0}: zero is {1}, so weights sharded over {2} are gathered {3}", plan.zero.level.origin.comment(),
                   *plan.zero.level, traffic.axis, when);
  }
  if (is_contained(*plan.batch.over, traffic.axis))
    return plan.batch.over.origin.comment() + ": batch.over is " + traffic.axis +
           ", so sums over the batch are reduced over its ranks";
  if (traffic.axis == plan.stageAxis())
    return plan.pipeline.cuts.origin.comment() + ": a cut of the pipeline is between the ranks";
  // The norm is the one sum of the step that has no place in the model: a number for each gradient.
  bool isNorm = plan.train && *plan.train->clip && !*plan.train->clipsValues && traffic.place.empty() &&
                traffic.kind == "all_reduce" && traffic.bytes <= sizeof(float) * model.names.parameters.size();
  return isNorm ? plan.train->clip.origin.comment() + ": train.clip needs the norm of gradients that ranks share" : "";
}

std::vector<Communication> findCommunications(const format::Bundle &bundle, StringRef entry, const ModelPlan &model,
                                              const Hardware &hardware) {
  RuleFinder rules(model);
  std::vector<Communication> all;
  for (const format::Program &program : bundle.programs) {
    uint32_t index = program.findEntry(entry.str());
    if (index == format::noIndex)
      continue;
    for (Communication &traffic : CommunicationCounter(bundle, program, model.plan.stageAxis(), hardware).run(index)) {
      traffic.rule = rules.ruleFor(traffic.place, traffic.axis);
      traffic.reason = reasonOf(traffic, model);
      all.push_back(std::move(traffic));
    }
  }
  return all;
}

std::vector<CommunicationTotal> totalCommunications(ArrayRef<Communication> all) {
  std::map<std::pair<std::string, std::string>, std::vector<Communication>> most;
  auto total = [](ArrayRef<Communication> list) {
    uint64_t bytes = 0;
    for (const Communication &traffic : list)
      bytes += traffic.bytes * traffic.count;
    return bytes;
  };
  while (!all.empty()) {
    ArrayRef<Communication> role =
        all.take_while([&](const Communication &traffic) { return traffic.role == all.front().role; });
    all = all.drop_front(role.size());
    std::map<std::pair<std::string, std::string>, std::vector<Communication>> mine;
    for (const Communication &traffic : role)
      mine[{traffic.axis, traffic.kind}].push_back(traffic);
    for (auto &[sort, list] : mine)
      // The first stage of equal ones.
      if (total(list) > total(most[sort]))
        most[sort] = list;
  }
  std::vector<CommunicationTotal> totals;
  for (auto &[sort, list] : most)
    totals.push_back({sort.first, sort.second, std::move(list)});
  return totals;
}

} // namespace par
