// Small valid bundles, built by hand for tests.
#include "ToyBundles.h"

#include "par/format/Sha256.h"

#include <numeric>

using namespace par::format;
using namespace par::toy;

Bundle par::toy::alone(Program program) {
  Bundle bundle;
  Manifest &m = bundle.manifest;
  m.planHash = sha256("toy plan");
  m.model = {"toy.onnx", 0, sha256("")};
  m.roles = 1;
  m.peak = {{program.arena.state, program.arena.pool, 0, program.arena.host}};
  m.ranks = {{0, {}}};
  bundle.programs = {std::move(program)};
  return bundle;
}

static std::vector<uint32_t> iota(uint32_t n, uint32_t first = 0, uint32_t step = 1) {
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < n; ++i)
    values.push_back(first + i * step);
  return values;
}

/// A whole tensor on each of `ranks`.
static Layout replicated(std::vector<int64_t> shape, std::vector<uint32_t> ranks) {
  return {shape, shape, {{std::vector<int64_t>(shape.size()), shape, std::move(ranks)}}};
}

/// Rows shared out evenly, in the order of `ranks`.
static Layout rowsLayout(std::vector<int64_t> shape, const std::vector<uint32_t> &ranks) {
  Layout layout{shape, shape, {}};
  layout.local[0] /= int64_t(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i)
    layout.parts.push_back({{int64_t(i) * layout.local[0], 0}, layout.local, {ranks[i]}});
  return layout;
}

static Tensor parameter(std::string name, std::vector<int64_t> shape, std::vector<uint32_t> ranks, InitRule init) {
  return {std::move(name), TensorKind::Parameter, "", DType::F32, shape, replicated(shape, std::move(ranks)), init,
          std::nullopt};
}

/// The parts of a manifest that all toys share.
static Manifest manifestOf(const std::vector<Program> &programs) {
  Manifest manifest;
  manifest.planHash = sha256("toy plan");
  manifest.model = {"toy.onnx", 0, sha256("")};
  manifest.roles = uint32_t(programs.size());
  for (const Program &program : programs)
    manifest.peak.push_back({program.arena.state, program.arena.pool, 0});
  return manifest;
}

Bundle par::toy::allReduce(uint32_t ranks) {
  ProgramBuilder b("all", {"compute", "data", "host"});
  b.buffer("total", BufferKind::State, {8}, Index::None, 1, "total");
  b.buffer("x", BufferKind::Input, {1, 8});
  b.buffer("y", BufferKind::Temp, {1, 8});
  b.buffer("one", BufferKind::Temp, {1});
  b.comm("dp", "data");
  b.event("fed"), b.event("ready"), b.event("reduced"), b.event("done");
  b.product("add", 1, 8, 1, false, false, 1, 1);
  b.block("step");
  b.feed("host", "x", "x");
  b.signal("host", "fed");
  b.fill("compute", 1, 1.0, "one");
  b.wait("compute", "fed");
  b.copy("compute", 8, "x", "y");
  b.signal("compute", "ready");
  b.wait("data", "ready");
  b.collective("data", "dp", CollKind::AllReduce, 8, "y", 1);
  b.signal("data", "reduced");
  b.wait("compute", "reduced");
  b.call("compute", "add", {"one", "y", "total"});
  b.signal("compute", "done");
  b.wait("host", "done");
  b.fetch("host", "y", "y");
  b.run("train", "step");

  Bundle bundle;
  bundle.programs = {b.program};
  Manifest &m = bundle.manifest = manifestOf(bundle.programs);
  m.mesh = {{"dp", ranks}};
  for (uint32_t i = 0; i < ranks; ++i)
    m.ranks.push_back({0, {i}});
  m.communicators = {{"dp", {iota(ranks)}}};
  m.tensors = {parameter("total", {8}, iota(ranks), {})};
  m.tensors[0].kind = TensorKind::Buffer; // what is added to it is no update
  m.inputs = {{"x", DType::F32, {ranks, 8}, true, rowsLayout({ranks, 8}, iota(ranks))}};
  m.outputs = {{"y", DType::F32, {1, 8}, false, iota(ranks)}};
  m.batch = ranks;
  return bundle;
}

