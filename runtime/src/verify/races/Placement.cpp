// Cuts the arenas where operands begin and end.
#include "AccessSweep.h"

#include <algorithm>

using namespace par;
using namespace par::format;
using namespace par::verify;

uint64_t AccessSweep::address(uint32_t root, uint32_t slot) const {
  const Buffer &buffer = program.buffers[root];
  return buffer.at[slot] + (buffer.space == Space::Host ? hostBase : 0);
}

std::pair<uint32_t, uint32_t> AccessSweep::cellsOf(uint64_t begin, uint64_t bytes) const {
  auto find = [&](uint64_t border) {
    return uint32_t(std::lower_bound(borders.begin(), borders.end(), border) - borders.begin());
  };
  return {find(begin), find(begin + bytes)};
}

/// Collects all accesses, cuts the arenas at their borders and finds each access's cells.
void AccessSweep::place() {
  findSums();
  auto cut = [&](const ByteAccess &access) {
    for (uint32_t slot = 0; slot < program.buffers[access.root].at.size(); ++slot) {
      uint64_t begin = address(access.root, slot) + access.offset;
      borders.push_back(begin);
      borders.push_back(begin + access.bytes);
    }
  };
  for (const Block &block : program.blocks) {
    placed.emplace_back();
    for (const Instruction &it : block.instructions) {
      Membership own;
      uint32_t members = 1;
      if (it.op == Op::Coll) {
        const Communicator &comm = *bundle.manifest.findCommunicator(program.comms[it.comm].name);
        // A block that no entry runs may name a communicator that this rank is not in.
        if (std::optional<Membership> found = membershipOf(comm, rank)) {
          own = *found;
          members = uint32_t(comm.groups[own.group].size());
        }
      }
      placed.back().emplace_back();
      for (const ByteAccess &access : accessesOf(program, it, own.member, members)) {
        cut(access);
        placed.back().back().push_back({access, {}});
      }
    }
  }
  for (uint32_t root = 0; root < program.buffers.size(); ++root) {
    const Buffer &buffer = program.buffers[root];
    if (buffer.of != noIndex || (buffer.kind != BufferKind::State && buffer.kind != BufferKind::Hyper))
      continue;
    roots.push_back({root, {{Touch::Write, 0, root, {}, 0, buffer.bytes()}, {}}});
    cut(roots.back().second.access);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  auto locate = [&](Placed &it) {
    for (uint32_t slot = 0; slot < program.buffers[it.access.root].at.size(); ++slot)
      it.cells.push_back(cellsOf(address(it.access.root, slot) + it.access.offset, it.access.bytes));
  };
  for (auto &block : placed)
    for (auto &instruction : block)
      std::for_each(instruction.begin(), instruction.end(), locate);
  for (auto &root : roots)
    locate(root.second);
}
