// Order tables played by the simulator's engine: a program a device, a block for each kind of slot and stage, sends and
// receives on a queue for each link and direction. The times must agree with the table's own figures, and with the
// bubbles that Qi et al. publish.
#include "ToyBundles.h"
#include "par/Simulator/Simulator.h"
#include "par/Solver/Order/OrderTable.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <ctime>
#include <gtest/gtest.h>

using namespace par;
using namespace par::format;

/// 1 byte a ns of memory, and messages that take `transfer` ns.
static Hardware plainHardware(int64_t transfer) {
  Hardware hardware;
  hardware.f32 = hardware.f64 = int64_t(1) << 30;
  hardware.memory = 1000;
  hardware.link = int64_t(1) << 40;
  hardware.latency = transfer;
  return hardware;
}

namespace {

/// The program of one device.
class DeviceProgram {
public:
  DeviceProgram(const OrderTableProblem &problem, unsigned device)
      : problem(problem), device(device), b("device" + std::to_string(device), queues(problem)) {
    b.buffer("message", format::BufferKind::Temp, {1});
    for (unsigned chunk = 0; chunk < problem.shape().chunks; ++chunk)
      for (SlotKind kind : {SlotKind::Forward, SlotKind::Backward, SlotKind::Weight})
        addBlock(kind, chunk);
  }

  Program run(const DeviceOrder &order) {
    for (const ScheduleSlot &slot : order.slots)
      b.run("train", name(slot.kind, slot.chunk), slot.microbatch);
    return b.program;
  }

  /// "0>1": the communicator and the queue of transfers from one stage to another.
  static std::string link(unsigned from, unsigned to) { return std::to_string(from) + ">" + std::to_string(to); }

private:
  static std::vector<std::string> queues(const OrderTableProblem &problem) {
    std::vector<std::string> names = {"compute"};
    for (unsigned stage = 0; stage + 1 < problem.stages; ++stage) {
      names.push_back(link(stage, stage + 1));
      names.push_back(link(stage + 1, stage));
    }
    return names;
  }
  static std::string name(SlotKind kind, unsigned chunk) {
    return std::to_string(static_cast<unsigned>(kind)) + "." + std::to_string(chunk);
  }

  void addBlock(SlotKind kind, unsigned chunk) {
    unsigned stage = problem.stageOf(device, chunk);
    int64_t time = problem.timeOf(kind, stage, problem.weightsApart());
    std::string block = name(kind, chunk);
    b.buffer(block, format::BufferKind::Temp, {time / 4});
    for (const char *event : {"made", "came"})
      b.event(block + event);
    b.block(block);
    int step = kind == SlotKind::Backward ? -1 : 1;
    if (kind != SlotKind::Weight)
      receive(block, stage, stage - step);
    b.fill("compute", time / 4, 0, block);
    b.signal("compute", block + "made");
    if (kind != SlotKind::Weight)
      send(block, stage, stage + step);
  }

  /// Whether a stage lies on another device, which a message goes to or comes from.
  bool isElsewhere(unsigned stage) const { return stage < problem.stages && problem.deviceOf(stage) != device; }

  void receive(const std::string &block, unsigned stage, unsigned from) {
    if (!isElsewhere(from))
      return;
    b.comm(link(from, stage), link(from, stage));
    b.recv(link(from, stage), link(from, stage), problem.deviceOf(from), 1, "message", 0);
    b.signal(link(from, stage), block + "came");
    b.wait("compute", block + "came");
  }

  void send(const std::string &block, unsigned stage, unsigned to) {
    if (!isElsewhere(to))
      return;
    b.comm(link(stage, to), link(stage, to));
    b.wait(link(stage, to), block + "made");
    b.send(link(stage, to), link(stage, to), problem.deviceOf(to), 1, "message", 0);
  }

  const OrderTableProblem &problem;
  const unsigned device;
  toy::ProgramBuilder b;
};

/// Times of a table on the engine.
struct Played {
  int64_t makespan = 0;
  int64_t longest = 0; ///< of a device, from its first slot to the end of its last
};

} // namespace