static Program halvesProgram() {
  ProgramBuilder b("all", {"compute", "data", "host"});
  b.buffer("total", BufferKind::State, {16}, Index::None, 1, "total");
  b.buffer("x", BufferKind::Input, {1, 8}, Index::Mb, 2);
  b.buffer("pair", BufferKind::Temp, {16}, Index::Mb, 2);
  b.buffer("one", BufferKind::Temp, {1});
  for (auto [half, offset] : {std::pair("low", 0), std::pair("high", 32)}) {
    b.alias(std::string("total.") + half, "total", {8}, uint64_t(offset));
    b.alias(half, "pair", {8}, uint64_t(offset));
  }
  b.comm("dp", "data");
  b.product("add", 1, 8, 1, false, false, 1, 1);
  for (const char *name : {"fed", "taken", "ready", "reduced"})
    b.event(name, Index::Mb, 2);
  b.event("done");
  b.block("feed");
  b.wait("host", "taken");
  b.feed("host", "x", "x");
  b.signal("host", "fed");
  b.block("step");
  b.fill("compute", 1, 1.0, "one");
  b.wait("compute", "fed");
  b.copy("compute", 8, "x", "low");
  b.signal("compute", "taken");
  b.signal("compute", "ready");
  b.wait("data", "ready");
  b.collective("data", "dp", CollKind::AllReduce, 8, "low", 1);
  b.signal("data", "reduced");
  b.fill("compute", 8, 2.0, "high");
  b.call("compute", "add", {"one", "high", "total.high"});
  b.wait("compute", "reduced");
  b.call("compute", "add", {"one", "low", "total.low"});
  b.block("end");
  b.signal("compute", "done");
  b.wait("host", "done");
  b.fetch("host", "total", "total");
  for (int64_t microbatch : {0, 1, 2}) {
    b.run("train", "feed", microbatch);
    b.run("train", "step", microbatch);
  }
  b.run("train", "end");
  return b.program;
}

Bundle par::toy::halves(uint32_t ranks) {
  Bundle bundle;
  bundle.programs = {halvesProgram()};
  Manifest &m = bundle.manifest = manifestOf(bundle.programs);
  m.mesh = {{"dp", ranks}};
  for (uint32_t i = 0; i < ranks; ++i)
    m.ranks.push_back({0, {i}});
  m.communicators = {{"dp", {iota(ranks)}}};
  m.tensors = {parameter("total", {16}, iota(ranks), {})};
  m.tensors[0].kind = TensorKind::Buffer; // what is added to it is no update
  m.inputs = {{"x", DType::F32, {3 * ranks, 8}, true, rowsLayout({ranks, 8}, iota(ranks))}};
  m.outputs = {{"total", DType::F32, {16}, false, iota(ranks)}};
  m.microbatches = 3;
  m.batch = 3 * ranks;
  return bundle;
}

/// g and w of one stage: all_reduce over dp on its own queue, then w += -0.1 g.
static void updateBlock(ProgramBuilder &b, const std::string &g, const std::string &w, bool reduces, uint64_t tag) {
  b.block("update");
  b.fill("compute", 1, 1.0, "one");
  if (reduces) {
    b.signal("compute", "grads");
    b.wait("data", "grads");
    b.collective("data", "dp", CollKind::AllReduce, 16, g, tag);
    b.signal("data", "reduced");
    b.wait("compute", "reduced");
  }
  b.call("compute", "apply", {"one", g, w});
}

static void commonTables(ProgramBuilder &b) {
  b.comm("pf", "forward"), b.comm("pb", "backward"), b.comm("dp", "data");
  b.event("grads"), b.event("reduced");
  b.product("product", 2, 4, 4, false, false, 1, 0);
  b.product("transposed", 2, 4, 4, false, true, 1, 0);
  b.product("gradient.first", 4, 4, 2, true, false, 1, 0);
  b.product("gradient", 4, 4, 2, true, false, 1, 1);
  b.product("apply", 1, 16, 1, false, false, -0.1, 1);
}

