// A run whose ranks are lost and started again ends with the bits, the metrics and the saves of one without faults,
// wherever in a step they were lost.
#include "ToolFixture.h"

#include "app/GoingOn.h"
#include "comm/carrier/TcpCarrier.h"
#include "par/comm/job/Launch.h"
#include "par/format/Sha256.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace par;
namespace fs = std::filesystem;

namespace {

/// Memory of each rank that outlives it.
class KeptMemory {
public:
  explicit KeptMemory(size_t ranks) {
    for (size_t i = 0; i < ranks; ++i) {
      descriptors.push_back(memfd_create("kept", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      mirrors.push_back({memfd_create("mirror", MFD_CLOEXEC), memfd_create("mirror", MFD_CLOEXEC)});
    }
  }
  ~KeptMemory() {
    for (int descriptor : descriptors)
      close(descriptor);
    for (const std::array<int, 2> &mirror : mirrors)
      for (int descriptor : mirror)
        close(descriptor);
  }
  KeptMemory(const KeptMemory &) = delete;
  void empty(size_t rank) const {
    ASSERT_EQ(ftruncate(descriptors[rank], 0), 0);
    emptyMirrors(rank);
  }
  /// A process that is killed copies nothing more.
  void dropSettled(size_t rank) const {
    struct stat file{};
    if (fstat(descriptors[rank], &file) == 0 && file.st_size > 0)
      core::CopyMemory(descriptors[rank], 0).dropSpare();
  }
  void emptyMirrors(size_t rank) const {
    for (int descriptor : mirrors[rank])
      ASSERT_EQ(ftruncate(descriptor, 0), 0);
  }
  /// The part that a rank sees: its own, if each has a supervisor of its own.
  std::vector<int> seenBy(size_t rank, bool together) const {
    std::vector<int> seen(descriptors.size(), -1);
    seen[rank] = descriptors[rank];
    return together ? descriptors : seen;
  }

  std::vector<int> descriptors;
  std::vector<std::array<int, 2>> mirrors;
};

/// One start of the ranks, and the rank that is lost in it, at its exchange or instruction of this number; 0: none is.
struct Attempt {
  uint32_t number = 0, lost = 0;
  uint64_t at = 0;
  bool withMemory = false; ///< its memory is lost, too
  double copyMs = 0.001;   ///< each rank reports that a copy takes so long, and a step 1 ms
};

/// A rank's control plane at such a start.
class AttemptControl : public comm::Control {
public:
  AttemptControl(comm::Control &inner, comm::Placing placing, uint64_t end, double copyMs)
      : inner(inner), where(std::move(placing)), end(end), copyMs(copyMs) {}

  uint32_t rank() const override { return inner.rank(); }
  uint32_t world() const override { return inner.world(); }
  uint32_t localRank() const override { return inner.localRank(); }
  comm::Placing placing() const override { return where; }
  void meet(const comm::Hello &hello) override { inner.meet(hello); }
  std::unique_ptr<comm::Endpoint> connect(std::span<const comm::Members> table, size_t bytes) override {
    return inner.connect(table, bytes);
  }
  std::string broadcast(std::string_view label, std::string_view value, uint32_t root) override {
    pass();
    return inner.broadcast(label, value, root);
  }
  std::vector<std::string> gather(std::string_view label, std::string_view value, uint32_t root) override {
    pass();
    return inner.gather(label, value, root);
  }
  std::vector<std::string> allGather(std::string_view label, std::string_view value) override {
    pass();
    std::string told(value);
    if (label == "step") {
      core::StepReport report = core::StepReport::decode(told);
      report.ms = 1;
      report.copyMs = report.copyMs > 0 ? copyMs : 0;
      told = report.encode();
    }
    std::vector<std::string> all = inner.allGather(label, told);
    pass(); // others may have gone on
    return all;
  }
  void barrier(std::string_view label) override {
    pass();
    inner.barrier(label);
    pass();
  }
  bool startStep(uint64_t step) override {
    pass();
    if (atStep)
      atStep(step);
    return inner.startStep(step);
  }
  void requestStop() override { inner.requestStop(); }
  bool stopped() const override { return inner.stopped(); }
  bool stopRequested() const override { return inner.stopRequested(); }
  void at(std::string_view instruction) override {
    pass();
    if (beside)
      beside(passed);
    inner.at(instruction);
  }
  void entry(std::string_view name) override { inner.entry(name); }
  void saved(std::string_view path) override { inner.saved(path); }
  void wrote(std::string_view path) override { inner.wrote(path); }
  [[noreturn]] void fail(int code, std::string_view message) override { inner.fail(code, message); }

  uint64_t passed = 0;
  std::function<void(uint64_t step)> atStep;
  std::function<void(uint64_t passed)> beside;

private:
  void pass() {
    if (++passed == end)
      inner.fail(comm::exitRankLost, "lost");
  }

  comm::Control &inner;
  comm::Placing where;
  uint64_t end;
  double copyMs;
};

/// Keeps two ranks at the same instruction, as collectives of their gradients would, until one of them has ended.
class Pace {
public:
  void keep(uint32_t rank, uint64_t passed) {
    at[rank] = passed;
    auto began = std::chrono::steady_clock::now();
    while (!ended && at[1 - rank] + 1 < passed && std::chrono::steady_clock::now() - began < std::chrono::seconds(1))
      std::this_thread::yield();
  }
  void end() { ended = true; }

private:
  std::array<std::atomic<uint64_t>, 2> at{};
  std::atomic<bool> ended{false};
};

/// Two ranks, each of which holds and trains all of the toy.
format::Bundle replicated() {
  format::Bundle bundle = toy::training(1);
  format::Manifest &m = bundle.manifest;
  m.planHash = format::sha256("replicated");
  m.mesh = {{"dp", 2}};
  m.ranks.push_back({0, {1}});
  m.communicators = {{"dp", {{0, 1}}}};
  auto onBoth = [](format::Layout &layout) { layout.parts = {{{{0, 0}, layout.shape, {0, 1}}}}; };
  onBoth(m.tensors[0].layout);
  m.tensors[1].layout.parts = {{{0}, {1}, {0, 1}}};
  for (format::Input &input : m.inputs)
    onBoth(input.layout);
  for (format::Output &output : m.outputs)
    output.ranks = {0, 1};
  return bundle;
}

class GoingOn : public Tool {
protected:
  /// The flags of a job in a folder of its own.
  core::RunOptions optionsIn(const std::string &place, std::vector<std::string> more = {}) {
    fs::create_directories(folder / place);
    std::vector<std::string> all{bundle,
                                 "--comm",
                                 "inproc",
                                 "-n",
                                 "2",
                                 "--text",
                                 folder / "text",
                                 "--init",
                                 "--steps",
                                 "6",
                                 "--metrics",
                                 folder / place + "/metrics.jsonl",
                                 "--export",
                                 folder / place + "/w.safetensors",
                                 "--log-every",
                                 "1"};
    all.insert(all.end(), more.begin(), more.end());
    return core::parseOptions(all);
  }
  std::vector<std::string> savesIn(const std::string &place) {
    return {"--save",      folder / place + "/ckpt", "--save-every", "2", "--eval-every", "3",
            "--eval-data", folder / "short"};
  }

  /// One start of all ranks; returns the exit code and adds to `out`.
  int start(const core::Job &job, const KeptMemory &memory, const Attempt &attempt) {
    comm::Launch launch;
    launch.bundle = job.name;
    launch.bundleRanks = 2;
    launch.n = 2;
    launch.transport = comm::Transport::inproc;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int peers[2];
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, peers);
    Pace pace;
    int code = comm::run(launch, [&](comm::Control &inner) {
      bool isLost = inner.rank() == attempt.lost;
      comm::Placing placing{"", attempt.number, memory.seenBy(inner.rank(), together)};
      placing.hostOf = {0, 1};
      placing.mirrors = memory.mirrors[inner.rank()];
      placing.connectPeers = [&](comm::Control &, const std::vector<bool> &) {
        std::vector<int> sockets(2, -1);
        sockets[1 - inner.rank()] = dup(peers[inner.rank()]);
        return std::make_shared<comm::TcpCarrier>(sockets);
      };
      AttemptControl control(inner, placing, isLost ? attempt.at : 0, attempt.copyMs);
      control.atStep = [&](uint64_t step) {
        if (attempt.number == 1 && inner.rank() == 0)
          wentOn = std::min(wentOn, static_cast<int>(step) - 1);
        if (atStep)
          atStep(step);
      };
      if (paced)
        control.beside = [&](uint64_t passed) { pace.keep(inner.rank(), passed); };
      std::shared_ptr<void> atEnd(nullptr, [&](void *) { pace.end(); });
      try {
        int ended = core::runRank(job, control);
        if (attempt.number == 0)
          points[inner.rank()] = control.passed; // of the run without faults
        return ended;
      } catch (const core::Failure &failure) {
        control.fail(failure.exitCode(), failure.what());
      }
    });
    close(peers[0]), close(peers[1]);
    out += testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return code;
  }

  /// The metrics without what differs from run to run.
  std::vector<std::string> metricsOf(const std::string &place) {
    std::vector<std::string> lines;
    std::ifstream in(folder / place + "/metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      auto values = nlohmann::ordered_json::parse(line);
      values.erase("ms");
      lines.push_back(values.dump());
    }
    return lines;
  }
  /// "step 3/6 loss ..." and the like, without times.
  std::vector<std::string> linesOf(const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
      if (size_t times = line.find(" ms "); line.starts_with("step") || line.starts_with("eval"))
        lines.push_back(line.substr(0, times == std::string::npos ? times : times - 6));
    return lines;
  }
  /// The data of a save's files.
  std::string dataOf(const std::string &save) {
    std::string all;
    for (const char *file : {"/rank0.safetensors", "/rank1.safetensors"})
      for (core::SafetensorsReader reader(save + file); const auto &[name, view] : reader.arrays())
        all += name + std::string(reinterpret_cast<const char *>(view.data.data()), view.data.size());
    return all;
  }
  void expectAlike(const std::string &place, const std::string &what) {
    EXPECT_EQ(fileText(folder / place + "/w.safetensors"), fileText(folder / "straight/w.safetensors")) << what;
    EXPECT_EQ(metricsOf(place), metricsOf("straight")) << what;
    std::vector<std::string> lines = linesOf(out);
    if (linesTwice) {
      std::sort(lines.begin(), lines.end());
      lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    }
    EXPECT_EQ(lines, straightLines) << what << "\n" << out;
    std::string ckpt = folder / place + "/ckpt/";
    if (!fs::exists(ckpt))
      return;
    std::set<std::string> names;
    for (const auto &entry : fs::directory_iterator(ckpt))
      names.insert(entry.path().filename());
    EXPECT_EQ(names, (std::set<std::string>{".lock", "4", "6"})) << what;
    for (const char *step : {"4", "6"})
      EXPECT_EQ(dataOf(ckpt + step), dataOf(folder / "straight/ckpt/" + step)) << what;
  }

  /// A job that loses ranks so and ends as the one without faults.
  void loseOnce(const std::string &place, const std::vector<std::string> &flags, const std::vector<Attempt> &attempts) {
    std::string what = place;
    for (const Attempt &attempt : attempts)
      what += " " + std::to_string(attempt.lost) + "@" + std::to_string(attempt.at);
    core::Job job = core::prepareJob(optionsIn(place, flags));
    KeptMemory memory(2);
    out.clear();
    wentOn = 6;
    int code = comm::exitRankLost;
    for (const Attempt &attempt : attempts) {
      if (code == 0)
        break; // at its end before the rank was to be lost
      code = start(job, memory, attempt);
      ASSERT_TRUE(code == 0 || (code == comm::exitRankLost && attempt.at)) << what << code << err;
      if (attempt.at)
        memory.dropSettled(attempt.lost);
      if (attempt.withMemory)
        memory.empty(attempt.lost);
    }
    expectAlike(place, what);
    fs::remove_all(folder / place);
  }

  void SetUp() override {
    Tool::SetUp();
    writeText("short", 120);
    bundle = write(toy::training(2), "two");
  }
  /// The run without faults.
  void runStraight(bool saves) {
    core::Job job = core::prepareJob(optionsIn("straight", saves ? savesIn("straight") : std::vector<std::string>()));
    KeptMemory memory(2);
    out.clear();
    ASSERT_EQ(start(job, memory, {}), 0) << err;
    straightLines = linesOf(out);
    ASSERT_EQ(metricsOf("straight").size(), saves ? 8u : 6u);
  }

  std::string bundle;
  std::vector<std::string> straightLines;
  uint64_t points[2] = {};
  std::function<void(uint64_t)> atStep;     ///< called by each rank before each step
  bool linesTwice = false, together = true; ///< together: with one supervisor
  bool paced = false;                       ///< ranks are at the same instruction when one is lost
  int wentOn = -1;                          ///< after which step, the last job that lost a rank
};

TEST_F(GoingOn, endsAsARunWithoutFaultsWhereverARankIsLost) {
  runStraight(false);
  std::set<int> wentOnAfter;
  for (uint32_t lost : {0u, 1u})
    for (uint64_t at = 1 + lost, count = points[lost]; at <= count && !HasFailure(); at += 3) {
      std::string place = "lost" + std::to_string(lost) + "-" + std::to_string(at);
      loseOnce(place, {}, {{0, lost, at}, {1}});
      wentOnAfter.insert(wentOn);
    }
  EXPECT_EQ(wentOnAfter, (std::set<int>{0, 1, 2, 3, 4, 5, 6}));
}

TEST_F(GoingOn, makesSavesAndEvaluationsThatWereCutOffAgain) {
  runStraight(true);
  for (uint32_t lost : {0u, 1u})
    for (uint64_t at = 1 + lost, count = points[lost]; at + 10 <= count && !HasFailure(); at += 17) {
      std::string place = "saves" + std::to_string(lost) + "-" + std::to_string(at);
      loseOnce(place, savesIn(place), {{0, lost, at}, {1}});
    }
}

TEST_F(GoingOn, survivesFaultsWhileAFaultIsMended) {
  runStraight(true);
  uint64_t seed = 1;
  auto random = [&seed](uint64_t below) { return (seed = seed * 6364136223846793005 + 1442695040888963407) % below; };
  for (int trial = 0; trial < 20 && !HasFailure(); ++trial) {
    std::string place = "several" + std::to_string(trial);
    std::vector<Attempt> attempts;
    for (uint32_t number = 0; number < 4; ++number)
      attempts.push_back({number, static_cast<uint32_t>(random(7) % 2), 1 + random(number % 2 ? 25 : points[0] / 2)});
    attempts.push_back({4});
    loseOnce(place, savesIn(place), attempts);
  }
}

// Each copies half of what both hold, and has the other half from the other one's memory.
TEST_F(GoingOn, dividesTheCopiesOfReplicas) {
  bundle = write(replicated(), "both-two");
  runStraight(false);
  std::set<int> wentOnAfter;
  for (uint32_t lost : {0u, 1u})
    for (uint64_t at = 1 + lost, count = points[lost]; at <= count && !HasFailure(); at += 5) {
      std::string place = "divided" + std::to_string(lost) + "-" + std::to_string(at);
      loseOnce(place, {}, {{0, lost, at}, {1, 1 - lost, 1 + at % 23}, {2}});
      wentOnAfter.insert(wentOn);
    }
  EXPECT_GE(wentOnAfter.size(), 5u);
  EXPECT_NE(out.find("restart: each rank copies its share ("), std::string::npos) << out;
}

TEST_F(GoingOn, goesBackToTheNewestSaveWhereAShareIsLost) {
  bundle = write(replicated(), "both-two");
  runStraight(true);
  core::Job job = core::prepareJob(optionsIn("share"));
  KeptMemory memory(2);
  ASSERT_EQ(start(job, memory, {0, 1, points[1] / 2}), comm::exitRankLost);
  memory.empty(1);
  EXPECT_EQ(start(job, memory, {1}), 4);
  expectSays("both-two.par: error: rank 1 is lost with its memory, and with its share of what others hold; "
             "--save DIR --save-every N keeps states to go back to");
}

// Copies are seldom here: after the first four steps none is made.
TEST_F(GoingOn, goesOnWhereAStepWasAbandoned) {
  together = false, paced = true;
  bundle = write(replicated(), "both-two");
  for (bool saves : {false, true}) {
    runStraight(saves);
    for (uint32_t lost : {0u, 1u}) {
      std::set<int> wentOnAfter;
      for (uint64_t at = 1 + lost, count = points[lost]; at <= count && !HasFailure(); at += saves ? 13 : 5) {
        std::string place = "abandoned" + std::to_string(lost) + "-" + std::to_string(at);
        Attempt first{0, lost, at}, last{1}, second{1, 1 - lost, 1 + at % 23}, third{2};
        first.copyMs = second.copyMs = 0.1;
        std::vector<std::string> flags = saves ? savesIn(place) : std::vector<std::string>();
        loseOnce(place, flags, {first, last});
        wentOnAfter.insert(wentOn);
        loseOnce(place, flags, {first, second, third});
      }
      EXPECT_TRUE(saves || wentOnAfter.contains(5)) << "lost " << lost;
    }
  }
}

// No other rank holds what a lost rank holds: all go back to a copy.
TEST_F(GoingOn, goesBackToACopyWhereNoReplicaIsSettled) {
  together = false;
  runStraight(false);
  std::set<int> wentOnAfter;
  for (uint64_t at = 1, count = points[1]; at <= count && !HasFailure(); at += 4) {
    std::string place = "none" + std::to_string(at);
    Attempt first{0, 1, at};
    first.copyMs = 0.1;
    loseOnce(place, {}, {first, {1}});
    wentOnAfter.insert(wentOn);
  }
  EXPECT_TRUE(wentOnAfter.contains(4) && !wentOnAfter.contains(5));
}

// The copies of two ranks that hold the same are each other's.
TEST_F(GoingOn, takesTheStateOfALostRankFromAReplica) {
  together = false;
  bundle = write(replicated(), "both-two");
  runStraight(false);
  for (uint32_t lost : {0u, 1u}) {
    linesTwice = lost == 0; // it does not know any more which it has printed
    std::set<int> wentOnAfter;
    for (uint64_t at = 1 + lost, count = points[lost]; at <= count && !HasFailure(); at += 3) {
      std::string place = "replica" + std::to_string(lost) + "-" + std::to_string(at);
      loseOnce(place, {}, {{0, lost, at, true}, {1}});
      wentOnAfter.insert(wentOn);
      std::string from = ": rank " + std::to_string(lost) + " has its state from rank " + std::to_string(1 - lost);
      EXPECT_EQ(out.find(from) != std::string::npos, wentOn > 0) << place << out;
    }
    EXPECT_GE(wentOnAfter.size(), 3u) << "lost " << lost;
  }
}

TEST_F(GoingOn, goesBackToTheNewestSaveWhereNoRankHoldsAPart) {
  together = false;
  runStraight(true);
  std::set<std::string> from;
  for (uint64_t count = points[1], at = count * 3 / 4; at + 6 <= count && !HasFailure(); at += 3) {
    loseOnce("back" + std::to_string(at), savesIn("back" + std::to_string(at)), {{0, 1, at, true}, {1, 1, 40}, {2}});
    std::smatch said;
    if (std::regex_search(
            out, said,
            std::regex("restart: the state after step (\\d) is back from .*/ckpt/(\\d): rank 1 is lost with its "
                       "memory, and no other rank holds its part of \"w\"\n")))
      from.insert(said[1].str() + said[2].str());
  }
  EXPECT_TRUE(from.contains("22") || from.contains("44")) << "no save was gone back to";
  core::Job job = core::prepareJob(optionsIn("none"));
  KeptMemory memory(2);
  ASSERT_EQ(start(job, memory, {0, 1, 60}), comm::exitRankLost);
  memory.empty(1);
  EXPECT_EQ(start(job, memory, {1}), 4);
  expectSays("two.par: error: rank 1 is lost with its memory, and no other rank holds its part of \"w\"; "
             "--save DIR --save-every N keeps states to go back to");
}

// A rank that no other one is a replica of has its state from the mirror that the other one holds.
TEST_F(GoingOn, takesTheStateOfALostRankFromItsMirror) {
  together = false;
  std::vector<std::string> flags{"--restart", "--mirror", "2"};
  runStraight(false);
  atStep = [](uint64_t) { usleep(30'000); }; // as long as a mirror mostly is on its way
  std::set<int> wentOnAfter;
  size_t mirrored = 0;
  for (uint64_t at = 2, count = points[1]; at <= count && !HasFailure(); at += 7) {
    loseOnce("mirror" + std::to_string(at), flags, {{0, 1, at, true}, {1, 1, at % 50, at % 2 == 0}, {2}});
    wentOnAfter.insert(wentOn);
    mirrored += out.find(": rank 1 has its state from rank 0 and its mirror at rank 0\n") != std::string::npos;
  }
  EXPECT_GE(wentOnAfter.size(), 3u);
  EXPECT_GE(mirrored, 1u);
  EXPECT_NE(out.find("mirror: every 2 steps each rank sends 0.1 KiB of its state of 0.1 KiB to a neighbour on another "
                     "host, and has 0.2 KiB of memory for another rank's\n"),
            std::string::npos)
      << out;
  EXPECT_TRUE(std::regex_search(out, std::regex("mirror: \\d were sent: [\\d.]+ ms for the copy, [\\d.]+ ms beside the "
                                                "steps, [\\d.]+ ms of a core; steps waited \\d+ ms in all\n")))
      << out;
}

TEST_F(GoingOn, endsWhereARankIsLostWithItsMirror) {
  together = false;
  runStraight(false);
  // Steps are long enough for a whole mirror, and so for a second copy.
  core::Job job = core::prepareJob(optionsIn("both", {"--restart", "--mirror", "1"}));
  KeptMemory memory(2);
  atStep = [](uint64_t) { usleep(300'000); };
  ASSERT_EQ(start(job, memory, {0, 1, points[1] * 5 / 6}), comm::exitRankLost);
  atStep = {};
  memory.empty(1);
  memory.emptyMirrors(0);
  EXPECT_EQ(start(job, memory, {1}), 4);
  expectSays("two.par: error: rank 1 is lost with its memory, and no other rank holds its part of \"w\"; "
             "--save DIR --save-every N keeps states to go back to");
}

TEST_F(GoingOn, saysThatMemoryForAMirrorIsLacking) {
  together = false;
  core::Job job = core::prepareJob(optionsIn("lacking", {"--restart", "--mirror", "1"}));
  KeptMemory memory(2);
  close(memory.mirrors[0][0]);
  memory.mirrors[0][0] = open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_EQ(start(job, memory, {}), 1);
  expectSays("two.par: error: rank 0 cannot hold 8,192 bytes of the state of rank 1: Invalid argument; "
             "without --mirror it needs none");
}

// Steps since the last copy are run again.
TEST_F(GoingOn, copiesSeldomWhereACopyTakesLong) {
  runStraight(false);
  std::set<int> wentOnAfter;
  for (uint64_t at = 2, count = points[1]; at <= count && !HasFailure(); at += 5) {
    loseOnce("seldom" + std::to_string(at), {}, {{0, 1, at, false, 0.02}, {1}});
    wentOnAfter.insert(wentOn);
  }
  EXPECT_EQ(wentOnAfter, (std::set<int>{0, 1, 2, 3, 4}));
  EXPECT_NE(out.find("restart: each rank copies its share (0.1 KiB) of a state of 0.1 KiB, every 4 steps, in 0.02 ms: "
                     "0.5 % of their time\n"),
            std::string::npos)
      << out;
}

TEST(CopyCadence, takesHalfAHundredthOfTheTime) {
  core::CopyCadence cadence;
  for (double first : {90., 70.}) {
    cadence.add(first, 10);
    EXPECT_EQ(cadence.steps(), 1u);
  }
  cadence.add(0.5, 10);
  EXPECT_EQ(cadence.steps(), 10u);
  EXPECT_EQ(cadence.describe(), "every 10 steps, in 0.50 ms: 0.5 % of their time");
  cadence.add(0.3, 10);
  EXPECT_EQ(cadence.describe(), "every 8 steps, in 0.40 ms: 0.5 % of their time");
  core::CopyCadence quick;
  for (int i = 0; i < 3; ++i)
    quick.add(0.04, 10);
  EXPECT_EQ(quick.describe(), "after each step, in 0.04 ms: 0.4 % of their time");
  core::CopyCadence slow;
  for (int i = 0; i < 3; ++i)
    slow.add(80, 10);
  EXPECT_EQ(slow.steps(), 64u);
}

// A disk that is full for some steps.
TEST_F(GoingOn, givesUpASaveThatFindsNoSpace) {
  rlimit before, small;
  getrlimit(RLIMIT_FSIZE, &before);
  small = {400, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  atStep = [&](uint64_t step) { setrlimit(RLIMIT_FSIZE, step >= 2 && step < 5 ? &small : &before); };
  std::string save = folder / "full";
  core::Job job =
      core::prepareJob(core::parseOptions({bundle, "--comm", "inproc", "-n", "2", "--text", folder / "text", "--init",
                                           "-q", "--steps", "8", "--save", save, "--save-every", "2"}));
  KeptMemory memory(2);
  EXPECT_EQ(start(job, memory, {}), 0) << err;
  EXPECT_TRUE(std::regex_search(
      out,
      std::regex("full/2\\.[0-9a-f]{16}\\.tmp/rank[01]\\.safetensors: warning: cannot write: File too large; the run "
                 "goes on without this save, and makes the next one after 2 steps\n")))
      << out;
  std::set<std::string> names;
  for (const auto &entry : fs::directory_iterator(save))
    names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{".lock", "6", "8"}));
}

TEST_F(GoingOn, saysThatMemoryIsLacking) {
  core::Job job = core::prepareJob(optionsIn("lacking"));
  KeptMemory memory(2);
  fcntl(memory.descriptors[1], F_ADD_SEALS, F_SEAL_GROW);
  EXPECT_EQ(start(job, memory, {}), 1);
  expectSays("two.par: error: rank 1 cannot keep 12,288 bytes of its state in memory: Operation not permitted; "
             "without --restart it needs none");
}

} // namespace
