// Requests of --generate, and the choice of tokens. Whole runs: test/Models/generate.test.
#include "../../../runtime/src/app/Decoder.h"
#include "../../../runtime/src/app/Requests.h"
#include "../../../runtime/src/app/Sampling.h"
#include "ToolFixture.h"
#include "par/files/Random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace par;

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// How often each token is drawn at 10,000 places of a sequence.
template <size_t N>
std::array<int, N> draw(const std::array<float, N> &logits, const core::Sampling &sampling) {
  std::array<int, N> counts{};
  for (uint64_t position = 0; position < 10000; ++position)
    ++counts[static_cast<size_t>(core::chooseToken(logits, sampling, 3, position))];
  return counts;
}

TEST(Sampling, temperatureZeroTakesTheFirstOfTheLargest) {
  EXPECT_EQ(core::chooseToken(std::array{1.f, 5.f, nan, 5.f}, {}, 0, 0), 1);
  EXPECT_EQ(core::chooseToken(std::array{nan, -2.f}, {}, 0, 0), 1);
}

// 8 : 4 : 2 : 1 at temperature 1, 64 : 16 : 4 : 1 at 1/2.
TEST(Sampling, drawsByProbability) {
  const std::array<float, 4> logits = {0, 3 * std::log(2.f), std::log(2.f), 2 * std::log(2.f)};
  std::array<int, 4> counts = draw(logits, {1, 0, 1, 7});
  EXPECT_NEAR(counts[1], 10000 * 8 / 15, 150);
  EXPECT_NEAR(counts[3], 10000 * 4 / 15, 150);
  EXPECT_NEAR(counts[2], 10000 * 2 / 15, 150);
  EXPECT_NEAR(counts[0], 10000 * 1 / 15, 150);
  counts = draw(logits, {0.5, 0, 1, 7});
  EXPECT_NEAR(counts[1], 10000 * 64 / 85, 150);
  EXPECT_NEAR(counts[3], 10000 * 16 / 85, 150);
}

TEST(Sampling, keepsTheLargest) {
  const std::array<float, 4> logits = {0, 3 * std::log(2.f), std::log(2.f), 2 * std::log(2.f)};
  std::array<int, 4> counts = draw(logits, {1, 2, 1, 7});
  EXPECT_EQ(counts[0] + counts[2], 0);
  EXPECT_NEAR(counts[1], 10000 * 2 / 3, 150);
  counts = draw(logits, {1, 0, 0.7, 7}); // 8/15 is less, and 12/15 is more
  EXPECT_EQ(counts[0] + counts[2], 0);
  EXPECT_NEAR(counts[3], 10000 / 3, 150);
  EXPECT_EQ(draw(logits, {1, 0, 0, 7})[1], 10000);
}

/// The choice by its definition: all tokens sorted, and sums from the largest on.
int64_t chooseBySorting(const std::vector<float> &logits, const core::Sampling &sampling, uint64_t position) {
  std::vector<int64_t> tokens;
  for (size_t i = 0; i < logits.size(); ++i)
    if (!std::isnan(logits[i]))
      tokens.push_back(static_cast<int64_t>(i));
  auto logit = [&](int64_t token) { return double(logits[size_t(token)]); };
  std::stable_sort(tokens.begin(), tokens.end(), [&](int64_t a, int64_t b) { return logit(a) > logit(b); });
  if (sampling.topK)
    tokens.resize(std::min<size_t>(tokens.size(), sampling.topK));
  std::vector<long double> sums = {0};
  for (int64_t token : tokens)
    sums.push_back(sums.back() + std::exp((static_cast<long double>(logit(token)) - logit(tokens[0])) /
                                          static_cast<long double>(sampling.temperature)));
  size_t kept = 1;
  while (kept < tokens.size() && sums[kept] < sums.back() * sampling.topP)
    ++kept;
  double uniform = core::randomUniform(sampling.seed, 0, core::randomStream("sampling"), uint32_t(position));
  size_t chosen = 0;
  while (chosen + 1 < kept && sums[chosen + 1] <= sums[kept] * uniform)
    ++chosen;
  return tokens[chosen];
}

// Nothing is sorted for top_k and top_p, and what is chosen is the same. The order of equal logits is that of tokens.
TEST(Sampling, choosesAsSortingWould) {
  std::mt19937_64 engine(11);
  auto uniform = [&] { return std::uniform_real_distribution<double>(0, 1)(engine); };
  for (int round = 0; round < 400; ++round) {
    std::vector<float> logits(1 + engine() % (round % 100 == 0 ? 40000 : 300));
    double spread = std::exp(6 * uniform() - 2);
    for (float &logit : logits) {
      logit = static_cast<float>(spread * std::normal_distribution<double>()(engine));
      logit = round % 3 == 0 ? std::round(logit) : logit; // ties
      logit = engine() % 50 == 0 ? nan : engine() % 50 == 0 ? -std::numeric_limits<float>::infinity() : logit;
    }
    logits[engine() % logits.size()] = static_cast<float>(spread); // not all are NaN
    core::Sampling sampling{0.2 + 2 * uniform(), round % 2 ? 1 + engine() % 400 : 0, uniform(), engine()};
    if (sampling.topK == 0)
      sampling.topP = std::min(sampling.topP, 0.999);
    for (uint64_t position = 0; position < 10; ++position)
      ASSERT_EQ(core::chooseToken(logits, sampling, 0, position), chooseBySorting(logits, sampling, position))
          << "round " << round << " of " << logits.size() << " logits, top_k " << sampling.topK << ", top_p "
          << sampling.topP;
  }
}

