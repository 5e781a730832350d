// A program from role-K.json.
#include "Check.h"
#include "Json.h"

#include <unordered_map>

using namespace par::format;

namespace {
/// Names of one table; refuses a second element of the same name.
class Table {
public:
  explicit Table(Word what) : what(what) {}
  void add(const Node &node, const std::string &name) {
    if (!places.emplace(name, uint32_t(places.size())).second)
      node.fail("second " + std::string(what) + " called '" + name + "'");
  }
  uint32_t find(const Node &node, const std::string &name) const {
    auto it = places.find(name);
    if (it != places.end())
      return it->second;
    node.fail("no " + std::string(what) + " called '" + name + "'");
    return 0;
  }

private:
  Word what;
  std::unordered_map<std::string, uint32_t> places;
};

struct Reader {
  Program program;
  Table queues{"queue"}, buffers{"buffer"}, kernels{"kernel"}, calls{"call"}, comms{"communicator"}, events{"event"},
      blocks{"block"}, entries{"entry"};

  void read(const Node &root);

private:
  void readBuffers(const Node &list);
  void readKernels(const Node &list);
  std::vector<Dependence> dependences(const Node &list);
  Launch launch(const Node &node);
  void readCalls(const Node &list);
  void readComms(const Node &list);
  void readEvents(const Node &list);
  void readEntries(const Node &members);
  Instruction instruction(const Node &node);
  void communication(const Node &node, Instruction &it);
  void event(const Node &node, Instruction &it);
  std::vector<Imm> imms(const Node &node);
  Operand operand(const Node &node);
};
} // namespace

int64_t par::format::readVersion(const Node &node) {
  std::vector<int64_t> version = node.integers();
  if (version.size() != 2)
    node.fail("a version is [major, minor]");
  else if (version[0] != formatMajor || version[1] < 0 || version[1] > formatMinor)
    node.fail("version " + std::to_string(version[0]) + "." + std::to_string(version[1]) + ", this runtime reads " +
              std::to_string(formatMajor) + ".0 to " + std::to_string(formatMajor) + "." + std::to_string(formatMinor));
  return node.failed() ? formatMinor : version[1];
}

void Reader::readBuffers(const Node &list) {
  std::vector<Node> nodes = list.list();
  for (const Node &node : nodes) {
    Buffer buffer;
    buffer.name = node.at("name").name();
    buffers.add(node, buffer.name);
    buffer.space = node.at("space").word<Space>("space");
    buffer.kind = node.at("kind").word<BufferKind>("kind");
    buffer.type = node.at("type").word<DType>("type");
    buffer.shape = node.at("shape").integers();
    buffer.index = node.at("index").word<Index>("index");
    if (node.has("tensor"))
      buffer.tensor = node.at("tensor").text();
    program.buffers.push_back(std::move(buffer));
  }
  // Aliases may precede their buffers.
  for (size_t i = 0; i < nodes.size(); ++i) {
    Buffer &buffer = program.buffers[i];
    if (nodes[i].has("of")) {
      nodes[i].only({"name", "space", "kind", "type", "shape", "index", "of", "offset", "tensor"});
      buffer.of = buffers.find(nodes[i].at("of"), nodes[i].at("of").text());
      buffer.offset = uint64_t(nodes[i].at("offset").integer());
    } else {
      nodes[i].only({"name", "space", "kind", "type", "shape", "index", "at", "tensor"});
      for (int64_t at : nodes[i].at("at").integers())
        buffer.at.push_back(uint64_t(at));
    }
  }
}

/// {"grid": [64, 1, 1], "block": [256, 1, 1], "shared": 0}.
Launch Reader::launch(const Node &node) {
  node.only({"grid", "block", "shared"});
  Launch launch;
  for (auto [key, sizes] : {std::pair{"grid", &launch.grid}, std::pair{"block", &launch.block}}) {
    std::vector<int64_t> numbers = node.at(key).integers(1, INT32_MAX);
    if (numbers.size() != 3)
      node.at(key).fail("three sizes: x, y and z");
    else
      std::copy(numbers.begin(), numbers.end(), sizes->begin());
  }
  launch.shared = uint64_t(node.at("shared").integer());
  return launch;
}

