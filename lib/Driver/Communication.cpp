// Sums the traffic of one step by axis and kind for the rank that communicates most, and finds the plan rule that
// forced each communication from the module of its provenance.
#include "Communication.h"

#include "MemoryTable.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <map>

using namespace llvm;

namespace par {
namespace {

/// Communications of one sort and place: those of a group count as one.
struct Traffic {
  std::string axis, kind, where, type;
  uint64_t bytes = 0, count = 0;
  std::string beside; ///< on a queue of its own: what it runs beside
};

/// The axes of a communicator as the plan names them: "dp.0+tp.data", a half of dp and all of tp on a queue of
/// its own, is "dp+tp".
std::string axesOf(StringRef comm) {
  SetVector<StringRef> axes;
  for (StringRef axis : split(comm, '+'))
    axes.insert(axis.split('.').first);
  return join(axes, "+");
}

/// Collects what one rank of a role communicates in one run of an entry.
class TrafficCounter {
public:
  TrafficCounter(const format::Bundle &bundle, const format::Program &program, std::string stageAxis,
                 const Hardware &hardware)
      : bundle(bundle), program(program), stageAxis(std::move(stageAxis)), hardware(hardware) {}

  std::vector<Traffic> run(uint32_t entry) {
    for (const format::Run &run : program.entries[entry].runs) {
      ArrayRef<format::Instruction> all = program.blocks[run.block].instructions;
      for (size_t n = 0; n < all.size(); ++n) {
        size_t members = all[n].op == format::Op::Group ? all[n].n : 1;
        size_t first = n + (all[n].op == format::Op::Group);
        add(all.slice(first, std::min(members, all.size() - first)));
        n = first + members - 1;
      }
    }
    std::vector<Traffic> list;
    uint64_t calls = format::callsOf(program.entries[entry]); // what several batches make is told of one
    for (auto &[key, traffic] : sorts) {
      list.push_back(traffic);
      list.back().count = divideCeil(traffic.count, calls);
    }
    return list;
  }

private:
  /// Messages of one group over one communicator are one.
  void add(ArrayRef<format::Instruction> group) {
    std::map<std::pair<uint32_t, std::string>, Traffic> joined;
    for (const format::Instruction &instruction : group) {
      std::string kind;
      if (instruction.op == format::Op::Coll)
        kind = std::string(toString(instruction.coll)) + levelOf(program.comms[instruction.comm].name);
      else if (instruction.op == format::Op::Send)
        kind = "send, recv"; // counted once, at the sender
      else
        continue;
      Traffic &traffic = joined[{instruction.comm, kind}];
      StringRef comm = program.comms[instruction.comm].name;
      bool crosses = comm.contains('>') || comm.split('.').first == "stages";
      traffic.axis = crosses ? stageAxis : axesOf(comm);
      if (instruction.op == format::Op::Coll && instruction.queue != 0)
        traffic.beside =
            program.queues[instruction.queue] == "data" ? "overlapped with the last backward" : "beside compute";
      traffic.kind = kind;
      traffic.type = std::string(toString(instruction.type));
      traffic.bytes += bytesOf(instruction);
      if (instruction.provenance >= 0 && traffic.where.empty())
        traffic.where = bundle.provenance[instruction.provenance];
    }
    for (auto &[key, traffic] : joined) {
      Traffic &sort = sorts[{traffic.axis, traffic.kind, traffic.bytes, traffic.where}];
      traffic.count = sort.count + 1;
      sort = traffic;
    }
  }

  /// Of the whole tensor: what a gather ends with and a scatter begins with.
  uint64_t bytesOf(const format::Instruction &instruction) const {
    uint64_t bytes = instruction.n * sizeOf(instruction.type);
    bool ofShards = instruction.op == format::Op::Coll && (instruction.coll == format::CollKind::AllGather ||
                                                           instruction.coll == format::CollKind::ReduceScatter);
    const format::Communicator *comm =
        ofShards ? bundle.manifest.findCommunicator(program.comms[instruction.comm].name) : nullptr;
    return comm ? bytes * comm->groups.front().size() : bytes;
  }

  /// Of ranks on several hosts: whether those of a group are on one.
  std::string levelOf(StringRef name) const {
    if (hardware.hostOf(bundle.manifest.ranks.size() - 1) == 0)
      return "";
    const format::Communicator *comm = bundle.manifest.findCommunicator(name.str());
    bool far = comm && any_of(comm->groups, [&](const std::vector<uint32_t> &ranks) {
                 return hardware.groupOf(to_vector_of<int64_t>(ranks)).hosts > 1;
               });
    return far ? " between hosts" : " in hosts";
  }

  const format::Bundle &bundle;
  const format::Program &program;
  std::string stageAxis;
  const Hardware &hardware;
  std::map<std::tuple<std::string, std::string, uint64_t, std::string>, Traffic> sorts;
};

/// Finds the rule on a parameter of the module that a communication is from.
class RuleFinder {
public:
  explicit RuleFinder(const ModelPlan &model) : model(model) {
    PlanErrors known; // the driver has checked the patterns
    shards = resolveShards(model.plan, model.names, known);
  }

  /// `attn.c_proj.weight {0: tp}` for `transformer.h.0.attn.c_proj, pytorch_utils.py:119`; empty if no rule
  /// is known.
  std::string ruleFor(StringRef where, StringRef axis, std::string *place = nullptr) const {
    StringRef module = where.split(',').first;
    for (const ResolvedShard &shard : shards) {
      if (shard.kind != ResolvedShard::Parameter || module.empty())
        continue;
      const NameTable::Parameter &parameter = model.names.parameters[shard.index];
      bool here =
          parameter.anyName([&](const std::string &name) { return StringRef(name).rsplit('.').first == module; });
      for (const auto &[dim, axes] : shard.dims)
        if (here && is_contained(*axes, axis)) {
          if (place)
            *place = axes.origin.comment();
          return shortName(parameter.name) + " {" + std::to_string(dim) + ": " + axis.str() + "}";
        }
    }
    return "";
  }

private:
  static std::string shortName(StringRef name) {
    SmallVector<StringRef, 8> parts = splitName(name);
    size_t keep = std::min<size_t>(parts.size(), 3);
    return join(ArrayRef<StringRef>(parts).take_back(keep), ".");
  }

