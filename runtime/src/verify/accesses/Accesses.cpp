// The bytes that an instruction reads and writes.
#include "Accesses.h"

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
/// Collects accesses to the operands of one instruction.
struct Collector {
  const Program &program;
  const Instruction &it;
  std::vector<ByteAccess> accesses;

  void add(Touch touch, uint32_t operand, uint64_t offset, uint64_t bytes) {
    const Operand &o = it.operands[operand];
    const Buffer &buffer = program.buffers[o.buffer];
    bool alias = buffer.of != noIndex;
    accesses.push_back(
        {touch, operand, alias ? buffer.of : o.buffer, o.slot, offset + (alias ? buffer.offset : 0), bytes});
  }
  /// As the operand's own access says.
  void whole(uint32_t operand, uint64_t bytes) {
    Access access = it.operands[operand].access;
    if (access != Access::Write)
      add(Touch::Read, operand, 0, bytes);
    if (access != Access::Read)
      add(Touch::Write, operand, 0, bytes);
  }
  void product();
  void collective(uint32_t member, uint32_t members);
};
} // namespace

void Collector::product() {
  const Call &call = program.calls[it.call];
  uint64_t size = sizeOf(call.type);
  uint32_t i = 0;
  whole(i++, call.extent('a') * size);
  whole(i++, call.extent('b') * size);
  if (call.bias)
    whole(i++, uint64_t(call.n) * size);
  if (call.hasAux())
    whole(i++, call.auxBytes());
  whole(i++, call.extent('c') * sizeOf(call.typeC));
  if (call.workspace)
    whole(i++, call.workspace);
}

void Collector::collective(uint32_t member, uint32_t members) {
  uint64_t part = it.n * sizeOf(it.type), all = part * members;
  bool inPlace = it.operands.size() == 1;
  uint32_t result = inPlace ? 0 : 1;
  switch (it.coll) {
  case CollKind::AllGather:
    add(Touch::Read, 0, inPlace ? part * member : 0, part);
    add(Touch::Write, result, 0, all);
    return;
  case CollKind::ReduceScatter:
    add(Touch::Read, 0, 0, all);
    if (inPlace)
      add(Touch::Lose, 0, 0, all);
    add(Touch::Write, result, inPlace ? part * member : 0, part);
    return;
  case CollKind::AllToAll:
    add(Touch::Read, 0, 0, all);
    add(Touch::Write, result, 0, all);
    return;
  case CollKind::Broadcast:
    if (member == it.root)
      add(Touch::Read, 0, 0, part);
    add(Touch::Write, 0, 0, part);
    return;
  case CollKind::Reduce:
    add(Touch::Read, 0, 0, part);
    add(member == it.root ? Touch::Write : Touch::Lose, 0, 0, part);
    return;
  case CollKind::AllReduce:
    return whole(0, part);
  }
}

std::vector<ByteAccess> par::verify::accessesOf(const Program &program, const Instruction &it, uint32_t member,
                                                uint32_t members) {
  Collector collector{program, it, {}};
  switch (it.op) {
  case Op::Kernel:
    for (uint32_t i = 0; i < it.operands.size(); ++i)
      collector.whole(i, program.kernels[it.kernel].operands[i].bytes);
    break;
  case Op::Call:
    collector.product();
    break;
  case Op::Coll:
    collector.collective(member, members);
    break;
  case Op::Feed:
  case Op::Fetch:
    collector.whole(0, program.buffers[it.operands[0].buffer].bytes());
    break;
  default:
    for (uint32_t i = 0; i < it.operands.size(); ++i)
      collector.whole(i, it.n * sizeOf(program.buffers[it.operands[i].buffer].type));
  }
  std::vector<ByteAccess> ordered;
  for (bool reads : {true, false})
    for (const ByteAccess &access : collector.accesses)
      if ((access.touch == Touch::Read) == reads)
        ordered.push_back(access);
  return ordered;
}