std::vector<Dependence> Reader::dependences(const Node &list) {
  std::vector<Dependence> deps;
  for (const Node &node : list.list()) {
    std::vector<Node> parts = node.list();
    if (parts.size() != 2) {
      node.fail("a kernel's dependence is [operands, immediates]");
      continue;
    }
    Dependence &made = deps.emplace_back();
    for (auto [from, to] : {std::pair(&parts[0], &made.operands), std::pair(&parts[1], &made.imms)})
      for (int64_t index : from->integers(0, INT32_MAX))
        to->push_back(uint32_t(index));
  }
  return deps;
}

void Reader::readKernels(const Node &list) {
  for (const Node &node : list.list()) {
    Kernel kernel;
    kernel.name = node.at("name").name();
    kernels.add(node, kernel.name);
    kernel.builtin = node.has("builtin");
    node.only({"name", kernel.builtin ? "builtin" : "symbol", "operands", "deps", "tiles", "imms", "launch", "flops"});
    kernel.symbol = node.at(kernel.builtin ? "builtin" : "symbol").name();
    for (const Node &pair : node.at("operands").list()) {
      std::vector<Node> parts = pair.list();
      if (parts.size() != 2)
        pair.fail("a kernel's operand is [access, bytes]");
      else
        kernel.operands.push_back({parts[0].word<Access>("access"), uint64_t(parts[1].integer())});
    }
    if (node.has("deps"))
      kernel.deps = dependences(node.at("deps"));
    kernel.tiles = uint32_t(node.at("tiles").integer(1, 1 << 30));
    kernel.imms = node.at("imms").index(1024);
    if (node.has("launch"))
      kernel.launch = launch(node.at("launch"));
    kernel.flops = node.has("flops") ? node.at("flops").integer() : 0;
    program.kernels.push_back(std::move(kernel));
  }
}

void Reader::readCalls(const Node &list) {
  for (const Node &node : list.list()) {
    node.only({"name",     "kind",     "type",    "type_c", "batch", "m",        "n",
               "k",        "trans_a",  "trans_b", "lda",    "ldb",   "ldc",      "stride_a",
               "stride_b", "stride_c", "alpha",   "beta",   "bias",  "epilogue", "workspace"});
    Call call;
    call.name = node.at("name").name();
    calls.add(node, call.name);
    call.kind = node.at("kind").text();
    call.type = node.at("type").word<DType>("type");
    call.typeC = node.has("type_c") ? node.at("type_c").word<DType>("type") : call.type;
    call.batch = node.at("batch").integers(1);
    call.m = node.at("m").integer(1), call.n = node.at("n").integer(1), call.k = node.at("k").integer(1);
    call.transA = node.at("trans_a").boolean(), call.transB = node.at("trans_b").boolean();
    call.lda = node.at("lda").integer(1), call.ldb = node.at("ldb").integer(1), call.ldc = node.at("ldc").integer(1);
    call.strideA = node.at("stride_a").integers();
    call.strideB = node.at("stride_b").integers();
    call.strideC = node.at("stride_c").integers();
    call.alpha = node.at("alpha").number(), call.beta = node.at("beta").number();
    call.bias = node.at("bias").boolean();
    if (node.has("epilogue"))
      call.epilogue = node.at("epilogue").word<Epilogue>("epilogue");
    call.workspace = uint64_t(node.at("workspace").integer());
    program.calls.push_back(std::move(call));
  }
}

void Reader::readComms(const Node &list) {
  for (const Node &node : list.list()) {
    node.only({"name", "queue"});
    comms.add(node, node.at("name").name());
    program.comms.push_back({node.at("name").text(), queues.find(node.at("queue"), node.at("queue").text())});
  }
}

