// Simulated times of small bundles against times computed by hand.
#include "par/Simulator/Simulator.h"
#include "ToyBundles.h"
#include "par/Report/Text.h"
#include "par/Report/Trace.h"
#include "llvm/Support/JSON.h"
#include <gtest/gtest.h>

using namespace par;
using namespace par::format;

/// The summary's line of a simulation.
static std::string describe(const Simulation &simulation, std::optional<ExpectedBubble> expected = {}) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printPrediction({simulation.step / simulation.calls, simulation.computePermille(), simulation.bubblePermille(),
                   simulation.communicationPermille(), simulation.corePermille(), simulation.sourcePermille(),
                   simulation.cores, expected},
                  os);
  return text;
}

/// 1 byte a ns of memory and link, nothing else costs anything.
static Hardware plainHardware() {
  Hardware hardware;
  hardware.f32 = hardware.f64 = int64_t(1) << 30;
  hardware.memory = hardware.link = 1000;
  return hardware;
}

static int64_t sumOf(const RankTime &time) { return time.compute + time.communication + time.core + time.idle; }

// fill 4 ns, feed 32 (on the same engine), copy 64, all_reduce 32, add: one (4) + y (32) + total (2 * 32),
// fetch 32.
TEST(Simulator, ChainOfQueues) {
  Bundle bundle = toy::allReduce(2);
  auto simulation = simulate(bundle, "train", plainHardware());
  ASSERT_TRUE(bool(simulation)) << llvm::toString(simulation.takeError());
  EXPECT_EQ(simulation->step, 4 + 32 + 64 + 32 + 100 + 32);
  for (const RankTime &rank : simulation->ranks) {
    EXPECT_EQ(rank.compute, 4 + 32 + 64 + 100 + 32);
    EXPECT_EQ(rank.communication, 32);
    EXPECT_EQ(rank.idle, 0);
  }
  // y and one live together during the add, beside the state.
  EXPECT_EQ(simulation->peakLive(0), int64_t(bundle.programs[0].arena.state) + 32 + 32 + 4);
}

/// Ranks that fill `bytes` bytes three times each, and never communicate.
static Bundle independentRanks(unsigned ranks, int64_t bytes) {
  toy::ProgramBuilder b("all", {"compute"});
  b.buffer("x", format::BufferKind::Temp, {bytes / 4});
  b.block("fills");
  for (int i = 0; i < 3; ++i)
    b.fill("compute", bytes / 4, 0, "x");
  b.run("train", "fills");
  Bundle bundle;
  bundle.programs.push_back(b.program);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    bundle.manifest.ranks.push_back({0, {rank}});
  return bundle;
}

/// A rank that runs an attention builtin of 2 heads, 4 queries, 8 keys and head dims 8 and 16, and moves 8 bytes.
static int64_t attentionTime(const std::string &builtin, int64_t causal) {
  toy::ProgramBuilder b("all", {"compute"});
  b.buffer("x", format::BufferKind::Temp, {2});
  b.block("all");
  Instruction &it = b.kernel("compute", builtin, {"w x"});
  for (int64_t value : {int64_t(1), int64_t(2), int64_t(1), int64_t(4), int64_t(8), int64_t(8), int64_t(16), causal,
                        int64_t(0), int64_t(0), int64_t(1), int64_t(1), int64_t(1), int64_t(1)})
    it.imms.push_back({value, "", 1});
  b.run("train", "all");
  Bundle bundle;
  bundle.programs.push_back(b.program);
  bundle.manifest.ranks.push_back({0, {0}});
  Hardware hardware = plainHardware();
  hardware.bf16 = 1000;
  auto simulation = simulate(bundle, "train", hardware);
  return simulation ? simulation->step : -1;
}

// Matmuls count at the peak of the builtin's format: two of the scores' size forward, five backward.
TEST(Simulator, Attention) {
  EXPECT_EQ(attentionTime("attention_bf16", 0), 2 * 2 * 4 * 8 * (8 + 16));
  EXPECT_EQ(attentionTime("attention_bf16", 1), 2 * 4 * 8 * (8 + 16));
  EXPECT_EQ(attentionTime("attention_backward_bf16", 0), 2 * 2 * 4 * 8 * (3 * 8 + 2 * 16));
}

