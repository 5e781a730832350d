// par-run --calibrate --trace: times of a run's trace as rows of a hardware file. Traces are made up: each instruction
// takes 7 us, and the next one begins 3 us after it.
#include "ToolFixture.h"

#include <nlohmann/json.hpp>

#include <regex>

using namespace par;

namespace {

const std::string calibration = "# Measured by par-run --calibrate on 2026-11-29.\n"
                                "name: mine\n"
                                "source: measured by par-run --calibrate\n"
                                "peak:                   # FLOP per microsecond: the fastest matmul\n"
                                "  f32: 1000             # measured\n"
                                "  f64: 500              # measured\n"
                                "memory: 1000            # bytes per microsecond\n"
                                "link: 10                # bytes per microsecond\n"
                                "latency: 7              # ns of one message\n"
                                "launch: 3               # ns\n"
                                "overlap: false          # communication runs beside compute\n"
                                "cores: 2                # that the ranks of a host share\n"
                                "ranks: 0                # of a host\n"
                                "measured:\n"
                                "  kernels: # bytes, flops, ns\n"
                                "    - [12345678, 0, 5]\n"
                                "  wakeups: # ns waited, ns until the other's arrival is seen\n"
                                "    - [4000, 600]\n"
                                "  together: # kind, processes, 1/1000 of the time of one\n"
                                "    - [kernel, 2, 2000]\n"
                                "    - [matmul, 2, 4000]\n"
                                "  launch: # ns\n"
                                "    - [3]\n";

class Refinement : public Tool {
protected:
  std::string hardware, trace;

  void SetUp() override {
    Tool::SetUp();
    hardware = folder / "mine.yaml";
    trace = folder / "trace.json";
    std::ofstream(hardware) << calibration;
  }

  /// Runs four steps and gives their trace other times. Odd ranks come `late` to each instruction.
  std::string traceOf(const format::Bundle &bundle, int64_t late = 0) {
    std::string path = write(bundle);
    EXPECT_EQ(run({path, "--comm", "inproc", "--init", "--text", folder / "text", "--steps", "4", "--trace", trace}), 0)
        << err;
    auto events = nlohmann::ordered_json::parse(fileText(trace));
    std::map<std::pair<int64_t, int64_t>, int64_t> count; // by step and rank
    for (auto &event : events["traceEvents"]) {
      if (event["ph"] != "X")
        continue;
      int64_t rank = event["pid"], step = event["args"]["step"];
      // The fourth step takes longer and does not count, nor does the fastest.
      int64_t unit = step == 4 ? 5 : 1, begin = 10 * unit * count[{step, rank}]++ + rank % 2 * late;
      event["ts"] = 1000000 * step + begin;
      event["dur"] = 7 * unit - rank % 2 * late;
    }
    std::ofstream(trace) << events.dump();
    return path;
  }

  int refine(const std::string &bundle) { return run({bundle, "--calibrate=" + hardware, "--trace", trace}); }

