#include "par/Inspect/RankOrder.h"

#include "par/Base/MachineLevels.h"

#include <map>

using namespace llvm;

namespace par {

/// The index in its program of the communicator of a node, or of the first communication of a group.
static std::optional<uint32_t> communicatorOf(const format::Program &program, const PlayedInstruction &node) {
  ArrayRef<format::Instruction> all = program.blocks[node.block].instructions;
  for (const format::Instruction &instruction : all.drop_front(node.instruction))
    switch (instruction.op) {
    case format::Op::Group:
      continue;
    case format::Op::Coll:
    case format::Op::Send:
    case format::Op::Recv:
      return instruction.comm;
    default:
      return std::nullopt;
    }
  return std::nullopt;
}

namespace {
/// Adds up the time of communication by axis.
class TrafficCounter {
public:
  TrafficCounter(const Compiled &compiled, const Simulation &simulation)
      : bundle(*compiled.bundle), stageAxis(compiled.planned.plan.plan.stageAxis()),
        hardware(compiled.planned.hardware), levels(levelsOf(hardware)), simulation(simulation) {}

  std::map<std::string, AxisTraffic> run() {
    for (size_t ofClass = 0; ofClass + 1 < simulation.classBegins.size(); ++ofClass)
      addClass(ArrayRef(simulation.instructions)
                   .slice(simulation.classBegins[ofClass],
                          simulation.classBegins[ofClass + 1] - simulation.classBegins[ofClass]));
    return std::move(traffic);
  }

private:
  void addClass(ArrayRef<PlayedInstruction> nodes) {
    std::map<std::string, int64_t> times;
    for (const PlayedInstruction &node : nodes) {
      const format::Program &program = bundle.programs[bundle.manifest.ranks[node.rank].role];
      std::optional<uint32_t> comm = node.communication ? communicatorOf(program, node) : std::nullopt;
      if (!comm)
        continue;
      const std::string &name = program.comms[*comm].name;
      std::string axis = axesOfCommunicator(name, stageAxis);
      times[axis] += node.duration;
      if (axisOf.try_emplace(name, axis).second)
        addGroups(name, traffic[axis]);
    }
    for (const auto &[axis, ns] : times)
      traffic[axis].ns = std::max(traffic[axis].ns, ns / simulation.calls);
  }

  void addGroups(const std::string &name, AxisTraffic &axis) {
    const format::Communicator *communicator = bundle.manifest.findCommunicator(name);
    for (const std::vector<uint32_t> &ranks : communicator ? communicator->groups.lists() : format::RankGroups::Lists())
      add(hardware.groupOf(to_vector_of<int64_t>(ranks)), axis);
  }

  void add(const RankGroup &group, AxisTraffic &axis) {
    const MachineLevel &level = levelOf(group, levels);
    size_t depth = &level - levels.data();
    if (axis.level.empty() || depth > depths[&axis])
      axis.level = level.name;
    depths[&axis] = std::max(depths[&axis], depth);
    axis.ranks = std::max(axis.ranks, group.members);
  }

  const format::Bundle &bundle;
  std::string stageAxis;
  const Hardware &hardware;
  std::vector<MachineLevel> levels;
  const Simulation &simulation;
  std::map<std::string, AxisTraffic> traffic;   ///< by axis
  std::map<const AxisTraffic *, size_t> depths; ///< of their levels
  std::map<std::string, std::string> axisOf;    ///< by communicator
};
} // namespace

std::optional<RankOrderFacts> describeRankOrder(const Compiled &compiled, ArrayRef<Communication> communications,
                                                const Simulation &simulation) {
  const Plan &plan = compiled.planned.plan.plan;
  if (!compiled.order && *plan.meshOrder.kind == PlanMeshOrder::Written)
    return std::nullopt;
  RankOrderFacts facts;
  for (const auto &[axis, size] : plan.numberingMesh())
    facts.axes.push_back(axis);
  facts.choice = compiled.order;
  std::map<std::string, AxisTraffic> traffic = TrafficCounter(compiled, simulation).run();
  for (const CommunicationTotal &total : totalCommunications(communications))
    for (const Communication &part : total.parts)
      if (auto found = traffic.find(total.axis); found != traffic.end())
        found->second.bytes += part.bytes * part.count;
  for (auto &[axis, each] : traffic) {
    each.axis = axis;
    facts.traffic.push_back(std::move(each));
  }
  llvm::stable_sort(facts.traffic, [](const AxisTraffic &a, const AxisTraffic &b) { return a.ns > b.ns; });
  return facts;
}

} // namespace par