/// A rank that runs generated code of `flops` operations, which moves 8 bytes.
static int64_t generatedTime(int64_t flops) {
  toy::ProgramBuilder b("all", {"compute"});
  b.buffer("x", format::BufferKind::Temp, {2});
  b.block("all");
  b.kernel("compute", "par_k0", {"w x"});
  b.program.kernels.back().builtin = false;
  b.program.kernels.back().flops = flops;
  b.run("train", "all");
  Bundle bundle;
  bundle.programs.push_back(b.program);
  bundle.manifest.ranks.push_back({0, {0}});
  Hardware hardware = plainHardware();
  hardware.f32 = 1000;
  auto simulation = simulate(bundle, "train", hardware);
  return simulation ? simulation->step : -1;
}

// Generated code takes the time of its operations or of its bytes, whichever is longer.
TEST(Simulator, GeneratedCode) {
  EXPECT_EQ(generatedTime(0), 8);
  EXPECT_EQ(generatedTime(5), 8);
  EXPECT_EQ(generatedTime(1000), 1000);
}

// One core runs everything one after another; no rank waits for a core if each has its own.
TEST(Simulator, SharedCores) {
  Bundle bundle = toy::pipeline(2);
  Hardware hardware = plainHardware();
  hardware.overlap = false;
  auto own = simulate(bundle, "train", hardware);
  hardware.cores = 1;
  auto shared = simulate(bundle, "train", hardware);
  ASSERT_TRUE(own && shared);
  int64_t work = 0;
  for (const RankTime &rank : own->ranks) {
    work += rank.compute;
    EXPECT_EQ(rank.core, 0);
  }
  EXPECT_GE(shared->step, work);
  EXPECT_LT(own->step, work);
  EXPECT_EQ(own->cores, 0);
  EXPECT_EQ(shared->cores, 1);
  for (const Simulation *simulation : {&*own, &*shared})
    for (const RankTime &rank : simulation->ranks)
      EXPECT_EQ(sumOf(rank), simulation->step);
}

// Eight ranks on two cores take four times as long as each on its own core, on two hosts of two cores half of
// that; with as many cores as ranks nothing is shared.
TEST(Simulator, RanksOutnumberCores) {
  Bundle bundle = independentRanks(8, 1000);
  Hardware hardware = plainHardware();
  auto step = [&](int64_t cores, int64_t ranks) {
    hardware.cores = cores;
    hardware.ranks = ranks;
    return *simulate(bundle, "train", hardware);
  };
  EXPECT_EQ(step(0, 0).step, 3000);
  EXPECT_EQ(step(8, 0).step, 3000);
  EXPECT_EQ(step(8, 0).cores, 0);
  EXPECT_EQ(step(2, 0).step, 12000);
  EXPECT_EQ(step(2, 4).step, 6000);
  EXPECT_EQ(step(4, 4).step, 3000);
  Simulation shared = step(2, 0);
  EXPECT_EQ(shared.computePermille(), 250);
  for (const RankTime &rank : shared.ranks)
    EXPECT_EQ(sumOf(rank), shared.step);
  EXPECT_EQ(describe(step(2, 4)), "predicted step 6 us: compute 50 %, bubble 8 %, exposed communication 0 %, "
                                  "waiting for one of 2 cores 42 %\n");
}

TEST(Simulator, OverlapHelps) {
  Bundle bundle = toy::pipeline(2);
  Hardware hardware = plainHardware();
  auto beside = simulate(bundle, "train", hardware);
  hardware.overlap = false;
  auto between = simulate(bundle, "train", hardware);
  ASSERT_TRUE(beside && between);
  EXPECT_LT(beside->step, between->step);
}

// 4000 bytes are filled in 4 us while 1000 are reduced in 1: beside that a fifth of the compute is missing.
TEST(Simulator, CommunicationTakesItsShareOfCompute) {
  toy::ProgramBuilder b("all", {"compute", "comm"});
  b.buffer("x", format::BufferKind::Temp, {1000});
  b.buffer("y", format::BufferKind::Temp, {250});
  b.comm("both", "comm");
  b.block("work");
  b.fill("compute", 1000, 0, "x");
  b.collective("comm", "both", CollKind::AllReduce, 250, "y", 1);
  b.run("train", "work");
  Bundle bundle;
  bundle.programs = {b.program};
  bundle.manifest.ranks = {{0, {0}}, {0, {1}}};
  bundle.manifest.communicators = {{"both", {{0, 1}}}};
  Hardware hardware = plainHardware();
  EXPECT_EQ(simulate(bundle, "train", hardware)->step, 4000);
  hardware.share = 200;
  EXPECT_EQ(simulate(bundle, "train", hardware)->step, 4200);
  // As long as the communication runs, but no longer than the work beside it.
  hardware.link = 100;
  EXPECT_EQ(simulate(bundle, "train", hardware)->ranks[0].compute, 5000);
}