  const ModelPlan &model;
  std::vector<ResolvedShard> shards;
};

} // namespace

/// What the rank does that communicates most over each axis in each way.
static std::map<std::pair<std::string, std::string>, std::vector<Traffic>>
collect(const format::Bundle &bundle, StringRef entry, const ModelPlan &model, const Hardware &hardware) {
  std::map<std::pair<std::string, std::string>, std::vector<Traffic>> most;
  auto total = [](ArrayRef<Traffic> list) {
    uint64_t bytes = 0;
    for (const Traffic &traffic : list)
      bytes += traffic.bytes * traffic.count;
    return bytes;
  };
  for (const format::Program &program : bundle.programs) {
    uint32_t index = program.findEntry(entry.str());
    if (index == format::noIndex)
      continue;
    std::map<std::pair<std::string, std::string>, std::vector<Traffic>> mine;
    for (Traffic &traffic : TrafficCounter(bundle, program, model.plan.stageAxis(), hardware).run(index))
      mine[{traffic.axis, traffic.kind}].push_back(traffic);
    for (auto &[sort, list] : mine)
      // Of equals the first stage.
      if (total(list) > total(most[sort]))
        most[sort] = list;
  }
  return most;
}

void printCommunication(const format::Bundle &bundle, StringRef entry, const ModelPlan &model, const Hardware &hardware,
                        raw_ostream &os) {
  auto most = collect(bundle, entry, model, hardware);
  if (most.empty())
    return;
  RuleFinder rules(model);
  os << "communication per rank and step"
     << (bundle.programs.size() > 1 ? ", on the stage that has most of each kind" : "") << "\n";
  size_t width = 0;
  for (auto &[sort, list] : most)
    width = std::max(width, sort.second.size() + 2);
  for (auto &[sort, list] : most) {
    std::map<uint64_t, uint64_t, std::greater<>> counts;
    SetVector<StringRef> forced;
    MapVector<StringRef, uint64_t, StringMap<unsigned>> beside;
    uint64_t all = 0;
    for (const Traffic &traffic : list) {
      counts[traffic.bytes] += traffic.count;
      all += traffic.count;
      if (!traffic.beside.empty())
        beside[traffic.beside] += traffic.count;
      if (!rules.ruleFor(traffic.where, sort.first).empty())
        forced.insert(traffic.where);
    }
    os << "  " << left_justify(sort.first, 3) << " " << left_justify(sort.second, width);
    size_t shown = 0;
    for (auto [bytes, count] : counts)
      if (shown++ < 3)
        os << (shown > 1 ? ", " : "") << count << " x " << humanBytes(double(bytes));
    if (shown > 3)
      os << " and " << shown - 3 << " more sizes";
    if (sort.second == "send, recv")
      os << " each way";
    for (auto &[what, count] : beside)
      os << "   " << (count < all ? formatv("{0} of {1} ", count, all).str() : "") << what;
    if (!forced.empty()) {
      os << "   forced by " << rules.ruleFor(forced.front(), sort.first);
      if (forced.size() > 1)
        os << " and " << forced.size() - 1 << " more (--explain=collectives)";
    }
    os << "\n";
  }
}

/// Why ranks communicate over an axis: a rule of the plan, or what stands for one; empty if none is known.
static std::string reasonOf(const Traffic &traffic, const RuleFinder &rules, const Plan &plan) {
  std::string place, rule = rules.ruleFor(traffic.where, traffic.axis, &place);
  if (!rule.empty())
    return place + ": " + rule;
  if (traffic.kind == "all_gather" && *plan.zero.level > 0 && is_contained(*plan.zero.over, traffic.axis))
    return formatv("{0}: zero is {1}, so what ranks of {2} share of a weight is gathered {3}",
                   plan.zero.level.origin.comment(), *plan.zero.level, traffic.axis,
                   *plan.zero.level < 3 ? "where it was updated" : "where it is used");
  if (is_contained(*plan.batch.over, traffic.axis))
    return plan.batch.over.origin.comment() + ": batch.over is " + traffic.axis +
           ", so what sums over the batch is summed over its ranks";
  return traffic.axis == plan.stageAxis() ? plan.pipeline.cuts.origin.comment() + ": pipeline.cuts lie between" : "";
}

void explainCommunication(const format::Bundle &bundle, StringRef entry, const ModelPlan &model,
                          const Hardware &hardware, raw_ostream &os) {
  RuleFinder rules(model);
  for (const format::Program &program : bundle.programs) {
    uint32_t index = program.findEntry(entry.str());
    if (index == format::noIndex)
      continue;
    for (const Traffic &traffic : TrafficCounter(bundle, program, model.plan.stageAxis(), hardware).run(index)) {
      os << traffic.kind << " " << traffic.type << " over {" << traffic.axis << "}, " << traffic.count << " a step, "
         << humanBytes(double(traffic.bytes)) << (bundle.programs.size() > 1 ? ", " + stagesOf(program.name) : "")
         << "\n";
      if (!traffic.where.empty())
        os << "  where  " << traffic.where << "\n";
      if (std::string reason = reasonOf(traffic, rules, model.plan); !reason.empty())
        os << "  why    " << reason << "\n";
    }
  }
}

} // namespace par
