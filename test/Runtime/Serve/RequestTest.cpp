// Requests taken apart: frames of a connection, arrays of JSON and safetensors; whole, mutated, and wrong.
#include "par/messages/Failure.h"
#include "serve/Answer.h"
#include "serve/JsonArray.h"
#include "serve/Listener.h"
#include "serve/Prompts.h"
#include "serve/Queue.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

using namespace par;
using namespace par::serve;
using format::DType;

namespace {

class Requests : public testing::Test {
protected:
  Requests() {
    manifest.inputs = {{"x", DType::F32, {4, 2}},
                       {"flag", DType::I1, {4}},
                       {"small", DType::I8, {4}},
                       {"all", DType::F64, {3}, /*microbatched=*/false}};
    manifest.outputs = {{"y", DType::F32, {4, 2}, /*metric=*/false}};
    takes = {&manifest, {0, 1, 2, 3}, {&manifest.outputs[0]}, /*rows=*/4, /*gathers=*/true};
  }

  /// The mistake in a request; "" for nothing.
  std::string mistake(const Frame &frame, Request &request) {
    try {
      RequestReader(takes).read(frame, request);
    } catch (const core::Failure &failure) {
      return failure.what();
    }
    return "";
  }
  std::string mistake(const std::string &json) {
    Request request;
    return mistake({Form::Json, json}, request);
  }

  format::Manifest manifest;
  Takes takes;
};

constexpr const char *good = R"({"id": "a\"b", "inputs": {"x": [[1, 2.5], [-3, "NaN"]], "flag": [true, 0],
  "small": [-128, 127], "all": [1e300, "Infinity", "-Infinity"]}})";

template <typename T>
std::vector<T> valuesOf(const std::vector<std::byte> &bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST_F(Requests, haveArraysInTheInputsTypes) {
  Request request;
  ASSERT_EQ(mistake({Form::Json, good}, request), "");
  EXPECT_EQ(request.id, R"("a\"b")");
  EXPECT_EQ(request.rows, 2u);
  std::vector<float> x = valuesOf<float>(request.arrays[0]);
  EXPECT_EQ(std::vector(x.begin(), x.end() - 1), (std::vector<float>{1, 2.5f, -3}));
  EXPECT_TRUE(std::isnan(x.back()));
  EXPECT_EQ(valuesOf<uint8_t>(request.arrays[1]), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(valuesOf<int8_t>(request.arrays[2]), (std::vector<int8_t>{-128, 127}));
  EXPECT_EQ(valuesOf<double>(request.arrays[3]), (std::vector<double>{1e300, HUGE_VAL, -HUGE_VAL}));
}

TEST_F(Requests, areToldTheirMistakes) {
  auto with = [](const char *flag, const char *small) {
    return std::string(R"({"inputs": {"x": [[1, 2]], "all": [1, 2, 3], "flag": [)") + flag + R"(], "small": [)" +
           small + "]}}";
  };
  EXPECT_EQ(mistake(with("true", "1")), "");
  EXPECT_EQ(mistake(with("2", "1")), "flag: error: \"flag\" takes true and false, not 2");
  EXPECT_EQ(mistake(with("true", "128")), "small: error: \"small\" takes whole numbers of i8, not 128");
  EXPECT_EQ(mistake("[]"), "request: error: is no object of JSON: {\"inputs\": {NAME: nested lists}}");
  EXPECT_EQ(mistake(R"({"inputs": {"x": [[1, 2], [3]]}})"),
            "x: error: is no array: of two lists beside each other one has 2 elements, and the other 1");
  std::string rows = R"({"inputs": {"x": [[1,2],[1,2],[1,2],[1,2],[1,2]]}})";
  EXPECT_EQ(mistake(rows), "x: error: a request has 1 to 4 rows, the bundle's batch, and this one has 5; send it in "
                           "parts, or compile with --set batch=5");
  takes.gathers = false;
  EXPECT_EQ(
      mistake(with("true", "1")),
      "flag: error: results of this bundle depend on all rows of a batch: a request has 4 rows, and this one has 1");
}

/// Some bytes other ones, gone, or twice.
std::string mutated(std::string bytes, std::mt19937 &random) {
  for (unsigned times = 1 + random() % 4; times > 0 && !bytes.empty(); --times) {
    size_t at = random() % bytes.size(), length = 1 + random() % 9;
    if (unsigned way = random() % 3; way == 0)
      bytes[at] = "{}[]\"\\,:0e-\n\xff"[random() % 14];
    else if (way == 1)
      bytes.erase(at, length);
    else
      bytes.insert(at, bytes.substr(at, length));
  }
  return bytes;
}

// Each ends as a request or with a sentence, in however many pieces it comes.
TEST_F(Requests, mayBeBroken) {
  Request whole;
  ASSERT_EQ(mistake({Form::Json, good}, whole), "");
  Answer file;
  for (size_t i = 0; i < takes.inputs.size(); ++i) {
    const format::Input &input = manifest.inputs[i];
    std::vector<int64_t> shape = input.shape;
    if (input.microbatched)
      shape[0] = 2;
    file.results.push_back({input.name, input.type, shape, whole.arrays[i]});
  }
  whole.form = Form::Safetensors;
  std::string line(good);
  std::ranges::replace(line, '\n', ' ');
  std::mt19937 random(1);
  size_t answered = 0, refused = 0;
  for (const std::string &sound : {framed(Form::Json, line), encode(whole, file)})
    for (int turn = 0; turn < 4000; ++turn) {
      std::string bytes = turn ? mutated(sound, random) : sound;
      FrameReader frames(RequestReader(takes).maxBytes());
      try {
        for (size_t at = 0, size = 0; at < bytes.size(); at += size) {
          frames.add(std::string_view(bytes).substr(at, size = 1 + random() % bytes.size()));
          while (std::optional<Frame> frame = frames.next()) {
            Request request;
            std::string said = mistake(*frame, request);
            ++(said.empty() ? answered : refused);
            ASSERT_TRUE(turn || said.empty()) << said;
          }
        }
        frames.end();
      } catch (const core::Failure &) {
        ++refused;
      }
    }
  EXPECT_GT(answered, 100u);
  EXPECT_GT(refused, 4000u);
}

class Prompts : public testing::Test {
protected:
  Prompts() : reader(core::DecoderShape{.rows = 2, .slots = 16, .prefill = 4, .vocabulary = 100}) {}

  std::string mistake(const Frame &frame, Request &request) {
    try {
      reader.read(frame, request);
    } catch (const core::Failure &failure) {
      return failure.what();
    }
    return "";
  }
  std::string mistake(const std::string &json) {
    Request request;
    return mistake({Form::Json, json}, request);
  }

  PromptReader reader;
};

constexpr const char *prompts = R"({"id": 7, "prompts": [[1, 2], [3], [99]], "max_new_tokens": 5, "stream": true,
  "temperature": 0.5, "top_k": 3, "top_p": 0.9, "seed": 11, "stop": [0, 4]})";

