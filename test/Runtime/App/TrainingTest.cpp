// par-run trains, evaluates, saves, resumes and exports; its output has the form that docs/plan.md fixes.
#include "ToolFixture.h"

#include "par/app/LearningRate.h"
#include "par/format/Sha256.h"

#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <regex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace par;

namespace {

class Training : public Tool {
protected:
  std::vector<std::string> command(const std::string &bundle, std::vector<std::string> more) {
    std::vector<std::string> all{bundle, "--comm", "inproc", "--text", folder / "text"};
    if (auto ranks = std::to_string(bundle.ends_with("two.par") ? 2 : 1); ranks != "1")
      all.insert(all.end(), {"-n", ranks});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void expectLine(const std::string &pattern) { EXPECT_TRUE(std::regex_search(out, std::regex(pattern))) << out; }
  std::vector<float> weightsOf(const std::string &path) {
    core::SafetensorsReader reader(path);
    std::vector<float> values(64);
    std::memcpy(values.data(), reader.find("w")->data.data(), 256);
    return values;
  }
};

TEST_F(Training, printsTheLinesOfThePlan) {
  std::string bundle = write(toy::training(2), "two");
  std::string save = folder / "ckpt";
  ASSERT_EQ(run(command(bundle, {"--init", "--steps", "20", "--save", save, "--save-every", "10"})), 0) << err;
  expectLine(
      R"(two.par: 2 ranks, inproc, plan [0-9a-f]{6} \(2 of 2 agree\), data .*text: 2,000 bytes, 124 windows of 16)");
  expectLine(R"(step    1/20  loss \d+\.\d{4}  lr 1\.0e-01  \|g\| 1\.00  +\d+ ms  .*tok/s\n)");
  expectLine(R"(step   10/20 .*   saving .*ckpt/10\n)");
  expectLine(R"(step   20/20 .*   saved .*ckpt/20\n)");
  expectLine(R"(done    20 steps in \d+\.\d s; median \d+\.\d ms; peak \d+\.\d KiB \(bound \d+\.\d KiB\); )"
             R"(next: par-run .*--eval --weights .*ckpt/20 --text FILE)");
  ASSERT_EQ(run(command(bundle, {"--eval", "--weights", folder / "ckpt/20"})), 0) << err;
  expectLine(R"(eval    124 windows  loss \d+\.\d{4}  perplexity \d+\.\d\d\n)");
}

TEST_F(Training, simulatesWithTheSameWeights) {
  std::string bundle = write(toy::training(2), "two");
  std::vector<std::vector<float>> weights;
  for (std::vector<std::string> device :
       {std::vector<std::string>{}, {"--device", "sim", "--interleavings", "5", "--sim-seed", "7"}}) {
    std::vector<std::string> flags{"--init", "--steps", "4", "--export", folder / "w.safetensors"};
    flags.insert(flags.end(), device.begin(), device.end());
    ASSERT_EQ(run(command(bundle, flags)), 0) << err;
    weights.push_back(weightsOf(folder / "w.safetensors"));
  }
  EXPECT_EQ(weights[0], weights[1]);
  expectLine(R"(two.par: 2 ranks, sim, plan)");
  expectLine(R"(sim     4 runs in 20 interleavings \(seed 7\): [\d,]+ steps, [\d,]+ meetings, no race, bits alike)");
}

TEST_F(Training, savesAndNamesTheSaveWhenInterrupted) {
  std::string bundle = write(toy::training(1), "one"), metrics = folder / "metrics.jsonl";
  for (auto [signal, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143), std::pair(SIGHUP, 129)}) {
    std::filesystem::remove(metrics);
    std::thread other([&] {
      while (fileText(metrics).empty()) // the handler stands before the first step
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      kill(getpid(), signal);
    });
    std::string save = folder / ("ckpt" + std::to_string(code));
    EXPECT_EQ(run(command(bundle, {"--init", "--steps", "1000000000", "--save", save, "--metrics", metrics, "--export",
                                   folder / "e.safetensors"})),
              code);
    other.join();
    expectLine(R"(interrupted; .*e\.safetensors is not written: it is for the weights of the last step\n)");
    EXPECT_FALSE(std::filesystem::exists(folder / "e.safetensors")) << "of a run that did not come to its end";
    expectLine(R"(interrupted; saved .*ckpt1(30|43|29)/\d+\n)");
    std::smatch last;
    ASSERT_TRUE(std::regex_search(out, last, std::regex("--weights ([^ ]*)"))) << out;
    EXPECT_TRUE(std::filesystem::exists(last[1].str() + "/index.json")) << last[1];
  }
}

TEST_F(Training, computesTheSameOnOneRankAndOnTwo) {
  std::string one = write(toy::training(1), "one"), two = write(toy::training(2), "two");
  ASSERT_EQ(run(command(one, {"--init", "--steps", "3", "--export", folder / "one.safetensors"})), 0) << err;
  ASSERT_EQ(run(command(two, {"--init", "--steps", "3", "--export", folder / "two.safetensors"})), 0) << err;
  EXPECT_EQ(weightsOf(folder / "one.safetensors"), weightsOf(folder / "two.safetensors"));
  core::SafetensorsReader reader(folder / "two.safetensors");
  EXPECT_EQ(reader.arrays().size(), 1u) << "counters are not exported";
}

TEST_F(Training, resumesBitForBitAndUnderAnotherPlan) {
  std::string one = write(toy::training(1), "one"), two = write(toy::training(2), "two");
  std::string straight = folder / "straight.safetensors", resumed = folder / "resumed.safetensors";
  ASSERT_EQ(run(command(two, {"--init", "--steps", "6", "--export", straight})), 0) << err;
  ASSERT_EQ(run(command(two, {"--init", "--steps", "4", "--save", folder / "ckpt", "--save-every", "2"})), 0) << err;
  ASSERT_EQ(run(command(two, {"--resume", folder / "ckpt", "--steps", "6", "--export", resumed})), 0) << err;
  EXPECT_EQ(fileText(straight), fileText(resumed));
  ASSERT_EQ(run(command(one, {"--resume", folder / "ckpt/2", "--steps", "6", "--export", resumed})), 0) << err;
  EXPECT_EQ(fileText(straight), fileText(resumed));
  EXPECT_TRUE(std::filesystem::exists(folder / "ckpt/2") && std::filesystem::exists(folder / "ckpt/4"));
  // Not in the middle of another order: rows would be seen twice, and others never.
  EXPECT_EQ(run(command(one, {"--resume", folder / "ckpt/2", "--steps", "6", "--order", "sequential"})), 2);
  expectSays("par-run: error: --order sequential: " + (folder / "ckpt/2") +
             " was saved in the middle of an order that is shuffled; leave --order out");
}

TEST_F(Training, keepsTheNewestAndResumesThemByItself) {
  std::string one = write(toy::training(1), "one"), save = folder / "ckpt";
  for (const char *steps : {"3", "5"})
    ASSERT_EQ(run(command(one, {"--init", "--steps", steps, "--save", save, "--save-every", "1", "--keep", "2",
                                "--resume", "auto"})),
              0)
        << err;
  expectLine("step    4/5 ");
  EXPECT_EQ(out.find("step    1/5"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(save + "/3"));
  EXPECT_TRUE(std::filesystem::exists(save + "/4") && std::filesystem::exists(save + "/5"));
  // A save that was killed leaves a folder without the name of a step; it is not looked at.
  std::filesystem::create_directory(save + "/6.tmp");
  EXPECT_EQ(core::newestCheckpoint(save), save + "/5");
}

TEST_F(Training, keepsItsOwnSavesBesideThoseOfALongerRun) {
  std::string one = write(toy::training(1), "one"), save = folder / "ckpt";
  auto trains = [&](const std::vector<std::string> &start, const std::string &steps) {
    std::vector<std::string> flags{"--steps", steps, "--save", save, "--save-every", "1"};
    flags.insert(flags.begin(), start.begin(), start.end());
    return run(command(one, flags));
  };
  ASSERT_EQ(trains({"--init", "--keep", "9"}, "9"), 0) << err;
  ASSERT_EQ(trains({"--resume", save + "/1"}, "3"), 0) << err;
  EXPECT_EQ(core::newestCheckpoint(save), save + "/3");
  EXPECT_FALSE(std::filesystem::exists(save + "/9"));
}

// A rate that is set is that of every step: a message says which keys of the plan it overrides.
TEST_F(Training, tellsWhatARateTakesThePlaceOf) {
  format::Bundle bundle = toy::training(1);
  bundle.manifest.lr = format::LrSchedule{format::LrSchedule::Cosine, 0.5, 0, 3, 20};
  std::string one = write(bundle, "one");
  ASSERT_EQ(run(command(one, {"--init", "--steps", "1", "--set", "lr=0.25"})), 0) << err;
  std::string said = "one.par: warning: --set lr is the rate of every step, without the plan's 3 steps of warm-up and "
                     "cosine to 0 at step 20";
  EXPECT_NE(out.find(said), std::string::npos) << out;
  ASSERT_EQ(run(command(one, {"--init", "--steps", "1"})), 0) << err;
  EXPECT_EQ(out.find("warning"), std::string::npos) << out;
  bundle.manifest.lr = format::LrSchedule{format::LrSchedule::Step, 0.5, 0, 3, 0, 0.1, 2};
  one = write(bundle, "falls");
  ASSERT_EQ(run(command(one, {"--init", "--steps", "1", "--set", "lr=0.25"})), 0) << err;
  EXPECT_NE(out.find("without the plan's 3 steps of warm-up and fall by 0.1 every 2 steps"), std::string::npos) << out;
  bundle.manifest.lr = format::LrSchedule{format::LrSchedule::OneCycle, 0.5, 0, 0, 9};
  bundle.manifest.lr->phases = {{2, 0.1, 0.5}, {8, 0.5, 0.01}};
  one = write(bundle, "cycle");
  ASSERT_EQ(run(command(one, {"--init", "--steps", "1", "--set", "lr=0.25"})), 0) << err;
  EXPECT_NE(out.find("without the plan's cycle of 9 steps"), std::string::npos) << out;
}

TEST_F(Training, writesMetricsAndTraces) {
  std::string two = write(toy::training(2), "two");
  ASSERT_EQ(run(command(two, {"--init", "--steps", "3", "--metrics", folder / "m.jsonl", "--trace",
                              (folder / "t.json") + ":2-2", "--set", "lr=0.25"})),
            0)
      << err;
  std::string metrics = fileText(folder / "m.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 3);
  for (const char *key : {"\"step\":3", "\"loss\":", "\"lr\":0.25", "\"grad_norm\":1.0", "\"ms\":", "\"tokens\":64",
                          "\"sent_bytes\":8", "\"peak_bytes\":"})
    EXPECT_NE(metrics.find(key), std::string::npos) << key << " in " << metrics;
  std::string trace = fileText(folder / "t.json");
  EXPECT_NE(trace.find("\"name\":\"all/loss:0\""), std::string::npos);
  EXPECT_NE(trace.find("\"pid\":1"), std::string::npos);
  EXPECT_EQ(trace.find("\"step\":1,"), std::string::npos);
}

TEST_F(Training, evaluatesWhileItTrains) {
  std::string one = write(toy::training(1), "one");
  ASSERT_EQ(run(command(one, {"--init", "--steps", "4", "--eval-every", "2", "--eval-data", folder / "text",
                              "--metrics", folder / "m.jsonl"})),
            0);
  expectLine(R"(eval    124 windows  loss .*  after step 2\n)");
  expectLine(R"(eval    124 windows  loss .*  after step 4\n)");
  std::string metrics = fileText(folder / "m.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 6);
  EXPECT_NE(metrics.find("{\"step\":2,\"eval_loss\":"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find(",\"samples\":124,\"left_out\":0}"), std::string::npos) << metrics;
}

// A mean over whole batches says which samples are not in it.
TEST_F(Training, saysWhichSamplesFillNoBatch) {
  std::string two = write(toy::training(2), "two"), few = writeText("few", 7 * 16 + 1), flags = folder / "m.jsonl";
  ASSERT_EQ(run({two, "--comm", "inproc", "--init", "--eval", "--text", few, "--metrics", flags}), 0) << err;
  expectLine(R"(eval    4 windows  loss \d+\.\d{4}  perplexity \d+\.\d\d   )"
             R"(3 of 7 windows left out: they fill no batch of 4\n)");
  EXPECT_NE(fileText(flags).find(",\"samples\":4,\"left_out\":3}"), std::string::npos) << fileText(flags);
  ASSERT_EQ(run(command(two, {"--init", "--steps", "2", "--eval-every", "2", "--eval-data", few})), 0) << err;
  expectLine(R"(eval    4 windows  .*  after step 2   3 of 7 windows left out: they fill no batch of 4\n)");
}

// The prediction is that of the work: of a step that is hardly any, a share of it says nothing.
TEST_F(Training, setsTheMedianBesideThePrediction) {
  format::Bundle bundle = toy::training(1);
  for (auto [ns, says] : {std::pair(1, R"(\(predicted 1 µs\))"),
                          {40'000, R"(\(predicted 40 µs\))"},
                          {1'000'000, R"(\(predicted 1\.0 ms\))"},
                          {30'000'000, R"(\(predicted 30, -\d+\.\d %\))"}}) {
    bundle.manifest.predictedNs = static_cast<uint64_t>(ns);
    ASSERT_EQ(run(command(write(bundle, "one"), {"--init", "--steps", "3"})), 0) << err;
    expectLine("median \\d+\\.\\d ms " + std::string(says) + "; peak ");
  }
}

// par-run ... | head: the reader has gone, so the job ends, with all requested saves.
TEST_F(Training, endsQuietlyWhenNobodyReads) {
  for (const char *comm : {"inproc", "shm"}) {
    std::string two = write(toy::training(2), "two"), save = folder / comm;
    int ends[2], code = 0;
    ASSERT_EQ(pipe(ends), 0);
    fflush(stdout);
    if (fork() == 0) { // head: reads up to the first step and goes
      char letter;
      for (std::string text; text.find("step ") == std::string::npos && read(ends[0], &letter, 1) == 1;)
        text += letter;
      _exit(0);
    }
    close(ends[0]);
    int before = dup(STDOUT_FILENO);
    testing::internal::CaptureStderr();
    dup2(ends[1], STDOUT_FILENO);
    code = core::runTool(core::parseOptions({two, "--comm", comm, "--text", folder / "text", "--init", "--steps",
                                             "1000000000", "--log-every", "1", "--save", save}));
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before), close(ends[1]);
    wait(nullptr);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(code, 128 + SIGPIPE);
    EXPECT_TRUE(std::filesystem::exists(core::newestCheckpoint(save) + "/index.json"));
  }
}

/// A pipe without a reader. When it is full, this process gets SIGTERM. A job that then still waits for a reader gets
/// one after ten seconds, so the test ends.
class FullPipe {
public:
  FullPipe() {
    EXPECT_EQ(pipe(ends), 0);
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
    thread = std::thread([this] { watch(); });
  }
  ~FullPipe() {
    end();
    close(ends[0]);
    close(ends[1]);
  }
  int descriptor() const { return ends[1]; }
  /// Whether the job waited for its reader.
  bool end() {
    ended = true;
    if (thread.joinable())
      thread.join();
    return read;
  }

private:
  void watch() {
    for (pollfd polled{ends[1], POLLOUT, 0}; poll(&polled, 1, 0) != 0;)
      usleep(10'000);
    kill(getpid(), SIGTERM);
    for (int i = 0; i < 100 && !ended; ++i)
      usleep(100'000);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    for (std::array<char, 4096> some; !ended; usleep(1000))
      read = ::read(ends[0], some.data(), some.size()) > 0 || read;
  }

  int ends[2];
  std::atomic<bool> ended{false}, read{false};
  std::thread thread;
};

// Progress lines, or metrics, go into a pipe that is not read: the job waits for its reader, until it is asked to end.
TEST_F(Training, endsThoughNobodyReads) {
  std::string two = write(toy::training(2), "two");
  for (bool metrics : {false, true})
    for (const char *comm : {"inproc", "shm"}) {
      std::string save = folder / (comm + std::to_string(metrics));
      FullPipe full;
      std::string name = "/dev/fd/" + std::to_string(full.descriptor());
      fflush(stdout);
      int before = dup(STDOUT_FILENO), none = open("/dev/null", O_WRONLY);
      testing::internal::CaptureStderr();
      dup2(metrics ? none : full.descriptor(), STDOUT_FILENO);
      int code = core::runTool(
          core::parseOptions({two, "--comm", comm, "--text", folder / "text", "--init", "--steps", "1000000000",
                              "--save", save, metrics ? "--metrics" : "--log-every", metrics ? name : "1"}));
      dup2(before, STDOUT_FILENO);
      close(before), close(none);
      err = testing::internal::GetCapturedStderr();
      EXPECT_FALSE(full.end()) << "it waited for a reader";
      EXPECT_EQ(code, 128 + SIGTERM);
      expectSays(": the job ended after step ");
      EXPECT_TRUE(std::filesystem::exists(core::newestCheckpoint(save) + "/index.json"));
      if (metrics)
        expectSays(name + ": warning: cannot write: it has no reader; its last lines are missing\n");
    }
}

TEST_F(Training, epochsCoverEveryRowOnce) {
  core::RowOrder order(10, true, 3);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> seen(10);
    for (uint64_t i = 0; i < 10; ++i)
      ++seen[order.at(epoch * 10 + i)];
    EXPECT_EQ(seen, std::vector<int>(10, 1));
  }
  std::string one = write(toy::training(1), "one");
  ASSERT_EQ(run(command(one, {"--init", "--epochs", "2"})), 0) << err;
  expectLine("step  124/124 ");
}

TEST_F(Training, endsOnALossThatIsNotFinite) {
  format::Bundle bundle = toy::training(2);
  bundle.provenance = {"squares/Update"};
  bundle.programs[0].blocks[1].instructions[1].provenance = 0;
  std::string two = write(bundle, "two");
  std::vector<float> bad(64, 1.0f);
  bad[60] = NAN;
  {
    core::SafetensorsWriter writer(folder / "bad.safetensors", {{"w", core::DType::F32, {8, 8}}}, true);
    writeArray(writer, 0, bad);
  }
  EXPECT_EQ(run(command(two, {"--weights", folder / "bad.safetensors", "--steps", "5"})), 5);
  expectSays("step 1: error: loss is NaN on rank 1 (dp 1): the first value in memory that is not finite is the output "
             "of squares/Update "
             "(all/update:1), microbatch 0");
  expectSays("note: " + (folder / "bad.safetensors") +
             " holds NaN in \"w\" (element 60); no loss was finite before; nothing "
             "was saved");
  EXPECT_EQ(run(command(two, {"--weights", folder / "bad.safetensors", "--eval"})), 5);
  expectSays("two.par: warning: the results are NaN where they depend on it: " + (folder / "bad.safetensors") +
             " holds NaN in \"w\" (element 60)");
  bundle.programs[0].blocks[1].instructions[1].provenance = -1;
  EXPECT_EQ(run(command(write(bundle, "no-node"), {"--weights", folder / "bad.safetensors", "--steps", "5"})), 5);
  expectSays("on rank 1 (dp 1): the first value in memory that is not finite is \"w\", which sgd wrote (all/update:1), "
             "microbatch 0");
  format::Bundle alone = toy::training(1);
  alone.manifest.mesh.clear(), alone.manifest.ranks[0].coordinate.clear();
  EXPECT_EQ(run(command(write(alone, "one"), {"--weights", folder / "bad.safetensors", "--steps", "5"})), 5);
  expectSays("step 1: error: loss is NaN on rank 0 (one rank): the first value in memory that is not finite is ");
  EXPECT_EQ(
      run(command(two, {"--init", "--set", "lr=1e30", "--steps", "9", "--save", folder / "ckpt", "--save-every", "1"})),
      5);
  expectSays("note: the last finite loss was ");
  expectSays("; the last saved state is in " + (folder / "ckpt/1") + "; try --resume " + (folder / "ckpt/1"));
  EXPECT_EQ(run(command(two, {"--init", "--set", "lr=1e30", "--steps", "9"})), 5);
  expectSays("; nothing was saved: --save DIR --save-every N keeps states to go back to");
}

// Schedules as docs/plan.md has them: warm-up reaches the peak at its last step, the decay the floor at the end.
TEST(LearningRate, followsItsSchedule) {
  format::LrSchedule cosine{format::LrSchedule::Cosine, 1.0, 0.1, 4, 12};
  EXPECT_DOUBLE_EQ(core::learningRate(cosine, 0), 0.25);
  EXPECT_DOUBLE_EQ(core::learningRate(cosine, 3), 1.0);
  EXPECT_DOUBLE_EQ(core::learningRate(cosine, 4), 1.0);
  EXPECT_DOUBLE_EQ(core::learningRate(cosine, 8), 0.55);
  EXPECT_DOUBLE_EQ(core::learningRate(cosine, 12), 0.1);
  EXPECT_DOUBLE_EQ(core::learningRate(cosine, 50), 0.1);
  EXPECT_DOUBLE_EQ(core::learningRate({format::LrSchedule::Linear, 1.0, 0.0, 0, 10}, 5), 0.5);
  EXPECT_DOUBLE_EQ(core::learningRate({format::LrSchedule::Rsqrt, 1.0, 0.0, 4, 0}, 15), 0.5);
  EXPECT_DOUBLE_EQ(core::learningRate({format::LrSchedule::Constant, 2.0, 0.0, 0, 0}, 99), 2.0);
  format::LrSchedule falls{format::LrSchedule::Step, 0.5, 0.0, 0, 0, 0.1, 0, {2, 2, 5}};
  EXPECT_DOUBLE_EQ(core::learningRate(falls, 1), 0.5);
  EXPECT_DOUBLE_EQ(core::learningRate(falls, 2), 0.005);
  EXPECT_DOUBLE_EQ(core::learningRate(falls, 5), 0.0005);
  falls = {format::LrSchedule::Step, 0.5, 0.1, 2, 0, 0.5, 3};
  EXPECT_DOUBLE_EQ(core::learningRate(falls, 0), 0.25);
  EXPECT_DOUBLE_EQ(core::learningRate(falls, 4), 0.5);
  EXPECT_DOUBLE_EQ(core::learningRate(falls, 5), 0.25);
  EXPECT_DOUBLE_EQ(core::learningRate(falls, 5000), 0.1);
  format::LrSchedule cycle{format::LrSchedule::OneCycle, 1.0, 0.0, 0, 9};
  cycle.phases = {{2, 0.2, 1.0}, {8, 1.0, 0.1}};
  EXPECT_DOUBLE_EQ(core::learningRate(cycle, 0), 0.2);
  EXPECT_DOUBLE_EQ(core::learningRate(cycle, 1), 0.6);
  EXPECT_DOUBLE_EQ(core::learningRate(cycle, 2), 1.0);
  EXPECT_DOUBLE_EQ(core::learningRate(cycle, 5), 0.55);
  EXPECT_DOUBLE_EQ(core::learningRate(cycle, 8), 0.1);
  EXPECT_DOUBLE_EQ(core::learningRate(cycle, 99), 0.1);
  cycle.isLinear = true;
  EXPECT_DOUBLE_EQ(core::learningRate(cycle, 4), 0.7);
  cycle.phases = {{8, 0.2, 1.0}, {8, 1.0, 0.1}}; // pct_start: 1
  EXPECT_DOUBLE_EQ(core::learningRate(cycle, 8), 1.0);
  EXPECT_DOUBLE_EQ(core::learningRate(cycle, 99), 1.0);
}

// The model with the trained weights: all other bytes are the compiled one's.
TEST_F(Training, exportsTheModel) {
  format::Bundle bundle = toy::training(2);
  std::string content(400, 'm'), model = folder / "squares.onnx";
  std::ofstream(model) << content;
  bundle.manifest.model.size = content.size();
  bundle.manifest.model.sha256 = format::sha256(content);
  for (format::Tensor &tensor : bundle.manifest.tensors)
    if (tensor.name == "w")
      tensor.source = format::Source{"squares.onnx", 40, 256, format::DType::F32};
  std::string two = write(bundle, "two"), exported = folder / "trained.onnx", weights = folder / "w.safetensors";
  ASSERT_EQ(run(command(two, {"--init", "--steps", "2", "--export", exported})), 0) << err;
  ASSERT_EQ(run(command(two, {"--init", "--steps", "2", "--export", weights})), 0) << err;
  std::ifstream in(exported, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  ASSERT_EQ(bytes.size(), content.size());
  EXPECT_EQ(bytes.substr(0, 40) + bytes.substr(296), std::string(40 + 104, 'm'));
  core::SafetensorsReader reader(weights);
  EXPECT_EQ(std::memcmp(reader.find("w")->data.data(), bytes.data() + 40, 256), 0);
  EXPECT_FALSE(std::filesystem::exists(exported + ".tmp"));
}

// A tied parameter is found under any of its names and exported under all.
TEST_F(Training, tiedNames) {
  format::Bundle bundle = toy::training(1);
  bundle.manifest.tensors[0].aliases = {"tied.w"};
  std::string one = write(bundle, "one");
  {
    core::SafetensorsWriter writer(folder / "in.safetensors", {{"tied.w", core::DType::F32, {8, 8}}}, true);
    writeArray(writer, 0, std::vector<float>(64, 2.0f));
  }
  ASSERT_EQ(run(command(
                one, {"--weights", folder / "in.safetensors", "--steps", "1", "--export", folder / "out.safetensors"})),
            0)
      << err;
  expectLine("loss 256.0000");
  core::SafetensorsReader reader(folder / "out.safetensors");
  ASSERT_TRUE(reader.find("w") && reader.find("tied.w"));
  EXPECT_EQ(std::memcmp(reader.find("w")->data.data(), reader.find("tied.w")->data.data(), 256), 0);
}

// Under two of its names a file may hold the same numbers, and no others.
TEST_F(Training, tiedNumbers) {
  format::Bundle bundle = toy::training(1);
  bundle.manifest.tensors[0].aliases = {"head"};
  std::string one = write(bundle, "one"), file = folder / "in.safetensors";
  for (float other : {2.0f, 3.0f}) {
    {
      core::SafetensorsWriter writer(file, {{"w", core::DType::F32, {8, 8}}, {"head", core::DType::F32, {8, 8}}}, true);
      writeArray(writer, 0, std::vector<float>(64, 2.0f));
      writeArray(writer, 1, std::vector<float>(64, other));
    }
    int code = run(command(one, {"--weights", file, "--steps", "1"}));
    if (other == 2.0f)
      expectLine("loss 256.0000");
    EXPECT_EQ(code, other == 2.0f ? 0 : 1) << err;
  }
  EXPECT_NE(
      err.find("in.safetensors: error: holds other numbers for \"w\" than for \"head\", which are one tensor of the "
               "bundle; leave one of both out"),
      std::string::npos)
      << err;
}

// A save of a tied parameter has all its names: a bundle in which these are tensors of their own finds them.
TEST_F(Training, savesTiedNames) {
  format::Bundle bundle = toy::training(1);
  bundle.manifest.tensors[0].aliases = {"tied.w"};
  std::string tied = write(bundle, "tied"), saves = folder / "saves";
  ASSERT_EQ(run(command(tied, {"--init", "--steps", "2", "--save", saves, "--save-every", "2"})), 0) << err;
  bundle.manifest.tensors[0].aliases.clear();
  for (format::Tensor &tensor : bundle.manifest.tensors)
    for (std::string *name : {&tensor.name, &tensor.of})
      if (*name == "w")
        *name = "tied.w";
  for (format::Program &program : bundle.programs)
    for (format::Buffer &buffer : program.buffers)
      if (buffer.tensor == "w")
        buffer.tensor = "tied.w";
  std::string other = write(bundle, "other");
  EXPECT_EQ(run(command(other, {"--weights", saves, "--steps", "1"})), 0) << err;
}

// Tensors that the exporter transposed are saved as PyTorch has them, and loaded so or as the model has them, whole or
// in parts.
TEST_F(Training, transposedNames) {
  for (uint32_t ranks : {1, 2}) {
    format::Bundle bundle = toy::training(ranks);
    std::string own = write(bundle, "own" + std::to_string(ranks)), ownFile = folder / "own.safetensors";
    ASSERT_EQ(run(command(own, {"--init", "--steps", "1", "--export", ownFile})), 0) << err;
    bundle.manifest.tensors[0].transposed = {"net.linear.weight", "linear.weight"};
    std::string some = write(bundle, "some" + std::to_string(ranks)), theirFile = folder / "theirs.safetensors";
    for (const char *source : {"own", "init", "theirs"}) {
      std::vector<std::string> arguments{"--steps", "1", "--export", theirFile};
      if (source == std::string("init"))
        arguments.insert(arguments.begin(), "--init");
      else
        arguments.insert(arguments.begin(),
                         {"--weights", folder / (std::string(source) + ".safetensors"), "--set", "lr=0"});
      ASSERT_EQ(run(command(some, arguments)), 0) << err;
      core::SafetensorsReader owns(ownFile), theirs(theirFile);
      EXPECT_EQ(theirs.find("w"), nullptr);
      const core::ArrayView *w = owns.find("w");
      ASSERT_TRUE(w);
      auto *numbers = reinterpret_cast<const float *>(w->data.data());
      EXPECT_NE(numbers[1], numbers[8]);
      for (const char *name : {"net.linear.weight", "linear.weight"}) {
        const core::ArrayView *weight = theirs.find(name);
        ASSERT_TRUE(weight) << name;
        for (size_t i = 0; i < 64; ++i)
          EXPECT_EQ(numbers[i], reinterpret_cast<const float *>(weight->data.data())[i % 8 * 8 + i / 8]) << source << i;
      }
    }
  }
}

TEST_F(Training, checksTheArena) {
  std::string two = write(toy::training(2), "two");
  ASSERT_EQ(run(command(two, {"--init", "--steps", "2", "--check-arena"})), 0) << err;
  expectLine(R"(arena   rank 1: touched 964 of 1,024 bytes)");
}

TEST_F(Training, dryRunStopsBeforeTheFirstStep) {
  std::string one = write(toy::training(1), "one");
  ASSERT_EQ(run({one, "--init", "--dry-run"}), 0) << err;
  EXPECT_EQ(out.find("step"), std::string::npos);
}

} // namespace