static Program stage0(bool reduces) {
  ProgramBuilder b("stage0", {"compute", "forward", "backward", "data", "host"});
  b.buffer("w0", BufferKind::State, {4, 4}, Index::None, 1, "w0");
  b.buffer("x", BufferKind::Input, {2, 4}, Index::Mb, 2);
  b.buffer("act", BufferKind::Temp, {2, 4}, Index::Mb, 2);
  b.buffer("gact", BufferKind::Temp, {2, 4}, Index::Mb, 2);
  b.buffer("g0", BufferKind::Temp, {4, 4});
  b.buffer("one", BufferKind::Temp, {1});
  commonTables(b);
  for (const char *name : {"xin", "xdone", "out", "sent", "gin", "gdone"})
    b.event(name, Index::Mb, 2);
  b.block("feed");
  b.wait("host", "xdone");
  b.feed("host", "x", "x");
  b.signal("host", "xin");
  b.block("forward");
  b.wait("compute", "xin");
  b.wait("compute", "sent");
  b.call("compute", "product", {"x", "w0", "act"});
  b.signal("compute", "out");
  b.block("sendact");
  b.wait("forward", "out");
  b.send("forward", "pf", 1, 8, "act", 1);
  b.signal("forward", "sent");
  b.block("recvgrad");
  b.wait("backward", "gdone");
  b.recv("backward", "pb", 1, 8, "gact", 2);
  b.signal("backward", "gin");
  for (const char *suffix : {".first", ""}) {
    b.block(std::string("backward") + suffix);
    b.wait("compute", "gin");
    b.call("compute", std::string("gradient") + suffix, {"x", "gact", "g0"});
    b.signal("compute", "xdone");
    b.signal("compute", "gdone");
  }
  updateBlock(b, "g0", "w0", reduces, 3);
  const std::pair<const char *, int64_t> order[] = {
      {"feed", 0},     {"forward", 0},        {"sendact", 0}, {"feed", 1},    {"forward", 1},  {"sendact", 1},
      {"recvgrad", 0}, {"backward.first", 0}, {"feed", 2},    {"forward", 2}, {"recvgrad", 1}, {"sendact", 2},
      {"backward", 1}, {"feed", 3},           {"forward", 3}, {"sendact", 3}, {"recvgrad", 2}, {"backward", 2},
      {"recvgrad", 3}, {"backward", 3},       {"update", 0}};
  for (auto [block, microbatch] : order)
    b.run("train", block, microbatch);
  return b.program;
}

static Program stage1(bool reduces) {
  ProgramBuilder b("stage1", {"compute", "forward", "backward", "data", "host"});
  b.buffer("w1", BufferKind::State, {4, 4}, Index::None, 1, "w1");
  b.buffer("act", BufferKind::Temp, {2, 4}, Index::Mb, 2);
  b.buffer("gact", BufferKind::Temp, {2, 4}, Index::Mb, 2);
  b.buffer("out", BufferKind::Temp, {2, 4});
  b.buffer("g1", BufferKind::Temp, {4, 4});
  b.buffer("one", BufferKind::Temp, {1});
  commonTables(b);
  for (const char *name : {"ain", "adone", "gout", "gsent"})
    b.event(name, Index::Mb, 2);
  b.event("last");
  b.block("recvact");
  b.wait("forward", "adone");
  b.recv("forward", "pf", 0, 8, "act", 1);
  b.signal("forward", "ain");
  for (const char *suffix : {".first", ""}) {
    b.block(std::string("both") + suffix);
    b.wait("compute", "ain");
    b.call("compute", "product", {"act", "w1", "out"});
    b.call("compute", std::string("gradient") + suffix, {"act", "out", "g1"});
    b.wait("compute", "gsent");
    b.call("compute", "transposed", {"out", "w1", "gact"});
    b.signal("compute", "adone");
    b.signal("compute", "gout");
  }
  b.block("sendgrad");
  b.wait("backward", "gout");
  b.send("backward", "pb", 0, 8, "gact", 2);
  b.signal("backward", "gsent");
  updateBlock(b, "g1", "w1", reduces, 4);
  b.signal("compute", "last");
  b.wait("host", "last");
  b.fetch("host", "out", "out");
  const std::pair<const char *, int64_t> order[] = {{"recvact", 0}, {"recvact", 1},  {"both.first", 0}, {"sendgrad", 0},
                                                    {"both", 1},    {"sendgrad", 1}, {"recvact", 2},    {"recvact", 3},
                                                    {"both", 2},    {"sendgrad", 2}, {"both", 3},       {"sendgrad", 3},
                                                    {"update", 0}};
  for (auto [block, microbatch] : order)
    b.run("train", block, microbatch);
  return b.program;
}

