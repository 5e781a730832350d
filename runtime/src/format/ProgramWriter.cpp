// Role-K.json from a program.
#include "Json.h"

using namespace par::format;

static void write(Writer &w, const Program &program, const Buffer &buffer) {
  w.raw("{").key("name").text(buffer.name).key("space").text(nameOf(buffer.space));
  w.key("kind").text(nameOf(buffer.kind)).key("type").text(nameOf(buffer.type));
  w.key("shape").numbers(buffer.shape).key("index").text(nameOf(buffer.index));
  if (buffer.of == noIndex)
    w.key("at").numbers(buffer.at);
  else
    w.key("of").text(program.buffers[buffer.of].name).key("offset").number(int64_t(buffer.offset));
  if (!buffer.tensor.empty())
    w.key("tensor").text(buffer.tensor);
  w.raw("}");
}

static void write(Writer &w, const Program &, const Kernel &kernel) {
  w.raw("{").key("name").text(kernel.name).key(kernel.builtin ? "builtin" : "symbol").text(kernel.symbol);
  w.key("operands").raw("[");
  for (const KernelOperand &operand : kernel.operands)
    w.comma().raw("[").text(nameOf(operand.access)).raw(",").number(int64_t(operand.bytes)).raw("]");
  w.raw("]");
  if (!kernel.deps.empty()) {
    w.key("deps").raw("[");
    for (const Dependence &dependence : kernel.deps)
      w.comma().raw("[").numbers(dependence.operands).raw(",").numbers(dependence.imms).raw("]");
    w.raw("]");
  }
  w.key("tiles").number(kernel.tiles).key("imms").number(kernel.imms);
  if (const Launch &launch = kernel.launch; launch.isGpu()) {
    w.key("launch").raw("{").key("grid").numbers(std::vector<uint32_t>(launch.grid.begin(), launch.grid.end()));
    w.key("block").numbers(std::vector<uint32_t>(launch.block.begin(), launch.block.end()));
    w.key("shared").number(int64_t(launch.shared)).raw("}");
  }
  if (kernel.flops)
    w.key("flops").number(kernel.flops);
  w.raw("}");
}

static void write(Writer &w, const Program &, const Call &call) {
  w.raw("{").key("name").text(call.name).key("kind").text(call.kind).key("type").text(nameOf(call.type));
  if (call.typeC != call.type)
    w.key("type_c").text(nameOf(call.typeC));
  w.key("batch").numbers(call.batch).key("m").number(call.m).key("n").number(call.n).key("k").number(call.k);
  w.key("trans_a").boolean(call.transA).key("trans_b").boolean(call.transB);
  w.key("lda").number(call.lda).key("ldb").number(call.ldb).key("ldc").number(call.ldc);
  w.key("stride_a").numbers(call.strideA).key("stride_b").numbers(call.strideB).key("stride_c").numbers(call.strideC);
  w.key("alpha").real(call.alpha).key("beta").real(call.beta).key("bias").boolean(call.bias);
  if (call.epilogue != Epilogue::None)
    w.key("epilogue").text(nameOf(call.epilogue));
  w.key("workspace").number(int64_t(call.workspace)).raw("}");
}

static void write(Writer &w, const Program &program, const Comm &comm) {
  w.raw("{").key("name").text(comm.name).key("queue").text(program.queues[comm.queue]).raw("}");
}

static void write(Writer &w, const Program &, const Event &event) {
  w.raw("{").key("name").text(event.name).key("index").text(nameOf(event.index));
  w.key("depth").number(event.depth).raw("}");
}

static void writeImms(Writer &w, const std::vector<Imm> &imms) {
  if (imms.empty())
    return;
  w.key("imm").raw("[");
  for (const Imm &imm : imms) {
    if (imm.axis.empty()) {
      w.comma().number(imm.value);
      continue;
    }
    w.comma().raw("{").key("axis").text(imm.axis);
    if (imm.scale != 1)
      w.key("scale").number(imm.scale);
    if (imm.value)
      w.key("add").number(imm.value);
    w.raw("}");
  }
  w.raw("]");
}