static Bundle bundleOf(const OrderTableProblem &problem, const OrderTable &table) {
  Bundle bundle;
  std::vector<uint32_t> all;
  for (auto [device, order] : llvm::enumerate(table.devices)) {
    bundle.programs.push_back(DeviceProgram(problem, device).run(order));
    bundle.manifest.ranks.push_back({static_cast<uint32_t>(device), {static_cast<uint32_t>(device)}});
    all.push_back(device);
  }
  for (unsigned stage = 0; stage + 1 < problem.stages; ++stage)
    for (auto [from, to] : {std::pair(stage, stage + 1), {stage + 1, stage}})
      bundle.manifest.communicators.push_back({DeviceProgram::link(from, to), {all}});
  return bundle;
}

static Played play(const OrderTableProblem &problem, const OrderTable &table) {
  auto simulation = simulate(bundleOf(problem, table), "train", plainHardware(problem.transfer));
  if (!simulation) {
    ADD_FAILURE() << llvm::toString(simulation.takeError());
    return {};
  }
  Played result = {simulation->step, 0};
  std::vector<std::pair<int64_t, int64_t>> spans(table.devices.size(), {INT64_MAX, 0});
  for (const PlayedInstruction &node : simulation->instructions)
    if (!node.communication && node.duration > 0) {
      auto &[begin, end] = spans[node.rank];
      begin = std::min(begin, node.start);
      end = std::max(end, node.start + node.duration);
    }
  for (auto [begin, end] : spans)
    result.longest = std::max(result.longest, end - begin);
  return result;
}

static OrderTableProblem makeProblem(llvm::StringRef schedule, unsigned devices, unsigned chunks,
                                     unsigned microbatches) {
  OrderTableProblem problem;
  problem.schedule = schedule.str();
  problem.stages = devices * chunks;
  problem.devices = devices;
  problem.microbatches = microbatches;
  return problem;
}

/// As many ns as the table says, but for the rounding of messages.
static void expectPlayed(const OrderTableProblem &problem, const OrderTable &table) {
  Played played = play(problem, table);
  int64_t messages = 2 * problem.stages * problem.microbatches;
  EXPECT_NEAR(played.makespan, table.makespan, messages);
  EXPECT_NEAR(played.longest, table.longest, messages);
}

