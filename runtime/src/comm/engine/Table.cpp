// A bundle's communicators as one table.
#include "par/comm/engine/Communicator.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <set>

using namespace par;
using namespace par::comm;

/// The communicators that instructions name.
static std::set<std::string_view> usedBy(const std::vector<format::Program> &programs) {
  std::set<std::string_view> names;
  for (const format::Program &program : programs)
    for (const format::Block &block : program.blocks)
      for (const format::Instruction &it : block.instructions)
        if (it.op == format::Op::Coll || it.op == format::Op::Send || it.op == format::Op::Recv)
          names.insert(program.comms[it.comm].name);
  return names;
}

std::vector<Members> par::comm::tableOf(const format::Bundle &bundle) {
  std::set<std::string_view> used = usedBy(bundle.programs);
  std::vector<Members> table;
  for (const format::Communicator &communicator : bundle.manifest.communicators)
    for (const std::vector<uint32_t> &group : communicator.groups)
      table.push_back({communicator.name, group, used.count(communicator.name) > 0});
  return table;
}

uint32_t par::comm::indexOf(const format::Manifest &manifest, std::string_view name, uint32_t rank) {
  uint32_t index = 0;
  for (const format::Communicator &communicator : manifest.communicators)
    for (const std::vector<uint32_t> &group : communicator.groups) {
      if (communicator.name == name && std::find(group.begin(), group.end(), rank) != group.end())
        return index;
      ++index;
    }
  throw std::invalid_argument(say(Sentence::noGroup, rank, name));
}