void Reader::readEvents(const Node &list) {
  for (const Node &node : list.list()) {
    node.only({"name", "index", "depth"});
    events.add(node, node.at("name").name());
    program.events.push_back({node.at("name").text(), node.at("index").word<Index>("index"),
                              uint32_t(node.at("depth").integer(1, 1 << 20))});
  }
}

/// `r x3`, `rw t4`, `acc g.wte`, `w p@ver+1`.
Operand Reader::operand(const Node &node) {
  const std::string &text = node.text();
  size_t blank = text.find(' '), sign = text.find('@');
  Operand operand;
  std::optional<Access> access = valueOf<Access>(Word(text).substr(0, blank));
  if (blank == std::string::npos || !access) {
    node.fail("'" + text + "' is not an operand: 'r|w|rw|acc BUFFER[@SLOT]'");
    return operand;
  }
  operand.access = *access;
  std::string name = text.substr(blank + 1, sign == std::string::npos ? sign : sign - blank - 1);
  operand.buffer = buffers.find(node, name);
  if (node.failed())
    return operand;
  std::optional<SlotExpr> slot =
      parseSlot(sign == std::string::npos ? Word() : Word(text).substr(sign), program.buffers[operand.buffer].index);
  if (!slot)
    node.fail("'" + text.substr(sign) + "' is not a slot: '@N', '@mb+N' or '@ver+N'");
  operand.slot = slot.value_or(SlotExpr());
  return operand;
}

std::vector<Imm> Reader::imms(const Node &node) {
  std::vector<Imm> values;
  for (const Node &item : node.list()) {
    Imm imm;
    if (item.isObject()) {
      item.only({"axis", "scale", "add"});
      imm.axis = item.at("axis").name();
      imm.scale = item.has("scale") ? item.at("scale").integer(INT32_MIN, INT32_MAX) : 1;
      imm.value = item.has("add") ? item.at("add").integer(INT32_MIN, INT32_MAX) : 0;
    } else {
      imm.value = item.integer(INT64_MIN);
    }
    values.push_back(std::move(imm));
  }
  return values;
}

void Reader::communication(const Node &node, Instruction &it) {
  it.comm = comms.find(node.at("comm"), node.at("comm").text());
  it.type = node.at("type").word<DType>("type");
  it.n = uint64_t(node.at("n").integer(1));
  it.tag = uint64_t(node.at("tag").integer());
  if (it.op != Op::Coll) {
    node.only({"op", "q", "comm", "peer", "type", "n", "tag", "args", "p"});
    Node peer = node.at("peer");
    it.peer = peer.isArray() ? peer.indices() : std::vector<uint32_t>{peer.index()};
    return;
  }
  it.coll = node.at("kind").word<CollKind>("collective");
  bool reduces = it.coll == CollKind::AllReduce || it.coll == CollKind::ReduceScatter || it.coll == CollKind::Reduce;
  bool rooted = it.coll == CollKind::Broadcast || it.coll == CollKind::Reduce;
  // A key that this kind does not have is as unknown as any other.
  node.only(
      {"op", "q", "comm", "kind", "type", "n", "tag", "args", "p", reduces ? "red" : "op", rooted ? "root" : "op"});
  if (reduces)
    it.reduction = node.at("red").word<Reduction>("reduction");
  if (rooted)
    it.root = node.at("root").index();
}

/// `sent@mb-1`.
void Reader::event(const Node &node, Instruction &it) {
  node.only({"op", "q", "e", "p"});
  const std::string &text = node.at("e").text();
  size_t sign = text.find('@');
  it.event = events.find(node.at("e"), text.substr(0, sign));
  if (node.failed())
    return;
  std::optional<SlotExpr> slot =
      parseSlot(sign == std::string::npos ? Word() : Word(text).substr(sign), program.events[it.event].index);
  if (!slot)
    node.fail("'" + text.substr(sign) + "' is not a slot: '@N', '@mb+N' or '@ver+N'");
  it.eventSlot = slot.value_or(SlotExpr());
}

