// Programs line by line.
#include "ToyBundles.h"

#include <cstdio>
#include <cstdlib>

using namespace par::format;
using namespace par::toy;

template <typename T>
static uint32_t find(const std::vector<T> &table, const std::string &name) {
  for (size_t i = 0; i < table.size(); ++i) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (table[i] == name)
        return uint32_t(i);
    } else if (table[i].name == name) {
      return uint32_t(i);
    }
  }
  std::fprintf(stderr, "toy bundle: nothing is called '%s'\n", name.c_str());
  std::abort();
}

ProgramBuilder::ProgramBuilder(std::string name, std::vector<std::string> queues) {
  program.name = std::move(name);
  program.queues = std::move(queues);
}

uint32_t ProgramBuilder::buffer(std::string name, BufferKind kind, std::vector<int64_t> shape, Index index,
                                uint32_t depth, std::string tensor) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.kind = kind;
  buffer.shape = std::move(shape);
  buffer.index = index;
  buffer.tensor = std::move(tensor);
  uint64_t size = (buffer.bytes() + arenaAlignment - 1) / arenaAlignment * arenaAlignment;
  uint64_t &part = kind == BufferKind::State ? program.arena.state : program.arena.pool;
  for (uint32_t slot = 0; slot < depth; ++slot) {
    buffer.at.push_back((kind == BufferKind::State ? 0 : program.arena.state) + part);
    part += size;
  }
  program.buffers.push_back(std::move(buffer));
  return uint32_t(program.buffers.size() - 1);
}

uint32_t ProgramBuilder::alias(std::string name, const std::string &of, std::vector<int64_t> shape, uint64_t offset) {
  Buffer buffer = program.buffers[find(program.buffers, of)];
  buffer.of = find(program.buffers, of);
  buffer.name = std::move(name);
  buffer.shape = std::move(shape);
  buffer.offset = offset;
  buffer.at.clear();
  buffer.tensor.clear();
  program.buffers.push_back(std::move(buffer));
  return uint32_t(program.buffers.size() - 1);
}

void ProgramBuilder::comm(std::string name, std::string queue) {
  program.comms.push_back({std::move(name), find(program.queues, queue)});
}

void ProgramBuilder::event(std::string name, Index index, uint32_t depth) {
  program.events.push_back({std::move(name), index, depth});
}

void ProgramBuilder::product(std::string name, int64_t m, int64_t n, int64_t k, bool transA, bool transB, double alpha,
                             double beta) {
  Call call;
  call.name = std::move(name);
  call.m = m, call.n = n, call.k = k;
  call.transA = transA, call.transB = transB;
  call.lda = transA ? m : k, call.ldb = transB ? k : n, call.ldc = n;
  call.alpha = alpha, call.beta = beta;
  program.calls.push_back(std::move(call));
}

void ProgramBuilder::block(std::string name) { program.blocks.push_back({std::move(name), {}}); }

Instruction &ProgramBuilder::add(Op op, const std::string &queue) {
  Instruction it;
  it.op = op;
  it.queue = find(program.queues, queue);
  program.blocks.back().instructions.push_back(std::move(it));
  return program.blocks.back().instructions.back();
}

void ProgramBuilder::operand(Instruction &it, Access access, const std::string &name) {
  uint32_t buffer = find(program.buffers, name);
  Index index = program.buffers[buffer].index;
  it.operands.push_back({access,
                         buffer,
                         {index == Index::Mb    ? SlotExpr::Mb
                          : index == Index::Ver ? SlotExpr::Ver
                                                : SlotExpr::Fixed,
                          0}});
}

Instruction &ProgramBuilder::call(std::string queue, std::string call, std::vector<std::string> args) {
  Instruction &it = add(Op::Call, queue);
  it.call = find(program.calls, call);
  for (size_t i = 0; i < args.size(); ++i) {
    bool result = i + 1 == args.size();
    bool adds = program.calls[it.call].beta != 0;
    operand(it, !result ? Access::Read : adds ? Access::Accumulate : Access::Write, args[i]);
  }
  return it;
}