Bundle par::toy::pipeline(uint32_t width) {
  Bundle bundle;
  bundle.programs = {stage0(width > 1), stage1(width > 1)};
  Manifest &m = bundle.manifest = manifestOf(bundle.programs);
  m.mesh = {{"pp", 2}, {"dp", width}};
  RankGroups::Lists pairs;
  for (uint32_t rank = 0; rank < 2 * width; ++rank)
    m.ranks.push_back({rank / width, {rank / width, rank % width}});
  for (uint32_t copy = 0; copy < width; ++copy)
    pairs.push_back({copy, copy + width});
  m.communicators = {{"pf", pairs}, {"pb", pairs}, {"dp", {iota(width), iota(width, width)}}};
  m.tensors = {parameter("w0", {4, 4}, iota(width), {InitRule::Normal, 0, 0.5}),
               parameter("w1", {4, 4}, iota(width, width), {InitRule::Normal, 0, 0.5})};
  m.microbatches = 4;
  m.batch = 8 * width;
  m.inputs = {{"x", DType::F32, {8 * width, 4}, true, rowsLayout({2 * width, 4}, iota(width))}};
  m.outputs = {{"out",
                DType::F32,
                {2 * width, 4},
                false,
                iota(width, width),
                false,
                rowsLayout({2 * width, 4}, iota(width, width))}};
  m.hypers = {};
  return bundle;
}

Bundle par::toy::groups() {
  ProgramBuilder b("all", {"compute", "data"});
  b.buffer("a", BufferKind::Temp, {8});
  b.buffer("b", BufferKind::Temp, {4});
  b.buffer("theirs", BufferKind::Temp, {8});
  b.comm("dp", "data");
  b.event("filled"), b.event("done");
  b.block("step");
  b.fill("compute", 8, 1.0, "a");
  b.fill("compute", 4, 2.0, "b");
  b.signal("compute", "filled");
  b.wait("data", "filled");
  b.group("data", 2);
  b.collective("data", "dp", CollKind::AllReduce, 8, "a", 1);
  b.collective("data", "dp", CollKind::AllReduce, 4, "b", 2);
  b.run("train", "step");
  Bundle bundle;
  // Peers differ between the ranks, so each has a role of its own.
  for (uint32_t rank : {0u, 1u}) {
    ProgramBuilder own = b;
    own.program.name = "rank" + std::to_string(rank);
    own.group("data", 2);
    own.send("data", "dp", 1 - rank, 8, "a", rank == 0 ? 3 : 4);
    own.recv("data", "dp", 1 - rank, 8, "theirs", rank == 0 ? 4 : 3);
    own.signal("data", "done");
    own.wait("compute", "done");
    own.fetch("compute", "theirs", "theirs");
    own.fetch("compute", "b", "b");
    bundle.programs.push_back(own.program);
  }
  Manifest &m = bundle.manifest = manifestOf(bundle.programs);
  m.mesh = {{"dp", 2}};
  m.ranks = {{0, {0}}, {1, {1}}};
  m.communicators = {{"dp", {{0, 1}}}};
  m.outputs = {{"theirs", DType::F32, {8}, false, {0, 1}}, {"b", DType::F32, {4}, false, {0, 1}}};
  return bundle;
}