TEST_F(Prompts, haveAllThatGenerateTakesAndAnId) {
  Request request;
  ASSERT_EQ(mistake({Form::Json, prompts}, request), "");
  EXPECT_EQ(request.id, "7");
  EXPECT_TRUE(request.streams);
  EXPECT_EQ(request.rows, 2u); // of a call, which has no more
  EXPECT_EQ(request.decoding.prompts, (std::vector<std::vector<int64_t>>{{1, 2}, {3}, {99}}));
  EXPECT_EQ(request.decoding.newTokens, 5u);
  EXPECT_EQ(request.decoding.stops, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(request.decoding.sampling.topK, 3u);
  EXPECT_EQ(request.decoding.sampling.seed, 11u);
}

TEST_F(Prompts, areToldTheirMistakes) {
  EXPECT_EQ(mistake(R"({"prompts": [[1]], "stream": 1})"), "request: error: \"stream\" takes true or false, not 1");
  EXPECT_EQ(mistake("{]"), "request: error: is no object of JSON: {\"prompts\": [[1, 2]]}");
  EXPECT_EQ(mistake(R"({"prompts": [[100]]})"), "request: error: a prompt takes tokens from 0 to 99, not 100");
  Request request;
  EXPECT_EQ(mistake({Form::Safetensors, ""}, request),
            "request: error: a decoder takes lines of JSON: {\"prompts\": [[1, 2]]}");
  std::string deep = "{\"prompts\": " + std::string(100, '[') + std::string(100, ']') + "}";
  EXPECT_EQ(mistake(deep), "request: error: lists in more than 70 lists are no array");
}

TEST_F(Prompts, mayBeBroken) {
  std::mt19937 random(3);
  size_t taken = 0, refused = 0;
  for (int turn = 0; turn < 8000; ++turn)
    ++(mistake(mutated(prompts, random)).empty() ? taken : refused);
  EXPECT_GT(taken, 100u);
  EXPECT_GT(refused, 4000u);
}

TEST(Answers, areWholeOrStreamed) {
  Request request;
  request.id = "\"a\"";
  request.decoding.prompts = {{1, 2}, {3}};
  Answer answer;
  answer.continuations = {{{5, 6}, "length"}, {{7}, "stop"}};
  EXPECT_EQ(encode(request, answer),
            "{\"id\":\"a\",\"tokens\":[[5,6],[7]],\"ends\":[\"length\",\"stop\"],\"prompt_tokens\":3}\n");
  request.streams = true;
  EXPECT_EQ(encodeToken(request, 0, 5, ""), "{\"id\":\"a\",\"prompt\":0,\"token\":5}\n");
  EXPECT_EQ(encodeToken(request, 1, 7, "stop"), "{\"id\":\"a\",\"prompt\":1,\"token\":7,\"end\":\"stop\"}\n");
  EXPECT_EQ(encode(request, answer), "{\"id\":\"a\",\"done\":{\"prompt_tokens\":3,\"tokens\":3}}\n");
}

TEST(Queues, passOverClientsThatHaveGone) {
  Queue queue(/*rows=*/2, /*gathers=*/true, {});
  auto gone = std::make_shared<Pending>(), here = std::make_shared<Pending>();
  gone->isAbandoned = true;
  here->request.rows = gone->request.rows = 1;
  queue.add(gone);
  queue.add(here);
  EXPECT_EQ(queue.takeNow(), here);
  EXPECT_EQ(queue.takeNow(), nullptr);
}

TEST(Frames, comeApartWhereverTheyAreCut) {
  std::string bytes = "\n{\"a\": 1}\r\n" + framed(Form::Safetensors, std::string("{\n\0\n", 4)) + "{}";
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    FrameReader frames(100);
    std::vector<std::string> bodies;
    auto take = [&](std::string_view part) {
      frames.add(part);
      while (std::optional<Frame> frame = frames.next())
        bodies.push_back(frame->body);
    };
    take(std::string_view(bytes).substr(0, cut));
    take(std::string_view(bytes).substr(cut));
    frames.end();
    take("");
    EXPECT_EQ(bodies, (std::vector<std::string>{"{\"a\": 1}\r", std::string("{\n\0\n", 4), "{}"})) << cut;
    EXPECT_FALSE(frames.hasBytes());
  }
}