Instruction &ProgramBuilder::kernel(std::string queue, std::string name, std::vector<std::string> args) {
  Instruction &it = add(Op::Kernel, queue);
  Kernel kernel{name, true, name, {}, 1, 0};
  for (const std::string &arg : args) {
    std::string word = arg.substr(0, arg.find(' '));
    Access access = word == "r"    ? Access::Read
                    : word == "w"  ? Access::Write
                    : word == "rw" ? Access::ReadWrite
                                   : Access::Accumulate;
    operand(it, access, arg.substr(word.size() + 1));
    kernel.operands.push_back({access, program.buffers[it.operands.back().buffer].bytes()});
  }
  it.kernel = 0;
  while (it.kernel < program.kernels.size() && program.kernels[it.kernel].name != name)
    ++it.kernel;
  if (it.kernel == program.kernels.size())
    program.kernels.push_back(std::move(kernel));
  return it;
}

Instruction &ProgramBuilder::collective(std::string queue, std::string comm, CollKind kind, uint64_t n, std::string arg,
                                        uint64_t tag) {
  Instruction &it = add(Op::Coll, queue);
  it.comm = find(program.comms, comm);
  it.coll = kind;
  it.n = n;
  it.tag = tag;
  operand(it, Access::ReadWrite, arg);
  return it;
}

Instruction &ProgramBuilder::send(std::string queue, std::string comm, uint32_t peer, uint64_t n, std::string arg,
                                  uint64_t tag) {
  Instruction &it = add(Op::Send, queue);
  it.comm = find(program.comms, comm);
  it.peer = {peer};
  it.n = n;
  it.tag = tag;
  operand(it, Access::Read, arg);
  return it;
}

Instruction &ProgramBuilder::recv(std::string queue, std::string comm, uint32_t peer, uint64_t n, std::string arg,
                                  uint64_t tag) {
  Instruction &it = send(std::move(queue), std::move(comm), peer, n, std::move(arg), tag);
  it.op = Op::Recv;
  it.operands[0].access = Access::Write;
  return it;
}

Instruction &ProgramBuilder::copy(std::string queue, uint64_t n, std::string from, std::string to) {
  Instruction &it = add(Op::Copy, queue);
  it.n = n;
  operand(it, Access::Read, from);
  operand(it, Access::Write, to);
  return it;
}

Instruction &ProgramBuilder::fill(std::string queue, uint64_t n, double value, std::string to) {
  Instruction &it = add(Op::Fill, queue);
  it.n = n;
  it.value = value;
  operand(it, Access::Write, to);
  return it;
}

Instruction &ProgramBuilder::group(std::string queue, uint64_t n) {
  Instruction &it = add(Op::Group, queue);
  it.n = n;
  return it;
}

void ProgramBuilder::signal(std::string queue, std::string event) {
  Instruction &it = add(Op::Signal, queue);
  it.event = find(program.events, event);
  if (program.events[it.event].index == Index::Mb)
    it.eventSlot = {SlotExpr::Mb, 0};
}

void ProgramBuilder::wait(std::string queue, std::string event) {
  signal(std::move(queue), std::move(event));
  program.blocks.back().instructions.back().op = Op::Wait;
}

void ProgramBuilder::feed(std::string queue, std::string name, std::string to) {
  Instruction &it = add(Op::Feed, queue);
  it.name = std::move(name);
  operand(it, Access::Write, to);
}

void ProgramBuilder::fetch(std::string queue, std::string name, std::string from) {
  Instruction &it = add(Op::Fetch, queue);
  it.name = std::move(name);
  operand(it, Access::Read, from);
}

void ProgramBuilder::run(std::string entry, std::string block, int64_t microbatch) {
  uint32_t e = program.findEntry(entry);
  if (e == noIndex) {
    program.entries.push_back({std::move(entry), {}});
    e = uint32_t(program.entries.size() - 1);
  }
  program.entries[e].runs.push_back({find(program.blocks, block), microbatch, 0});
}
