// V1: communications, copies and fills take a whole operand. A part of a buffer has an alias of its own. So an
// instruction that leaves a rest unsummed, unsent or uncopied is found.
#include "verify/Model.h"

#include <set>

using namespace par;
using namespace par::format;
using namespace par::verify;

/// How often an operand holds `n` elements: parts of all members, or one. 0: at least one part.
static uint64_t partsOf(const Instruction &it, uint32_t operand, uint64_t members) {
  bool inPlace = it.operands.size() == 1;
  if (it.op != Op::Coll)
    return 1;
  switch (it.coll) {
  case CollKind::AllGather:
    return inPlace || operand == 1 ? members : 0;
  case CollKind::ReduceScatter:
    return inPlace || operand == 0 ? members : 1;
  case CollKind::AllToAll:
    return members;
  default:
    return 1;
  }
}

/// The part of its operands that an instruction does not take, if any.
static std::optional<std::string> restOf(const Program &program, const Instruction &it, uint64_t members) {
  bool moves = it.op == Op::Coll || it.op == Op::Send || it.op == Op::Recv || it.op == Op::Copy || it.op == Op::Fill;
  for (uint32_t i = 0; moves && i < it.operands.size(); ++i) {
    const Buffer &buffer = program.buffers[it.operands[i].buffer];
    uint64_t elements = buffer.bytes() / sizeOf(buffer.type), parts = partsOf(it, i, members);
    if (parts && it.n * parts != elements)
      return "part: it takes " + std::to_string(it.n * parts) + " of the " + std::to_string(elements) +
             " elements of '" + buffer.name + "'; a part of a buffer has an alias";
  }
  return std::nullopt;
}

std::optional<Counterexample> par::verify::checkWhole(const Bundle &bundle) {
  std::set<std::pair<uint32_t, uint32_t>> seen;
  for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank) {
    uint32_t role = bundle.manifest.ranks[rank].role;
    const Program &program = bundle.programs[role];
    for (const Entry &entry : program.entries)
      for (const Run &run : entry.runs) {
        if (!seen.insert({role, run.block}).second)
          continue;
        const std::vector<Instruction> &list = program.blocks[run.block].instructions;
        for (uint32_t n = 0; n < list.size(); ++n) {
          const Communicator *comm =
              list[n].op == Op::Coll ? bundle.manifest.findCommunicator(program.comms[list[n].comm].name) : nullptr;
          uint64_t members = comm ? comm->groups[membershipOf(*comm, rank)->group].size() : 1;
          if (std::optional<std::string> rest = restOf(program, list[n], members))
            return Counterexample{Property::WellFormed, *rest, {describeStep(bundle, rank, run, n)}};
        }
      }
  }
  return std::nullopt;
}
