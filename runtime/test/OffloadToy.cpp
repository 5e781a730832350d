// A state in the host's memory, brought and taken back by copies.
#include "ToyBundles.h"

using namespace par::format;
using namespace par::toy;

static Program offloadedProgram() {
  ProgramBuilder b("all", {"compute", "copies"});
  b.buffer("w", BufferKind::State, {4, 4}, Index::None, 1, "w");
  for (const char *name : {"x", "m.dev", "y"})
    b.buffer(name, BufferKind::Temp, {4, 4});
  uint32_t m = b.buffer("m", BufferKind::Temp, {4, 4});
  Buffer &state = b.program.buffers[m];
  b.program.arena.pool -= state.bytes(); // it lies elsewhere
  b.program.arena.host = state.bytes();
  state.space = Space::Host, state.kind = BufferKind::State, state.tensor = "m", state.at = {0};
  for (const char *name : {"free", "brought", "made", "kept"})
    b.event(name);
  b.product("add", 4, 4, 4, false, false, 0.5, 1);
  b.product("set", 4, 4, 4, false, false, 0.25, 0);
  b.block("step");
  b.signal("compute", "free");
  b.wait("copies", "free");
  b.copy("copies", 16, "m", "m.dev");
  b.signal("copies", "brought");
  b.fill("compute", 16, 0.5, "x");
  b.wait("compute", "brought");
  b.call("compute", "add", {"x", "w", "m.dev"});
  b.signal("compute", "made");
  b.wait("copies", "made");
  b.copy("copies", 16, "m.dev", "m");
  b.signal("copies", "kept");
  b.call("compute", "set", {"x", "m.dev", "y"}); // beside the copy
  b.copy("compute", 16, "y", "w");
  b.fetch("compute", "y", "y");
  b.wait("compute", "kept");
  b.run("train", "step");
  b.run("train", "step");
  b.program.entries[0].runs.back().version = 1; // a block runs once for a microbatch of a version
  return b.program;
}

Bundle par::toy::offloaded() {
  Bundle bundle = alone(offloadedProgram());
  Manifest &m = bundle.manifest;
  Layout whole{{4, 4}, {4, 4}, {{{0, 0}, {4, 4}, {0}}}};
  m.tensors = {{"w", TensorKind::Parameter, "", DType::F32, {4, 4}, whole, {InitRule::Normal, 0, 1}, std::nullopt},
               {"m", TensorKind::State, "w", DType::F32, {4, 4}, whole, {InitRule::Normal, 1, 0.5}, std::nullopt}};
  m.outputs = {{"y", DType::F32, {4, 4}, false, {0}}};
  return bundle;
}