// The number that is drawn belongs to seed, sequence and position, whatever was drawn before.
TEST(Sampling, followsFromSeedSequenceAndPosition) {
  const std::array<float, 4> logits = {1, 1, 1, 1};
  auto text = [&](uint64_t seed, uint64_t sequence) {
    std::string tokens;
    for (uint64_t position = 0; position < 20; ++position)
      tokens += char('0' + core::chooseToken(logits, {1, 0, 1, seed}, sequence, position));
    return tokens;
  };
  EXPECT_EQ(text(1, 0), text(1, 0));
  EXPECT_NE(text(1, 0), text(1, 1));
  EXPECT_NE(text(1, 0), text(2, 0));
}

std::string refusal(const std::string &line) {
  try {
    core::readRequest(line, "r.jsonl:1", 16, 96);
  } catch (const core::Failure &failure) {
    return failure.what();
  }
  return "";
}

TEST(Requests, areRead) {
  std::string line = R"({"prompts": [[1, 2], [95]], "max_new_tokens": 3, "stop": [0], )"
                     R"("temperature": 0.5, "top_k": 4, "top_p": 0.9, "seed": 8})";
  core::Request request = core::readRequest(line, "", 16, 96);
  EXPECT_EQ(request.prompts, (std::vector<std::vector<int64_t>>{{1, 2}, {95}}));
  EXPECT_EQ(request.newTokens, 3u);
  EXPECT_EQ(request.stops, std::vector<int64_t>{0});
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_EQ(request.sampling.topK, 4u);
  EXPECT_EQ(request.sampling.topP, 0.9);
  EXPECT_EQ(request.sampling.seed, 8u);
}

TEST(Requests, areRefused) {
  EXPECT_EQ(refusal("hello"), "r.jsonl:1: error: a line takes an object of JSON, not other text");
  EXPECT_EQ(refusal("{}"), "r.jsonl:1: error: \"prompts\" takes a list of prompts, each a list of tokens, not none");
  EXPECT_EQ(refusal(R"({"prompts": [[]]})"), "r.jsonl:1: error: a prompt takes a list of tokens, not []");
  EXPECT_EQ(refusal(R"({"prompts": [[96]]})"), "r.jsonl:1: error: a prompt takes tokens from 0 to 95, not 96");
  EXPECT_EQ(refusal(R"({"prompts": [[1]], "top_p": 2})"),
            "r.jsonl:1: error: \"top_p\" takes a number from 0 to 1, not 2");
  EXPECT_EQ(refusal(R"({"prompts": [[1]], "max_new_tokens": 0})"),
            "r.jsonl:1: error: \"max_new_tokens\" takes a whole number from 1 to 2^53, not 0");
  EXPECT_EQ(refusal(R"({"prompts": [[1]], "top": 2})"),
            "r.jsonl:1: error: a request takes prompts, max_new_tokens, stop, temperature, top_k, top_p and seed, not "
            "\"top\"");
  EXPECT_EQ(refusal(R"({"prompts": [[1, 2, 3]], "max_new_tokens": 14})"),
            "r.jsonl:1: error: a prompt of 3 tokens and 14 new ones do not fit into the cache of 16 slots; ask for "
            "fewer, or compile with --set dims.cache=17");
}

std::string lack(const format::Bundle &bundle) {
  try {
    core::shapeOfDecoder(bundle, "x.par");
  } catch (const core::Failure &failure) {
    return failure.what();
  }
  return "";
}

// A decoder is told by its entries, inputs, outputs and caches.
TEST(Decoders, areTold) {
  const std::string no = "x.par: error: --generate needs a decoder that par.export_decoder wrote; this bundle lacks ";
  format::Bundle bundle = toy::training();
  EXPECT_EQ(lack(bundle), no + "an entry \"predict\"");
  for (format::Program &program : bundle.programs)
    program.entries.front().name = "predict";
  format::Manifest &manifest = bundle.manifest;
  manifest.inputs.clear();
  EXPECT_EQ(lack(bundle), no + "an input \"input_ids\" of sequences x tokens, i64");
  for (const char *name : {"input_ids", "position", "count"})
    manifest.inputs.push_back({name, format::DType::I64, {3, 1}, true, {}});
  manifest.inputs.push_back({"mask", format::DType::I64, {3, 1}, true, {}});
  EXPECT_EQ(lack(bundle), no + "data for its input \"mask\"");
  manifest.inputs.pop_back();
  EXPECT_EQ(lack(bundle), no + "a cache \"past.0\" that calls carry on");
  format::Tensor cache;
  cache.name = "past.0";
  cache.kind = format::TensorKind::Counter;
  cache.stored = {3, 2, 16, 8};
  manifest.tensors.push_back(cache);
  EXPECT_EQ(lack(bundle), no + "an output \"logits\" of sequences x vocabulary, f32");
  format::Output logits;
  logits.name = "logits";
  logits.shape = {3, 96};
  logits.microbatched = true;
  manifest.outputs.push_back(logits);
  manifest.batch = 3;
  core::DecoderShape shape = core::shapeOfDecoder(bundle, "x.par");
  EXPECT_EQ(shape.rows, 3u);
  EXPECT_EQ(shape.slots, 16u);
  EXPECT_EQ(shape.vocabulary, 96);
  EXPECT_EQ(shape.prefill, 0u);
}

TEST_F(Tool, generatesWithDecodersOnly) {
  std::string toy = write(toy::training());
  EXPECT_EQ(run({toy, "--init", "--generate", "-"}), 1);
  EXPECT_EQ(err, toy + ": error: --generate needs a decoder that par.export_decoder wrote; this bundle lacks an entry "
                       "\"predict\"\n");
  EXPECT_EQ(run({toy, "--init", "--generate", "-", "--text", "t"}), 2);
  EXPECT_EQ(err, "par-run: error: --generate and --text exclude each other\n");
}

} // namespace