  void expectRow(const std::string &pattern) {
    EXPECT_TRUE(std::regex_search(fileText(hardware), std::regex(pattern))) << pattern << "\n" << fileText(hardware);
  }
};

// Rows of the same work are replaced, others stay, and a second time changes nothing.
TEST_F(Refinement, timesOfATraceBecomeRows) {
  std::string bundle = traceOf(toy::training());
  ASSERT_EQ(refine(bundle), 0) << err;
  EXPECT_TRUE(out.starts_with("calibrate: refined " + hardware + " by ")) << out;
  EXPECT_NE(out.find(" rows of " + trace + " (means of 2 steps)\n"), std::string::npos) << out;
  std::string once = fileText(hardware);
  EXPECT_TRUE(once.starts_with("# Measured by par-run --calibrate on 2026-11-29.\n"
                               "# Refined by par-run --trace of toy.par: means of 2 steps.\nname: mine\n"))
      << once;
  expectRow("\n  feeds: # .*\n    - \\[feed, \\d+, 10000\\]\n");
  expectRow("\n    - \\[12345678, 0, 5\\]\n");
  expectRow("\n  launch: # ns\n    - \\[3\\]\n$");
  ASSERT_EQ(refine(bundle), 0) << err;
  EXPECT_EQ(fileText(hardware), once);
}

// Predictions add what two processes cost each other, and a wake-up after 2 us.
TEST_F(Refinement, takesOffWhatPredictionsAdd) {
  std::string bundle = traceOf(toy::training(2), 2);
  ASSERT_EQ(refine(bundle), 0) << err;
  expectRow("\n    - \\[feed, \\d+, 5000\\]\n");             // 10 us of two at once, which take twice as long
  expectRow("\n    - \\[all_reduce, \\d+, 2, 1, 4700\\]\n"); // 5 us after the last arrival, less 0.3 us
}

// A rank that computes after it has posted a communication looks for the others only then: the compute does not count.
TEST_F(Refinement, computeBesideCommunicationIsNotItsTime) {
  std::string bundle = write(toy::allReduce(2));
  auto event = [](const char *name, const char *cat, const char *queue, int rank, int begin, int end) {
    return nlohmann::json{
        {"name", name},       {"cat", cat},  {"ph", "X"},    {"ts", begin},
        {"dur", end - begin}, {"pid", rank}, {"tid", queue}, {"args", {{"step", 1}, {"microbatch", 0}}}};
  };
  const format::Program program = toy::allReduce(2).programs[0];
  std::string local, collective;
  for (uint32_t block = 0; block < program.blocks.size(); ++block)
    for (size_t i = 0; i < program.blocks[block].instructions.size(); ++i) {
      format::Op op = program.blocks[block].instructions[i].op;
      if (op == format::Op::Copy)
        local = format::instructionId(program, block, i);
      if (op == format::Op::Coll)
        collective = format::instructionId(program, block, i);
    }
  nlohmann::json events = nlohmann::json::array();
  for (int rank : {0, 1}) {
    events.push_back(event(collective.c_str(), "coll", "data", rank, 0, 109));
    events.push_back(event(local.c_str(), "copy", "compute", rank, 1, 100));
  }
  std::ofstream(trace) << nlohmann::json{{"traceEvents", events}}.dump();
  ASSERT_EQ(refine(bundle), 0) << err;
  expectRow("\n    - \\[all_reduce, 32, 2, 1, 9000\\]\n");
}

TEST_F(Refinement, refusesOtherFiles) {
  std::string bundle = traceOf(toy::training());
  auto expectRefused = [&](const std::string &text) {
    std::ofstream(hardware) << text;
    EXPECT_EQ(refine(bundle), core::exitError);
    EXPECT_EQ(fileText(hardware), text);
  };
  std::string foreign = " is none of a file that --calibrate wrote, and --trace refines only such files\n";
  expectRefused("mine");
  EXPECT_EQ(err, hardware + ": error: line 1" + foreign);
  expectRefused(std::regex_replace(calibration, std::regex("measured by"), "copied from"));
  EXPECT_EQ(err, hardware + ": error: line 1" + foreign);
  for (const char *row :
       {"    - [1, fast, 5]\n", "    - [0]\n", "    - []\n", "    - [1, 2\n", "# a comment\n", "\n"}) {
    expectRefused(calibration + row);
    EXPECT_EQ(err, hardware + ": error: line 24" + foreign) << row;
  }
  std::filesystem::remove(hardware);
  EXPECT_EQ(refine(bundle), core::exitError);
  EXPECT_NE(err.find(hardware + ": error: "), std::string::npos) << err;
}

TEST_F(Refinement, refusesOtherTraces) {
  std::string bundle = traceOf(toy::training());
  struct {
    std::string text, says;
  } cases[] = {
      {"{", "is no trace that par-run --trace wrote: no list \"traceEvents\""},
      {"{\"traceEvents\": []}", "is no trace that par-run --trace wrote: no instruction"},
      {"{\"traceEvents\": [7]}", "is no trace that par-run --trace wrote: 7"},
      {"{\"traceEvents\": [{\"ph\": \"X\", \"ts\": 1e300}]}", "is no trace that par-run --trace wrote: {"},
      {R"({"traceEvents": [{"ph": "X", "name": "x/y:1", "ts": 1, "dur": 2, "pid": 0,
            "args": {"step": 1, "microbatch": 0}}]})",
       "is a trace of another bundle: rank 0 of this one has no instruction \"x/y:1\""},
  };
  for (auto &[text, says] : cases) {
    std::ofstream(trace) << text;
    EXPECT_EQ(refine(bundle), core::exitError);
    EXPECT_NE(err.find(trace + ": error: " + says), std::string::npos) << err;
  }
  std::ofstream(hardware) << std::regex_replace(calibration, std::regex("cores: 2"), "cores: 1");
  EXPECT_EQ(refine(write(toy::training(2), "two")), core::exitError);
  EXPECT_EQ(err, trace + ": error: is of 2 ranks on 1 cores, where times tell of others' turns too; trace as many "
                         "ranks as cores\n");
  EXPECT_EQ(fileText(hardware).find("Refined"), std::string::npos);
}

} // namespace