TEST(Arrays, keepTheirBitsInJson) {
  std::mt19937 random(2);
  std::vector<float> values(3000);
  for (float &value : values) {
    uint32_t bits = random();
    std::memcpy(&value, &bits, sizeof value);
  }
  std::vector<int64_t> shape{3, 1000}, found;
  auto *bytes = reinterpret_cast<const std::byte *>(values.data());
  std::string text;
  writeArray(text, DType::F32, shape, {bytes, values.size() * sizeof(float)});
  format::Input input{"x", DType::F32, shape};
  std::vector<float> back = valuesOf<float>(readArray(nlohmann::json::parse(text), input, found));
  EXPECT_EQ(found, shape);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_TRUE(std::isnan(values[i]) ? std::isnan(back[i]) : values[i] == back[i]) << i;
}

TEST(Listeners, tellWhyTheyCannotListen) {
  auto why = [](const std::string &address) -> std::string {
    try {
      Listener listener(address);
    } catch (const core::Failure &failure) {
      return failure.what();
    }
    return "";
  };
  std::string longName(200, 'a');
  EXPECT_EQ(why(longName),
            longName + ": error: is a longer name than a socket can have, 107 bytes; give a shorter one");
  EXPECT_EQ(why("/no/such/folder/s"),
            "/no/such/folder/s: error: cannot make a socket there: No such file or directory");
  EXPECT_EQ(why("tcp:80a"),
            "par-run: error: --serve tcp:PORT takes a port from 0 (any that is free) to 65535, not \"80a\"");
  Listener first("tcp:0");
  std::string port = first.name().substr(first.name().find(':') + 1);
  EXPECT_EQ(why("tcp:" + port), first.name() + ": error: cannot listen: Address already in use");
}

} // namespace