/// Rank 0 fills 1000 bytes and rank 1 `other`, in as many ns; then they reduce 500 bytes in 500 ns.
static int64_t stepOfMeeting(int64_t other, const Hardware &hardware) {
  Bundle bundle;
  for (int64_t bytes : {int64_t(1000), other}) {
    toy::ProgramBuilder b("all", {"compute"});
    b.buffer("x", format::BufferKind::Temp, {bytes / 4});
    b.comm("both", "compute");
    b.block("work");
    b.fill("compute", bytes / 4, 0, "x");
    b.collective("compute", "both", CollKind::AllReduce, 125, "x", 1);
    b.run("train", "work");
    bundle.manifest.ranks.push_back({static_cast<uint32_t>(bundle.programs.size()), {0}});
    bundle.programs.push_back(b.program);
  }
  bundle.manifest.communicators = {{"both", {{0, 1}}}};
  return simulate(bundle, "train", hardware)->step;
}

// A rank that waits sees the other's arrival after the time of the rows; ranks that compute as long do not come at
// once.
TEST(Simulator, RanksWaitForEachOther) {
  Hardware hardware = plainHardware();
  hardware.overlap = false;
  EXPECT_EQ(stepOfMeeting(1000, hardware), 1500);
  EXPECT_EQ(stepOfMeeting(5000, hardware), 5500);
  hardware.measured.wakeups = {{{2000}, 60}, {{6000}, 100}};
  EXPECT_EQ(stepOfMeeting(1000, hardware), 1500);
  EXPECT_EQ(stepOfMeeting(2000, hardware), 2500 + 30); // half of the first row's wait
  EXPECT_EQ(stepOfMeeting(5000, hardware), 5500 + 80); // half-way between the rows
  EXPECT_EQ(stepOfMeeting(9000, hardware), 9500 + 100);
  hardware.measured.spread = {{{1000}, 200}};
  EXPECT_EQ(stepOfMeeting(1000, hardware), 1500 + 200 + 6); // and the wake-up after a wait of 200
  EXPECT_EQ(stepOfMeeting(1100, hardware), 1600 + 100 + 6); // 100 of the 200 are in the prediction
  EXPECT_EQ(stepOfMeeting(5000, hardware), 5500 + 80);      // who comes last is certain
}

// Two hosts of two ranks, which all reduce 1000 bytes with the other host's. The figure of a link holds while all ranks
// of a host send, so a second group changes nothing. A second queue of a rank does not either: each of its
// communications is predicted to have the whole link (docs/roadmap.md).
TEST(Simulator, CommunicationsOnOneWayOut) {
  auto stepOf = [](size_t groups, bool twoQueues) {
    toy::ProgramBuilder b("all", {"compute", "one", "other"});
    b.buffer("x", format::BufferKind::Temp, {250});
    b.buffer("y", format::BufferKind::Temp, {250});
    b.comm("out", "one");
    b.comm("also", "other");
    b.block("work");
    b.collective("one", "out", CollKind::AllReduce, 250, "x", 1);
    if (twoQueues)
      b.collective("other", "also", CollKind::AllReduce, 250, "y", 2);
    b.run("train", "work");
    Bundle bundle;
    bundle.programs = {b.program};
    bundle.manifest.ranks = {{0, {0}}, {0, {1}}, {0, {2}}, {0, {3}}};
    RankGroups::Lists lists{{0, 2}, {1, 3}};
    lists.resize(groups);
    bundle.manifest.communicators = {{"out", lists}, {"also", lists}};
    Hardware hardware = plainHardware();
    hardware.ranks = 2;
    hardware.hostLink = 100;
    return simulate(bundle, "train", hardware)->step;
  };
  EXPECT_EQ(stepOf(1, false), 10000);
  EXPECT_EQ(stepOf(2, false), 10000);
  EXPECT_EQ(stepOf(2, true), 10000);
}

