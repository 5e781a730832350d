// par-run on a bundle for cuda, from its arguments to its metrics, on stub libraries.
#include "CudaToolFixture.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

using namespace par;

namespace {

/// Contents of a trace.
struct Traced {
  struct Span {
    double begin, end;
  };
  std::multiset<std::string> instructions;                         ///< "rank step id microbatch queue"
  std::map<std::pair<int, std::string>, std::vector<Span>> queues; ///< by rank and queue, in file order

  explicit Traced(const std::string &text) {
    nlohmann::json trace = nlohmann::json::parse(text);
    for (const auto &event : trace["traceEvents"]) {
      if (event["ph"] != "X")
        continue;
      int rank = event["pid"];
      std::string queue = event["tid"];
      double begin = event["ts"], duration = event["dur"];
      instructions.insert(std::to_string(rank) + " " + event["args"].dump() + " " + event["name"].get<std::string>() +
                          " " + queue);
      queues[{rank, queue}].push_back({begin, begin + duration});
    }
  }
};

uint64_t countOf(const std::string &name) {
  auto calls = stub::Machine::get().calls();
  return static_cast<uint64_t>(
      std::count_if(calls.begin(), calls.end(), [&](const stub::Call &call) { return call.name == name; }));
}

class CudaToolTest : public CudaTool {
protected:
  /// Steps in the log, without times.
  std::string losses() const {
    std::string text;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);)
      if (size_t at = line.find("loss "); at != std::string::npos)
        text += line.substr(at, line.find("  ", at) - at) + "\n";
    return text;
  }
};

TEST_F(CudaToolTest, trainsAsOnTheCpu) {
  for (uint32_t ranks : {1u, 2u}) {
    std::vector<std::string> flags = {"--init",      "--text", folder / "text", "--steps", "4",
                                      "--log-every", "1",      "--comm",        "inproc"};
    std::vector<std::string> cpu = flags, cuda = flags;
    cpu.insert(cpu.begin(), write(toy::training(ranks), "cpu" + std::to_string(ranks)));
    cuda.insert(cuda.begin(), write(forCuda(toy::training(ranks)), "cuda" + std::to_string(ranks)));
    ASSERT_EQ(run(cpu), 0) << err;
    std::string expected = losses();
    EXPECT_NE(expected, "");
    ASSERT_EQ(run(cuda), 0) << err;
    EXPECT_EQ(losses(), expected);
    EXPECT_GT(stub::Machine::get().calls().size(), 50u);
  }
}

TEST_F(CudaToolTest, oneRankMayUseNccl) {
  std::string bundle = write(forCuda(toy::training()), "cuda");
  ASSERT_EQ(run({bundle, "--init", "--text", folder / "text", "--steps", "2", "--comm", "nccl"}), 0) << err;
  auto calls = stub::Machine::get().calls();
  EXPECT_TRUE(std::any_of(calls.begin(), calls.end(),
                          [](const stub::Call &call) { return call.name == "ncclCommInitRankConfig"; }));
}

// Times come from events on the streams: those of a queue never run backwards, no instruction is missing, and the
// numbers stay. A run without a trace asks for none.
TEST_F(CudaToolTest, tracesEveryInstructionInTheOrderOfItsQueue) {
  std::vector<std::string> flags = {"--init",      "--text", folder / "text", "--steps", "4",
                                    "--log-every", "1",      "--comm",        "inproc"};
  std::vector<std::string> cpu = flags, cuda = flags;
  cpu.insert(cpu.begin(), write(toy::training(2), "cpu"));
  cpu.insert(cpu.end(), {"--trace", (folder / "cpu.json") + ":2-3"});
  cuda.insert(cuda.begin(), write(forCuda(toy::training(2)), "cuda"));
  cuda.insert(cuda.end(), {"--no-tuning", "--trace", (folder / "cuda.json") + ":2-3"});
  ASSERT_EQ(run(cpu), 0) << err;
  std::string expected = losses();
  ASSERT_EQ(run(cuda), 0) << err;
  EXPECT_EQ(losses(), expected);
  Traced onCpu(fileText(folder / "cpu.json")), onGpu(fileText(folder / "cuda.json"));
  EXPECT_GT(onGpu.instructions.size(), 20u);
  EXPECT_EQ(onGpu.instructions, onCpu.instructions);
  EXPECT_EQ(countOf("cuEventElapsedTime"), 2 * onGpu.instructions.size());
  for (const auto &[place, spans] : onGpu.queues) {
    double last = 1; // of the monotonic clock, so never 0
    for (const Traced::Span &span : spans) {
      EXPECT_GE(span.begin, last) << "rank " << place.first << ", queue " << place.second;
      EXPECT_GT(span.end, span.begin);
      last = span.end;
    }
  }
  stub::Machine::get().reset();
  cuda.resize(cuda.size() - 2);
  ASSERT_EQ(run(cuda), 0) << err;
  EXPECT_EQ(countOf("cuEventElapsedTime"), 0u);
}

TEST_F(CudaToolTest, whatDoesNotSuitAGpuIsRefused) {
  std::string bundle = write(forCuda(toy::training()), "cuda");
  EXPECT_EQ(run({bundle, "--init", "--text", folder / "text", "--comm", "shm"}), 2);
  expectSays("cuda.par: error: --comm shm and a bundle for cuda exclude each other");
}

} // namespace
