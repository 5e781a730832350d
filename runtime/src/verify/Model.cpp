// Expansion into operations of actors.
#include "Model.h"

#include <numeric>

using namespace par;
using namespace par::format;
using namespace par::verify;

static bool isCommunication(Op op) { return op == Op::Coll || op == Op::Send || op == Op::Recv; }

static Trace traceOf(const Bundle &bundle, const Program &program, const Entry &entry) {
  std::vector<uint32_t> comms;
  for (const Comm &comm : program.comms) {
    uint32_t i = 0;
    while (bundle.manifest.communicators[i].name != comm.name)
      ++i;
    comms.push_back(i);
  }
  Trace trace;
  for (const Run &run : entry.runs) {
    const std::vector<Instruction> &list = program.blocks[run.block].instructions;
    uint32_t left = 0, size = 0;
    for (uint32_t n = 0; n < list.size(); ++n) {
      const Instruction &it = list[n];
      if (it.op == Op::Group) {
        left = size = uint32_t(it.n);
        ++trace.groups;
      }
      if (!isCommunication(it.op))
        continue;
      CommOp op{&it, &run, run.block, n, trace.units, size, size - left, 0, comms[it.comm]};
      if (it.op != Op::Coll)
        op.peer = it.peer[uint64_t(run.microbatch) % it.peer.size()];
      trace.ops.push_back(op);
      left = left ? left - 1 : 0;
      if (left == 0)
        ++trace.units, size = 0;
    }
  }
  return trace;
}

std::vector<Trace> par::verify::tracesOf(const Bundle &bundle, const std::string &entry) {
  std::vector<Trace> traces;
  for (const Program &program : bundle.programs)
    traces.push_back(traceOf(bundle, program, program.entries[program.findEntry(entry)]));
  return traces;
}

Actors par::verify::roleActors(const Bundle &bundle) {
  Actors actors;
  actors.role.resize(bundle.programs.size());
  actors.rank.resize(bundle.programs.size());
  std::iota(actors.role.begin(), actors.role.end(), 0);
  for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank) {
    actors.of.push_back(bundle.manifest.ranks[rank].role);
    actors.rank[actors.of.back()] = rank;
  }
  return actors;
}

Actors par::verify::rankActors(const Bundle &bundle) {
  Actors actors;
  for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank) {
    actors.role.push_back(bundle.manifest.ranks[rank].role);
    actors.rank.push_back(rank);
    actors.of.push_back(rank);
  }
  return actors;
}

/// Place of an instruction: "    block forward, microbatch 3, node_MatMul_41".
static std::string context(const Bundle &bundle, const Program &program, const Run &run, const Instruction &it) {
  std::string text = "    block " + program.blocks[run.block].name + ", microbatch " + std::to_string(run.microbatch);
  if (it.provenance >= 0 && size_t(it.provenance) < bundle.provenance.size())
    text += ", " + bundle.provenance[size_t(it.provenance)];
  return text;
}

static std::string payload(const Program &program, const Instruction &it) {
  const Buffer &buffer = program.buffers[it.operands[0].buffer];
  if (buffer.type == it.type && buffer.bytes() == it.n * sizeOf(it.type))
    return describe(buffer);
  return std::string(toString(it.type)) + "[" + std::to_string(it.n) + "]";
}

std::string par::verify::describeOp(const Bundle &bundle, uint32_t rank, const CommOp &op) {
  const Program &program = bundle.programs[bundle.manifest.ranks[rank].role];
  const Instruction &it = *op.it;
  std::string text = "rank " + std::to_string(rank) + "  " + instructionId(program, op.block, op.n) + "  ";
  if (it.op == Op::Coll) {
    text += std::string(toString(it.coll)) + " " + payload(program, it) + " on " + program.comms[it.comm].name;
  } else {
    const Communicator &comm = bundle.manifest.communicators[op.comm];
    std::optional<Membership> own = membershipOf(comm, rank);
    bool known = own && op.peer < comm.groups[own->group].size();
    text += std::string(toString(it.op)) + " " + payload(program, it) + (it.op == Op::Send ? " to " : " from ") +
            (known ? std::to_string(comm.groups[own->group][op.peer]) : "?");
  }
  return text + context(bundle, program, *op.run, it);
}

std::string par::verify::describeStep(const Bundle &bundle, uint32_t rank, const Run &run, uint32_t n) {
  const Program &program = bundle.programs[bundle.manifest.ranks[rank].role];
  const Instruction &it = program.blocks[run.block].instructions[n];
  std::string text = "rank " + std::to_string(rank) + "  " + instructionId(program, run.block, n) + "  " +
                     std::string(toString(it.op));
  if (it.op == Op::Kernel)
    text += " " + program.kernels[it.kernel].name;
  if (it.op == Op::Call)
    text += " " + program.calls[it.call].name;
  if (it.op == Op::Feed || it.op == Op::Fetch)
    text += " " + it.name;
  for (const Operand &operand : it.operands)
    text += (&operand == it.operands.data() ? " " : ", ") + describe(program, operand);
  return text + context(bundle, program, run, it);
}

Nodes::Nodes(const Actors &actors, const std::vector<Trace> &traces) {
  uint32_t total = 0;
  for (uint32_t role : actors.role) {
    first.push_back(total);
    total += uint32_t(traces[role].ops.size());
  }
  parent.resize(total);
  std::iota(parent.begin(), parent.end(), 0);
}

uint32_t Nodes::root(uint32_t node) {
  while (parent[node] != node)
    node = parent[node] = parent[parent[node]];
  return node;
}

void Nodes::merge(uint32_t a, uint32_t b) { parent[root(a)] = root(b); }
