// V5: reductions over ranks of different programs.
#include "Broken.h"
#include "ToyBundles.h"

#include <gtest/gtest.h>

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
/// One rank for each of two programs with tensors of their own: values that both fill are added up, and kept.
Bundle twoPrograms() {
  Bundle bundle;
  std::vector<Tensor> tensors;
  for (uint32_t rank : {0, 1}) {
    std::string name = rank == 0 ? "a" : "b";
    toy::ProgramBuilder b("stage" + name, {"compute"});
    b.buffer(name, BufferKind::State, {4}, Index::None, 1, name);
    b.buffer("t", BufferKind::Temp, {4});
    b.comm("stages", "compute");
    b.block("reduce");
    b.fill("compute", 4, 1.0, "t");
    b.collective("compute", "stages", CollKind::AllReduce, 4, "t", 1);
    b.copy("compute", 4, "t", name);
    b.copy("compute", 4, "t", name);
    b.run("train", "reduce");
    if (rank == 0)
      bundle = toy::alone(b.program);
    else
      bundle.programs.push_back(b.program);
    tensors.push_back(
        {name, TensorKind::State, "", DType::F32, {4}, {{4}, {4}, {{{0}, {4}, {rank}}}}, {}, std::nullopt});
  }
  Manifest &m = bundle.manifest;
  m.roles = 2, m.mesh = {{"pp", 2}};
  m.ranks = {{0, {0}}, {1, {1}}};
  m.peak.push_back(m.peak[0]);
  m.communicators = {{"stages", {{0, 1}}}};
  m.tensors = tensors;
  return bundle;
}
} // namespace

// V5: no other rank does the same, but a run reads its operand of such a reduction only after it.
TEST(Reductions, ReadUnreduced) {
  EXPECT_EQ(broken(twoPrograms(), [](Bundle &) {}), "");
  for (uint32_t role : {0, 1}) {
    std::string text = broken(twoPrograms(), [&](Bundle &b) {
      Program &p = b.programs[role];
      std::swap(at(p, "reduce", 1), at(p, "reduce", 2));
    });
    std::string name = role == 0 ? "a" : "b";
    EXPECT_EQ(text, "V5 unreduced: 't' is read before it is reduced over ranks of other programs | rank " +
                        std::to_string(role) + "  stage" + name + "/reduce:1  copy r t, w " + name +
                        "    block reduce, microbatch 0 | rank " + std::to_string(role) + "  stage" + name +
                        "/reduce:2  coll rw t    block reduce, microbatch 0");
  }
}
