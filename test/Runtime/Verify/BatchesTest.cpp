// V5: of which batch, version and microbatches a value is.
#include "Broken.h"
#include "ToyBundles.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
using Runs = std::vector<Run>;

/// Rank 0 updates w, and sends it to rank 1, which has a copy.
Bundle tied() {
  toy::ProgramBuilder owner("owner", {"compute"}), user("user", {"compute"});
  owner.buffer("w", BufferKind::State, {4}, Index::None, 1, "w");
  owner.buffer("t", BufferKind::Temp, {4});
  owner.comm("tie", "compute");
  owner.block("update");
  owner.fill("compute", 4, 1.0, "t");
  owner.copy("compute", 4, "t", "w");
  owner.block("send");
  owner.send("compute", "tie", 1, 4, "w", 1);
  owner.run("train", "update"), owner.run("train", "send");
  user.buffer("w.copy", BufferKind::State, {4}, Index::None, 1, "w.copy");
  user.comm("tie", "compute");
  user.block("receive");
  user.recv("compute", "tie", 0, 4, "w.copy", 1);
  user.run("train", "receive");
  Bundle bundle = toy::alone(owner.program);
  bundle.programs.push_back(user.program);
  Manifest &m = bundle.manifest;
  m.roles = 2, m.mesh = {{"pp", 2}};
  m.ranks = {{0, {0}}, {1, {1}}};
  m.peak.push_back({user.program.arena.state, user.program.arena.pool, 0});
  m.communicators = {{"tie", {{0, 1}}}};
  auto on = [](int64_t rank) { return Layout{{4}, {4}, {{{0}, {4}, {uint32_t(rank)}}}}; };
  m.tensors = {{"w", TensorKind::Parameter, "", DType::F32, {4}, on(0), {InitRule::Normal, 0, 1}, std::nullopt},
               {"w.copy", TensorKind::Copy, "w", DType::F32, {4}, on(1), {}, std::nullopt}};
  return bundle;
}
} // namespace

// V5: a copy receives the update's result.
TEST(Batches, CopiesAreNew) {
  EXPECT_EQ(broken(tied(), [](Bundle &) {}), "");
  std::string text =
      broken(tied(), [](Bundle &b) { std::swap(b.programs[0].entries[0].runs[0], b.programs[0].entries[0].runs[1]); });
  EXPECT_EQ(text, "V5 old: parameter 'w' is sent to its copy after 0 of 1 updates | rank 0  owner/send:0  send r w    "
                  "block send, microbatch 0");
}

// V5: a sum to which a kernel adds in place is whole when it is first read.
TEST(Batches, AddsInPlaceBeforeReading) {
  std::string text = broken(toy::stack({2, 1, 2, 4, 1, true}), [](Bundle &b) {
    Program &p = b.programs[0];
    auto inPlace = [](auto &operands) {
      for (auto &operand : operands)
        if (operand.access == Access::Accumulate)
          operand.access = Access::ReadWrite;
    };
    for (Block &block : p.blocks)
      for (Instruction &it : block.instructions)
        inPlace(it.operands);
    for (Kernel &kernel : p.kernels)
      inPlace(kernel.operands);
    p.entries[0].runs.push_back({uint32_t(p.blocks.size()), 2, 0}); // a summand once more, after the update
    p.blocks.push_back({"more", {at(p, "backward.last", 1)}});
  });
  EXPECT_EQ(text.substr(0, text.find(" | ")), "V5 early: 'g0' is accumulated into after another run has read it")
      << text;
}

// V5: a sum has a summand of each microbatch that computes something when it is first read.
TEST(Batches, SumsLackNone) {
  auto says = [](auto change) {
    std::string text =
        broken(toy::stack({2, 1, 2, 4, 1, true}), [&](Bundle &b) { change(b.programs[0].entries[0].runs); });
    EXPECT_EQ(text.substr(0, text.find(" | ")), "V5 lacks: 'g0' is read as a sum, but microbatch 3 has not added to it")
        << text;
  };
  says([](Runs &runs) {
    std::rotate(runs.end() - 3, runs.end() - 1, runs.end());
  }); // the update before the last backward
}