// Two fills of 1000 and one all-reduce of 500 ns, of which the file measured the fills' size.
TEST(Simulator, SaysWhereCostsComeFrom) {
  toy::ProgramBuilder b("all", {"compute"});
  b.buffer("x", format::BufferKind::Temp, {250});
  b.comm("both", "compute");
  b.block("work");
  b.fill("compute", 250, 0, "x");
  b.fill("compute", 250, 0, "x");
  b.collective("compute", "both", CollKind::AllReduce, 125, "x", 1);
  b.run("train", "work");
  Bundle bundle;
  bundle.programs = {b.program};
  bundle.manifest.ranks = {{0, {0}}, {0, {1}}};
  bundle.manifest.communicators = {{"both", {{0, 1}}}};
  Hardware hardware = plainHardware();
  EXPECT_EQ(simulate(bundle, "train", hardware)->sourcePermille(), (std::array<int64_t, 3>{0, 0, 1000}));
  hardware.measured.kernels = {{{1000, 0}, 1000}};
  auto simulation = simulate(bundle, "train", hardware);
  EXPECT_EQ(simulation->sourcePermille(), (std::array<int64_t, 3>{800, 0, 200}));
  EXPECT_NE(describe(*simulation).find("; costs: 80 % measured, 0 % from rows near, 20 % from peaks"),
            std::string::npos);
}

TEST(Simulator, GroupsStartAtOnce) {
  Bundle bundle = toy::groups();
  auto simulation = simulate(bundle, "train", plainHardware());
  ASSERT_TRUE(bool(simulation)) << llvm::toString(simulation.takeError());
  EXPECT_GT(simulation->communicationPermille(), 0);
}

// Two ranks: two all_reduces, each of two messages one after the other, are one group; a send and a receive are another
// one.
TEST(Simulator, GroupsTakeLatencyOnce) {
  Bundle bundle = toy::groups();
  Hardware hardware = plainHardware();
  auto without = simulate(bundle, "train", hardware);
  hardware.latency = 1000;
  auto with = simulate(bundle, "train", hardware);
  ASSERT_TRUE(without && with);
  EXPECT_EQ(with->step - without->step, 2 * 1000 + 1000);
}

// The schedule's expected bubble follows the simulated one.
TEST(Simulator, Describes) {
  Simulation simulation;
  simulation.step = 33000;
  simulation.ranks = {{24000, 0, 0, 9000}};
  EXPECT_EQ(describe(simulation, ExpectedBubble{"1f1b", 8, true, 27.3}),
            "predicted step 33 us: compute 73 %, bubble 27 % (1f1b, m = 8: closed form 27.3 %), "
            "exposed communication 0 %\n");
  EXPECT_EQ(describe(simulation), "predicted step 33 us: compute 73 %, bubble 27 %, exposed communication 0 %\n");
}

TEST(Simulator, Errors) {
  Bundle bundle = toy::allReduce(2);
  EXPECT_EQ(llvm::toString(simulate(bundle, "nope", plainHardware()).takeError()), "program 'all' has no entry 'nope'");
  // Each receives from the other before it sends.
  toy::ProgramBuilder b("both", {"compute"});
  b.buffer("x", format::BufferKind::Temp, {1});
  b.comm("pair", "compute");
  Bundle stuck;
  for (uint32_t rank : {0, 1}) {
    b.program.blocks.clear();
    b.program.entries.clear();
    b.block("swap");
    b.recv("compute", "pair", 1 - rank, 1, "x", 1);
    b.send("compute", "pair", 1 - rank, 1, "x", 2);
    b.run("train", "swap");
    stuck.programs.push_back(b.program);
    stuck.manifest.ranks.push_back({rank, {rank}});
  }
  stuck.manifest.communicators = {{"pair", {{0, 1}}}};
  EXPECT_EQ(llvm::toString(simulate(stuck, "train", plainHardware()).takeError()),
            "rank 0 waits for ever in both/swap:0");
}

TEST(Simulator, TraceIsJson) {
  Bundle bundle = toy::pipeline(1);
  auto simulation = simulate(bundle, "train", plainHardware());
  ASSERT_TRUE(bool(simulation));
  std::string text;
  llvm::raw_string_ostream os(text);
  writeTrace(*simulation, bundle, os);
  auto json = llvm::json::parse(text);
  ASSERT_TRUE(bool(json));
  unsigned intervals = 0, expected = 0;
  for (const llvm::json::Value &event : *json->getAsObject()->getArray("traceEvents"))
    intervals += event.getAsObject()->getString("ph") == "X";
  for (const PlayedInstruction &node : simulation->instructions)
    expected += node.duration > 0;
  EXPECT_EQ(intervals, expected);
  EXPECT_GT(expected, 40u);
}
