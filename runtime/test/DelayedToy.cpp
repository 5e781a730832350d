// Batches that begin before the one before them has updated.
#include "ToyBundles.h"

using namespace par::format;
using namespace par::toy;

static Program delayedProgram() {
  ProgramBuilder b("all", {"compute"});
  b.buffer("w", BufferKind::State, {4}, Index::None, 1, "w");
  b.buffer("x", BufferKind::Input, {4}, Index::Mb);
  b.buffer("lr", BufferKind::Hyper, {}, Index::Ver, 3, "lr");
  b.buffer("older", BufferKind::Temp, {4}, Index::Ver);
  b.buffer("g", BufferKind::Temp, {4});
  b.buffer("scale", BufferKind::Temp, {4});
  b.block("before");
  b.fill("compute", 4, 0.5, "scale");
  for (const char *suffix : {"", ".older"}) {
    std::string weight = *suffix ? "r older" : "r w";
    b.block(std::string("first") + suffix);
    b.feed("compute", "x", "x");
    b.kernel("compute", "set", {"r x", weight, "r scale", "w g"});
    b.block(std::string("next") + suffix);
    b.feed("compute", "x", "x");
    b.kernel("compute", "add", {"r x", weight, "r scale", "rw g"});
  }
  b.block("update");
  b.copy("compute", 4, "w", "older");
  b.kernel("compute", "descend", {"r g", "r lr", "rw w"});
  struct {
    const char *block;
    int64_t microbatch;
    uint32_t version;
  } runs[] = {{"before", 0, 0}, {"first", 0, 0},       {"next", 1, 0},       {"update", 0, 0},
              {"before", 2, 1}, {"first.older", 2, 0}, {"next.older", 3, 0}, {"update", 2, 1},
              {"before", 4, 2}, {"first.older", 4, 1}, {"next.older", 5, 1}, {"update", 4, 2}};
  for (auto [block, microbatch, version] : runs) {
    b.run("train", block, microbatch);
    b.program.entries[0].runs.back().version = version;
  }
  return b.program;
}

Bundle par::toy::delayed() {
  Bundle bundle = alone(delayedProgram());
  Manifest &m = bundle.manifest;
  Layout whole{{4}, {4}, {{{0}, {4}, {0}}}};
  m.tensors = {{"w", TensorKind::Parameter, "", DType::F32, {4}, whole, {InitRule::Normal, 0, 1}, std::nullopt}};
  m.inputs = {{"x", DType::F32, {8}, true, {{4}, {4}, {{{0}, {4}, {0}}}}}};
  m.hypers = {{"lr", 0.1}};
  m.microbatches = 2, m.calls = 3, m.batch = 8;
  return bundle;
}