/// The keys that only communications have.
static void writeCommunication(Writer &w, const Program &program, const Instruction &it) {
  w.key("comm").text(program.comms[it.comm].name);
  if (it.op == Op::Coll) {
    w.key("kind").text(nameOf(it.coll));
    if (it.coll == CollKind::AllReduce || it.coll == CollKind::ReduceScatter || it.coll == CollKind::Reduce)
      w.key("red").text(nameOf(it.reduction));
    if (it.coll == CollKind::Broadcast || it.coll == CollKind::Reduce)
      w.key("root").number(it.root);
  } else if (it.peer.size() == 1) {
    w.key("peer").number(it.peer[0]);
  } else {
    w.key("peer").numbers(it.peer);
  }
  w.key("type").text(nameOf(it.type)).key("n").number(int64_t(it.n)).key("tag").number(int64_t(it.tag));
}

static void write(Writer &w, const Program &program, const Instruction &it) {
  w.raw("{").key("op").text(nameOf(it.op)).key("q").text(program.queues[it.queue]);
  switch (it.op) {
  case Op::Kernel:
    w.key("k").text(program.kernels[it.kernel].name);
    writeImms(w, it.imms);
    break;
  case Op::Call:
    w.key("lib").text(program.calls[it.call].name);
    break;
  case Op::Coll:
  case Op::Send:
  case Op::Recv:
    writeCommunication(w, program, it);
    break;
  case Op::Fill:
    w.key("value").real(it.value);
    [[fallthrough]];
  case Op::Group:
  case Op::Copy:
    w.key("n").number(int64_t(it.n));
    break;
  case Op::Signal:
  case Op::Wait:
    w.key("e").text(program.events[it.event].name + slotText(it.eventSlot, program.events[it.event].index));
    break;
  case Op::Feed:
  case Op::Fetch:
    w.key("name").text(it.name);
    break;
  }
  if (!it.operands.empty()) {
    w.key("args").raw("[");
    for (const Operand &operand : it.operands)
      w.comma().text(describe(program, operand));
    w.raw("]");
  }
  if (it.provenance >= 0)
    w.key("p").number(it.provenance);
  w.raw("}");
}

/// One element of a table a line.
template <typename T>
static void writeTable(Writer &w, const Program &program, Word name, const std::vector<T> &table) {
  w.raw("\n").key(name).raw("[");
  for (const T &element : table) {
    w.raw("\n").comma();
    write(w, program, element);
  }
  w.raw("]");
}

static void writeEntries(Writer &w, const Program &program) {
  w.raw("\n").key("entries").raw("{");
  for (const Entry &entry : program.entries) {
    w.raw("\n").key(entry.name).raw("[");
    for (const Run &run : entry.runs) {
      w.raw("\n").comma().raw("[").text(program.blocks[run.block].name);
      w.raw(",").number(run.microbatch).raw(",").number(run.version).raw("]");
    }
    w.raw("]");
  }
  w.raw("}");
}

std::string par::format::writeProgram(const Program &program) {
  Writer w;
  w.raw("{").key("par_program").numbers(std::vector<int64_t>{formatMajor, formatMinor});
  w.raw("\n").key("name").text(program.name);
  w.raw("\n").key("arena").raw("{").key("state").number(int64_t(program.arena.state));
  w.key("pool").number(int64_t(program.arena.pool)).key("host").number(int64_t(program.arena.host)).raw("}");
  w.raw("\n").key("queues").texts(program.queues);
  writeTable(w, program, "buffers", program.buffers);
  writeTable(w, program, "kernels", program.kernels);
  writeTable(w, program, "calls", program.calls);
  writeTable(w, program, "comms", program.comms);
  writeTable(w, program, "events", program.events);
  w.raw("\n").key("blocks").raw("{");
  for (const Block &block : program.blocks)
    writeTable(w, program, block.name, block.instructions);
  w.raw("}");
  writeEntries(w, program);
  w.raw("}\n");
  return w.take();
}