// V5: the last microbatch may reduce a sum in another buffer and copy it back, if it has read the others' sum. The
// sum's bytes may hold other values meanwhile.
TEST(Batches, SumsComeBack) {
  auto says = [](const char *source) {
    std::string text = broken(toy::stack({2, 1, 2, 4, 1, true}), [&](Bundle &b) {
      Program &p = b.programs[0];
      Buffer apart = p.buffers[p.findBuffer("g0")], meanwhile = apart;
      apart.name = "apart", meanwhile.name = "meanwhile";
      apart.at = {p.arena.state + p.arena.pool};
      b.manifest.peak[0].pool = p.arena.pool += apart.bytes();
      p.buffers.push_back(apart), p.buffers.push_back(meanwhile);
      std::vector<Instruction> &last = p.blocks[p.findBlock("backward.last")].instructions;
      auto copy = [&](const char *from, const char *to) {
        Instruction it = last[0];
        it.n = apart.bytes() / 4;
        it.operands = {{Access::Read, p.findBuffer(from), {}}, {Access::Write, p.findBuffer(to), {}}};
        return it;
      };
      ASSERT_EQ(last[0].op, Op::Copy);
      ASSERT_EQ(last[2].op, Op::Coll);
      last[2].operands[0].buffer = p.findBuffer("apart");
      last.insert(last.begin() + 3, copy("apart", "g0"));
      last.insert(last.begin() + 2, {copy(source, "apart"), copy("p0", "meanwhile")});
    });
    return text.substr(0, text.find(" | "));
  };
  EXPECT_EQ(says("g0"), "");
  EXPECT_EQ(says("p0"), "V5 lacks: 'g0' is read as a sum, but microbatch 0 has not added to it");
}

// V5: of a receive that is read for some microbatches no other one is lost.
TEST(Batches, ReceivedIsRead) {
  std::string text = broken(toy::pipeline(), [](Bundle &b) {
    Program &p = b.programs[1];
    Block blind = p.blocks[p.findBlock("both")];
    blind.name = "blind";
    for (Instruction &it : blind.instructions)
      for (Operand &operand : it.operands)
        if (p.buffers[operand.buffer].name == "act")
          operand = {Access::Read, p.findBuffer("w1"), {}};
    for (auto &run : p.entries[0].runs)
      if (run.microbatch == 1 && p.blocks[run.block].name == "both")
        run.block = uint32_t(p.blocks.size());
    p.blocks.push_back(std::move(blind));
  });
  EXPECT_EQ(text.substr(0, text.find(" | ")),
            "V5 lost: what is received for microbatch 1 is never read, that of others is");
}

// V5: where batches begin before the one before them has updated, each computes with its own version of the weights and
// its own values of a batch.
TEST(Batches, Versions) {
  auto says = [](auto change, const std::string &what) {
    std::string text = broken(toy::delayed(), [&](Bundle &b) { change(b.programs[0], b.programs[0].entries[0].runs); });
    EXPECT_EQ(text.substr(0, text.find(" | ")), what) << text;
  };
  says([](Program &p, Runs &runs) { runs[5].block = p.findBlock("first"); },
       "V5 version: a run of version 0 reads parameter 'w' after 1 updates");
  says([](Program &p, Runs &) { std::swap(at(p, "update", 0), at(p, "update", 1)); },
       "V5 version: a run of version 0 reads parameter 'w' after 1 updates");
  says([](Program &, Runs &runs) { runs[9].version = 0; },
       "V5 overwritten: bytes [320, 336) are read as 'older' of version 0, but hold 'older' of version 1");
  says([](Program &p, Runs &) { at(p, "update", 1).operands[1].slot = {SlotExpr::Fixed, 0}; },
       "V5 version: a run of version 1 reads hyperparameter 'lr' of version 0");
  says([](Program &, Runs &runs) { runs.pop_back(); },
       "V5 version: entry train ends after 2 updates of parameter 'w', of 3 batches");
  says([](Program &, Runs &runs) { std::rotate(runs.begin() + 1, runs.begin() + 4, runs.begin() + 5); },
       "V5 batch: 'scale' is read for batch 0, but was made for batch 1");
}

// V5: a sum of several microbatches is read before another sum takes its place.
TEST(Batches, SumsBegunAnew) {
  std::string text = broken(
      toy::delayed(), [](Bundle &b) { b.programs[0].entries[0].runs[2].block = b.programs[0].findBlock("first"); });
  EXPECT_EQ(text.substr(0, text.find(" | ")), "V5 lost: 'g' starts a new sum before its earlier sum is read");
}

// V5: a buffer of one slot that is indexed by the microbatch holds one microbatch's value, and that of no other is read
// there.
TEST(Batches, OneSlot) {
  std::string text = broken(toy::delayed(), [](Bundle &b) {
    std::swap(at(b.programs[0], "next", 0), at(b.programs[0], "next", 1)); // the kernel before its producer
  });
  EXPECT_NE(text.find("are read as 'x' of microbatch 1, but hold 'x' of microbatch 0"), std::string::npos) << text;
}
