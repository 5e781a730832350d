// par-run --bench: times of an entry's calls on made-up data.
#include "ToolFixture.h"

#include "ToyBundles.h"

#include <nlohmann/json.hpp>

using namespace par;

namespace {

TEST_F(Tool, benchTimesTheCallsOfTrain) {
  std::string bundle = write(toy::training()), file = folder / "bench.json";
  ASSERT_EQ(run({bundle, "--init", "--bench=" + file, "--iterations", "7", "--warm-up", "2"}), 0) << err;
  EXPECT_NE(out.find("data made up"), std::string::npos) << out;
  EXPECT_NE(out.find("bench   train: 7 calls of "), std::string::npos) << out;
  EXPECT_NE(out.find("latency p50 "), std::string::npos) << out;
  auto facts = nlohmann::json::parse(fileText(file));
  EXPECT_EQ(facts["entry"], "train");
  EXPECT_EQ(facts["calls"], 7);
  EXPECT_EQ(facts["warm_up"], 2);
  const auto &latency = facts["latency_ms"];
  for (auto [low, high] : {std::pair("min", "p50"), {"p50", "p90"}, {"p90", "p99"}, {"p99", "max"}, {"min", "mean"}})
    EXPECT_LE(latency[low], latency[high]) << low << ", " << high;
  EXPECT_GT(latency["min"], 0);
  EXPECT_GT(facts["load_ms"], 0);
  EXPECT_NEAR(facts["calls_per_s"].get<double>() * latency["mean"].get<double>(), 1000, 1e-6);
  EXPECT_NEAR(facts["rows_per_s"].get<double>(), facts["calls_per_s"].get<double>() * facts["rows"].get<double>(),
              1e-6 * facts["rows_per_s"].get<double>());
}

TEST_F(Tool, benchTakesTheSlowestOfSeveralRanks) {
  std::string bundle = write(toy::pipeline(2), "pipeline"), file = folder / "bench.json";
  ASSERT_EQ(run({bundle, "-n", "4", "--init", "--bench=" + file, "--iterations", "3"}), 0) << err;
  EXPECT_EQ(nlohmann::json::parse(fileText(file))["ranks"], 4);
}

TEST_F(Tool, benchRefusesFlagsOfTrainingAndEvaluation) {
  std::string bundle = write(toy::training());
  EXPECT_EQ(run({bundle, "--bench", "--steps", "3"}), core::exitUsage);
  expectSays("--bench and --steps exclude each other");
  EXPECT_EQ(run({bundle, "--init", "--iterations", "3"}), core::exitUsage);
  expectSays("--iterations needs --bench");
  EXPECT_EQ(run({bundle, "--bench", "--iterations", "3", "--duration", "4"}), core::exitUsage);
  expectSays("--iterations and --duration exclude each other");
  EXPECT_EQ(run({bundle, "--bench", "--device", "sim"}), core::exitUsage);
  expectSays("--bench and --device sim exclude each other");
  EXPECT_EQ(run({bundle, "--init", "--bench=" + folder / "none/bench.json"}), core::exitError);
  expectSays("cannot write");
}

} // namespace
