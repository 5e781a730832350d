// Commands that ranks get for arrays that a caller feeds for the next run, and ahead for the one after it.
#include "api/Caller.h"
#include "TrainingToy.h"
#include "par/messages/Failure.h"

#include <functional>
#include <gtest/gtest.h>

using namespace par;
using namespace par::api;

namespace {

/// Ranks that do nothing but keep the last command, as text and as it came.
class Recorder final : public Ranks {
public:
  Recorder(format::Bundle given, Command &command, int &runs)
      : content(std::move(given)), places(content.manifest), memory(places.bytes()), last(command), runs(runs) {
    places.lieIn(memory);
  }
  const format::Bundle &bundle() const override { return content; }
  const Exchange &exchange() const override { return places; }
  Answer perform(const Command &command) override {
    last = command;
    ++runs;
    return {};
  }
  Answer start() override { return {}; }
  void end() override {}

private:
  format::Bundle content;
  Exchange places;
  std::vector<std::byte> memory;
  Command &last;
  int &runs;
};

class CallerTest : public testing::Test {
protected:
  using Batch = std::vector<int64_t>; // of both inputs, i64[2, 16]
  static constexpr size_t elements = 32;

  static core::FedArray arrayOf(const Batch &batch, size_t input) {
    return {format::DType::I64, {2, 16}, reinterpret_cast<const std::byte *>(batch.data() + input * elements)};
  }
  void feed(const Batch &batch) {
    caller.feeding().feed("input_ids", arrayOf(batch, 0));
    caller.feeding().feed("labels", arrayOf(batch, 1));
  }
  void feedAhead(const Batch &batch) {
    caller.feeding().feedAhead("input_ids", arrayOf(batch, 0));
    caller.feeding().feedAhead("labels", arrayOf(batch, 1));
  }
  /// Whether the last command ran on this batch, and whether ranks had been told of it.
  void expectRun(const Batch &batch, bool isTold) const {
    ASSERT_EQ(last.fed.size(), 2u);
    for (size_t i : {0, 1})
      EXPECT_EQ(last.fed[i].second.data, arrayOf(batch, i).data);
    EXPECT_EQ(last.ahead.isTold, isTold);
  }
  std::string messageOf(const std::function<void()> &body) const {
    try {
      body();
    } catch (const core::Failure &failure) {
      return failure.what();
    }
    return "";
  }

  Command last;
  int runs = 0;
  Caller caller{std::make_unique<Recorder>(toy::training(), last, runs)};
  Batch a = Batch(2 * elements, 1), b = Batch(2 * elements, 2), c = Batch(2 * elements, 3);
};

TEST_F(CallerTest, arraysFedAheadAreThoseOfTheNextRun) {
  feed(a);
  for (const Batch *next : {&b, &c, &a}) {
    feedAhead(*next);
    caller.run("train");
    EXPECT_EQ(last.ahead.fed[1].second.data, arrayOf(*next, 1).data);
    uint64_t place = last.ahead.place, number = last.ahead.number;
    if (next == &a)
      break;
    const Batch *after = next == &b ? &c : &a;
    feedAhead(*after);
    caller.run("train");
    expectRun(*next, true);
    EXPECT_EQ(last.ahead.place, 1 - place);
    EXPECT_EQ(last.ahead.number, number + 1);
    caller.feeding().feed("input_ids", arrayOf(*next, 0)); // instead of what was fed ahead
    caller.feeding().feed("labels", arrayOf(*next, 1));
  }
}

// Ranks take rows at the place of what they were told for rows that they have read: others must not lie there.
TEST_F(CallerTest, otherArraysThanThoseToldLieElsewhere) {
  feed(a);
  feedAhead(b);
  caller.run("train");
  uint64_t told = 1 - last.ahead.place;
  feed(c);
  caller.run("train");
  expectRun(c, false);
  EXPECT_NE(last.ahead.place, told);
  EXPECT_TRUE(last.ahead.fed.empty());
}

TEST_F(CallerTest, anotherEntryMayTakeThem) {
  feed(a);
  feedAhead(b);
  caller.run("train");
  caller.run("eval"); // the rows that were read are of train
  expectRun(b, false);
  EXPECT_NE(messageOf([&] { caller.run("train"); }).find("no array for"), std::string::npos);
}

TEST_F(CallerTest, halfABatchIsFedButNotTold) {
  feed(a);
  caller.feeding().feedAhead("labels", arrayOf(b, 1));
  caller.run("train");
  EXPECT_TRUE(last.ahead.fed.empty());
  EXPECT_NE(messageOf([&] { caller.run("train"); }).find("no array for \"input_ids\""), std::string::npos);
}

// Memory of a call that failed may be gone by the next one.
TEST_F(CallerTest, aFaultForgetsAllArrays) {
  Batch outside(2 * elements, 200);
  std::string missing = "no array for \"input_ids\" i64[2, 16], \"labels\"";
  auto nothingIsLeft = [&] {
    int before = runs;
    EXPECT_NE(messageOf([&] { caller.run("train"); }).find(missing), std::string::npos);
    EXPECT_EQ(runs, before);
  };
  feed(a);
  EXPECT_NE(messageOf([&] { caller.feeding().feed("labels", {format::DType::F32, {2, 16}, nullptr}); }), "");
  nothingIsLeft();
  feed(outside);
  feedAhead(b);
  EXPECT_NE(messageOf([&] { caller.run("train"); }).find("200"), std::string::npos);
  nothingIsLeft();
  feed(a);
  feedAhead(outside);
  caller.run("train");
  uint64_t told = 1 - last.ahead.place;
  EXPECT_NE(messageOf([&] { caller.run("train"); }).find("200"), std::string::npos);
  nothingIsLeft();
  feed(c);
  caller.run("train");
  expectRun(c, false);
  EXPECT_NE(last.ahead.place, told);
}

// Arrays that are forgotten on purpose, told or not: none is left, and others lie elsewhere than those told.
TEST_F(CallerTest, forgetsWhatWasFedAndAhead) {
  feed(a);
  feedAhead(b);
  caller.run("train");
  uint64_t told = 1 - last.ahead.place;
  feedAhead(a);
  caller.feeding().forget();
  caller.feeding().forget();
  EXPECT_NE(messageOf([&] { caller.run("train"); }).find("no array for \"input_ids\""), std::string::npos);
  feed(c);
  caller.run("train");
  expectRun(c, false);
  EXPECT_NE(last.ahead.place, told);
  EXPECT_TRUE(last.ahead.fed.empty());
}

TEST_F(CallerTest, callersAgreeOnAllButWhatTheyKnowAhead) {
  feed(a);
  feedAhead(b);
  caller.run("train");
  Command told = last, untold = last;
  untold.ahead = {};
  EXPECT_NE(encode(told), encode(untold));
  EXPECT_EQ(agreedPart(encode(told)), agreedPart(encode(untold)));
  Command read = decodeCommand(encode(told));
  EXPECT_EQ(read.ahead.number, told.ahead.number);
  EXPECT_EQ(read.ahead.place, told.ahead.place);
  EXPECT_EQ(read.ahead.fed.size(), 2u);
  EXPECT_EQ(read.ahead.fed[1].second.shape, told.ahead.fed[1].second.shape);
}

} // namespace