// Programs in the order of a schedule take the time that its table predicts, also with stages of different times.
TEST(ScheduleOnEngine, TakesThePredictedTime) {
  for (const Schedule *schedule : getSchedules())
    for (auto [p, m] : {std::pair(4, 8), {4, 3}, {3, 7}, {2, 1}}) {
      unsigned v = schedule->minChunks;
      SCOPED_TRACE((schedule->name + " p=" + llvm::Twine(p) + " m=" + llvm::Twine(m)).str());
      OrderTableProblem problem = makeProblem(schedule->name, p, v, m);
      for (unsigned stage = 0; stage < p * v; ++stage) {
        problem.forward.push_back(100'000 + 4000 * stage);
        problem.backward.push_back(120'000 - 4000 * stage);
        problem.weight.push_back(80'000);
      }
      problem.transfer = 4000;
      auto table = problem.solve();
      ASSERT_TRUE(bool(table)) << llvm::toString(table.takeError());
      expectPlayed(problem, *table);
    }
}

//===-- Published ----------------------------------------------------------------------------===//

namespace {

/// Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024: times of Table 6 in us, bubble rates of Table 5. `kept` is
/// the part of an activation that a weight's gradient needs, by the paper's Table 1: 32 of 34 + 5 a s / h. (Were all of
/// it kept, no order could have zb-2p's bubble: after its last backward the last device has the time of p - 1 forwards
/// and p - 1 backwards to fill, and at most 2p weight gradients, which take less.)
struct PublishedRow {
  const char *model;
  unsigned layers, microbatches;
  int64_t forward, backward, weight, transfer, kept;
  double oneForwardOneBackward, h1, interleaved, twice;
};

const PublishedRow rows[] = {
    {"1.5B", 3, 24, 18522, 18086, 9337, 601, 366, .2431, .1585, .1055, .0433},
    {"1.5B", 3, 32, 18513, 18086, 9331, 626, 366, .1985, .1242, .0818, .0039},
    {"1.5B", 3, 64, 18546, 18097, 9321, 762, 366, .1240, .0674, .0443, .0026},
    {"6.2B", 4, 24, 29718, 29444, 19927, 527, 432, .2347, .1323, .0808, .0029},
    {"6.2B", 4, 32, 29802, 29428, 19530, 577, 432, .1898, .1045, .0628, .0022},
    {"6.2B", 4, 64, 29935, 29621, 19388, 535, 432, .1091, .0554, .0320, .0010},
};

} // namespace

/// The problem of a row, in ns, on 8 devices of `chunks` equal stages.
static OrderTableProblem problemOf(const PublishedRow &row, llvm::StringRef schedule, unsigned chunks = 1) {
  OrderTableProblem problem = makeProblem(schedule, 8, chunks, row.microbatches);
  auto share = [&](int64_t us) { return std::vector<int64_t>(8 * chunks, us * 1000 / chunks / 4 * 4); };
  problem.forward = share(row.forward);
  problem.backward = share(row.backward);
  problem.weight = share(row.weight);
  problem.transfer = row.transfer * 1000;
  problem.kept = row.kept;
  return problem;
}

/// The bubble rate as the paper defines it, of the table as the engine plays it; the table's own must agree.
static double bubbleOf(const OrderTableProblem &problem, const OrderTable &table) {
  Played played = play(problem, table);
  double rate = 1 - double(table.devices[0].busy) / played.longest;
  EXPECT_NEAR(rate, table.idleShare(), 1e-5);
  return rate;
}

/// To four digits.
static double rounded(double rate) { return std::round(rate * 1e4) / 1e4; }

TEST(ScheduleOnEngine, PublishedBubbles) {
  for (const PublishedRow &row : rows) {
    SCOPED_TRACE(std::string(row.model) + " m=" + std::to_string(row.microbatches));
    auto rate = [&](llvm::StringRef schedule, unsigned chunks = 1) {
      OrderTableProblem problem = problemOf(row, schedule, chunks);
      return bubbleOf(problem, *problem.solve());
    };
    EXPECT_NEAR(rounded(rate("1f1b")), row.oneForwardOneBackward, 1e-9);
    EXPECT_NEAR(rounded(rate("zb-h1")), row.h1, 1e-9);
    // The paper's stages have a chunk a layer; its first and last stage have one layer fewer.
    EXPECT_NEAR(rate("interleaved", row.layers), row.interleaved, .004);
  }
}

// At 1f1b's memory auto has at most zb-1p's bubble, at twice that at most zb-2p's, in less than two seconds.
TEST(ScheduleOnEngine, AutoAgainstPublishedBubbles) {
  for (const PublishedRow &row : rows)
    for (auto [activations, published] : {std::pair(8, row.h1), {16, row.twice}}) {
      SCOPED_TRACE(std::string(row.model) + " m=" + std::to_string(row.microbatches) + " limit " +
                   std::to_string(activations));
      OrderTableProblem problem = problemOf(row, "auto");
      problem.limit.assign(8, activations);
      clock_t start = clock(); // processor time: other programs may want the cores
      auto table = problem.solve();
      double seconds = double(clock() - start) / CLOCKS_PER_SEC;
      ASSERT_TRUE(bool(table)) << llvm::toString(table.takeError());
      EXPECT_EQ(llvm::toString(problem.verify(*table)), ""); // the limit too
      EXPECT_LE(rounded(bubbleOf(problem, *table)), published + 1e-9);
      EXPECT_LT(seconds, 2.0);
    }
}