Instruction Reader::instruction(const Node &node) {
  Instruction it;
  it.op = node.at("op").word<Op>("opcode");
  it.queue = queues.find(node.at("q"), node.at("q").text());
  switch (it.op) {
  case Op::Kernel:
    node.only({"op", "q", "k", "imm", "args", "p"});
    it.kernel = kernels.find(node.at("k"), node.at("k").text());
    if (node.has("imm"))
      it.imms = imms(node.at("imm"));
    break;
  case Op::Call:
    node.only({"op", "q", "lib", "args", "p"});
    it.call = calls.find(node.at("lib"), node.at("lib").text());
    break;
  case Op::Coll:
  case Op::Send:
  case Op::Recv:
    communication(node, it);
    break;
  case Op::Group:
    node.only({"op", "q", "n", "p"});
    it.n = uint64_t(node.at("n").integer(1, maxGroup));
    break;
  case Op::Copy:
    node.only({"op", "q", "n", "args", "p"});
    it.n = uint64_t(node.at("n").integer(1));
    break;
  case Op::Fill:
    node.only({"op", "q", "value", "n", "args", "p"});
    it.n = uint64_t(node.at("n").integer(1));
    it.value = node.at("value").number();
    break;
  case Op::Signal:
  case Op::Wait:
    event(node, it);
    break;
  case Op::Feed:
  case Op::Fetch:
    node.only({"op", "q", "name", "args", "p"});
    it.name = node.at("name").text();
    break;
  }
  if (node.has("args"))
    for (const Node &text : node.at("args").list())
      it.operands.push_back(operand(text));
  if (node.has("p"))
    it.provenance = int32_t(node.at("p").integer(0, INT32_MAX));
  return it;
}

void Reader::readEntries(const Node &members) {
  for (const auto &[name, list] : members.members()) {
    Entry entry;
    entry.name = name;
    for (const Node &run : list.list()) {
      std::vector<Node> parts = run.list();
      if (parts.size() != 3) {
        run.fail("a run is [block, microbatch, version]");
        return;
      }
      entry.runs.push_back(
          {blocks.find(parts[0], parts[0].text()), parts[1].integer(0, INT32_MAX), parts[2].integer(0, INT32_MAX)});
    }
    program.entries.push_back(std::move(entry));
  }
}

void Reader::read(const Node &root) {
  readVersion(root.at("par_program"));
  if (root.failed())
    return;
  root.only({"par_program", "name", "arena", "queues", "buffers", "kernels", "calls", "comms", "events", "blocks",
             "entries"});
  program.name = root.at("name").name();
  Node arena = root.at("arena");
  arena.only({"state", "pool", "host"});
  program.arena = {uint64_t(arena.at("state").integer()), uint64_t(arena.at("pool").integer()),
                   uint64_t(arena.at("host").integer())};
  for (const Node &queue : root.at("queues").list()) {
    queues.add(queue, queue.name());
    program.queues.push_back(queue.text());
  }
  readBuffers(root.at("buffers"));
  readKernels(root.at("kernels"));
  readCalls(root.at("calls"));
  readComms(root.at("comms"));
  readEvents(root.at("events"));
  for (const auto &[name, list] : root.at("blocks").members()) {
    blocks.add(list, name);
    Block block;
    block.name = name;
    for (const Node &node : list.list())
      if (!node.failed())
        block.instructions.push_back(instruction(node));
    program.blocks.push_back(std::move(block));
  }
  readEntries(root.at("entries"));
}

Expected<Program> par::format::parseProgram(std::string_view text, const std::string &where) {
  Expected<Json> json = parseJson(text, where);
  if (!json)
    return json.error();
  Document document{where, std::move(*json), std::nullopt};
  Reader reader;
  reader.read(Node(document));
  if (document.error)
    return *document.error;
  if (Status sound = checkProgram(reader.program, where); !sound)
    return sound.error();
  return std::move(reader.program);
}
