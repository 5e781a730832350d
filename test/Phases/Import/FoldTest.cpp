// Folding of static ONNX values against ONNX's own definitions.
#include "par/Phases/Import/Fold.h"
#include "par/Phases/Import/Families.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include "gtest/gtest.h"

#include <random>

using namespace par;
using onnx::ElementType;

namespace {

StaticTensor ints(llvm::ArrayRef<int64_t> shape, std::vector<int64_t> values) {
  return StaticTensor::ofInts(ElementType::I64, shape, std::move(values));
}

onnx::Attribute attribute(const char *name, int64_t value) {
  onnx::Attribute result;
  result.name = name;
  result.kind = onnx::Attribute::Int;
  result.i = value;
  return result;
}

struct FoldTest : testing::Test {
  llvm::FailureOr<StaticTensor> fold(const char *op, std::vector<StaticTensor> inputs,
                                     std::vector<onnx::Attribute> attributes = {}) {
    onnx::Node node;
    node.opType = op;
    node.attributes = std::move(attributes);
    std::vector<const StaticTensor *> pointers;
    for (const StaticTensor &input : inputs)
      pointers.push_back(&input);
    return Folder(20).fold(node, pointers);
  }

  void expect(llvm::FailureOr<StaticTensor> result, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> values) {
    ASSERT_TRUE(succeeded(result));
    EXPECT_EQ(result->getShape(), shape);
    llvm::SmallVector<int64_t> elements = result->toInts();
    EXPECT_EQ(llvm::ArrayRef(elements), values);
  }
};

TEST_F(FoldTest, IntegersDivideTowardsZeroAndWrapAround) {
  expect(fold("Div", {ints({3}, {-7, 7, 5}), ints({}, {2})}), {3}, {-3, 3, 2});
  expect(fold("Mod", {ints({3}, {-7, 7, -6}), ints({}, {3})}), {3}, {2, 1, 0});
  expect(fold("Mod", {ints({2}, {-7, 7}), ints({}, {3})}, {attribute("fmod", 1)}), {2}, {-1, 1});
  expect(fold("Div", {ints({}, {INT64_MIN}), ints({}, {-1})}), {}, {INT64_MIN});
  expect(fold("Add", {ints({}, {INT64_MAX}), ints({}, {1})}), {}, {INT64_MIN});
  expect(fold("Div", {ints({}, {1}), ints({}, {0})}), {}, {0});
}

TEST_F(FoldTest, ElementwiseOpsBroadcast) {
  expect(fold("Add", {ints({2, 1}, {10, 20}), ints({3}, {1, 2, 3})}), {2, 3}, {11, 12, 13, 21, 22, 23});
  expect(fold("Less", {ints({2, 1}, {1, 2}), ints({1, 3}, {1, 2, 3})}), {2, 3}, {0, 1, 1, 0, 0, 1});
  EXPECT_TRUE(failed(fold("Add", {ints({2}, {1, 2}), ints({3}, {1, 2, 3})})));
}

TEST_F(FoldTest, FloatsRoundAfterEveryOp) {
  auto third = fold("Div", {StaticTensor::scalar(ElementType::F32, 1), StaticTensor::scalar(ElementType::F32, 3)});
  ASSERT_TRUE(succeeded(third));
  EXPECT_EQ(third->floatAt(0), double(1.0f / 3.0f));
  StaticTensor half = StaticTensor::scalar(ElementType::F16, 0.1);
  EXPECT_EQ(half.floatAt(0), 0.0999755859375);
}

TEST_F(FoldTest, SlicesClampAndCountFromTheEnd) {
  StaticTensor five = ints({5}, {0, 1, 2, 3, 4});
  expect(fold("Slice", {five, ints({1}, {-3}), ints({1}, {INT64_MAX})}), {3}, {2, 3, 4});
  expect(fold("Slice", {five, ints({1}, {INT64_MIN}), ints({1}, {-2})}), {3}, {0, 1, 2});
  expect(fold("Slice", {five, ints({1}, {4}), ints({1}, {INT64_MIN}), ints({1}, {0}), ints({1}, {-2})}), {3},
         {4, 2, 0});
  expect(fold("Slice", {five, ints({1}, {3}), ints({1}, {2})}), {0}, {});
  EXPECT_TRUE(failed(fold("Slice", {five, ints({1}, {0}), ints({1}, {2}), ints({1}, {1})})));
  EXPECT_TRUE(failed(fold("Slice", {five, ints({1}, {0}), ints({1}, {2}), ints({1}, {0}), ints({1}, {0})})));
}

TEST_F(FoldTest, ReshapeInfersAndRefuses) {
  StaticTensor six = ints({2, 3}, {1, 2, 3, 4, 5, 6});
  expect(fold("Reshape", {six, ints({2}, {-1, 2})}), {3, 2}, {1, 2, 3, 4, 5, 6});
  expect(fold("Reshape", {six, ints({2}, {0, -1})}), {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(failed(fold("Reshape", {six, ints({2}, {-1, 4})})));
  EXPECT_TRUE(failed(fold("Reshape", {six, ints({2}, {-1, -1})})));
  EXPECT_TRUE(failed(fold("Reshape", {six, ints({1}, {7})})));
}

TEST_F(FoldTest, RangeTransposeConcatGather) {
  expect(fold("Range", {ints({}, {10}), ints({}, {0}), ints({}, {-3})}), {4}, {10, 7, 4, 1});
  expect(fold("Transpose", {ints({2, 3}, {1, 2, 3, 4, 5, 6})}), {3, 2}, {1, 4, 2, 5, 3, 6});
  expect(fold("Concat", {ints({1, 2}, {1, 2}), ints({2, 2}, {3, 4, 5, 6})}, {attribute("axis", 0)}), {3, 2},
         {1, 2, 3, 4, 5, 6});
  expect(fold("Gather", {ints({3, 2}, {1, 2, 3, 4, 5, 6}), ints({2}, {-1, 0})}), {2, 2}, {5, 6, 1, 2});
  EXPECT_TRUE(failed(fold("Gather", {ints({3}, {1, 2, 3}), ints({1}, {3})})));
  EXPECT_TRUE(failed(fold("Range", {ints({}, {0}), ints({}, {INT64_MAX}), ints({}, {1})})));
}

TEST_F(FoldTest, CumulativeSums) {
  StaticTensor row = ints({2, 3}, {1, 2, 3, 4, 5, 6});
  expect(fold("CumSum", {row, ints({}, {1})}), {2, 3}, {1, 3, 6, 4, 9, 15});
  expect(fold("CumSum", {row, ints({}, {-1})}, {attribute("exclusive", 1)}), {2, 3}, {0, 1, 3, 0, 4, 9});
  expect(fold("CumSum", {row, ints({}, {0})}, {attribute("reverse", 1)}), {2, 3}, {5, 7, 9, 4, 5, 6});
}

TEST_F(FoldTest, GatherNdWithAndWithoutBatchDims) {
  StaticTensor data = ints({2, 3}, {1, 2, 3, 4, 5, 6});
  expect(fold("GatherND", {data, ints({2, 2}, {0, 2, 1, -3})}), {2}, {3, 4});
  expect(fold("GatherND", {data, ints({2, 1}, {2, 0})}, {attribute("batch_dims", 1)}), {2}, {3, 4});
  EXPECT_TRUE(failed(fold("GatherND", {data, ints({1, 2}, {2, 0})})));
}

// A value that is constant along the batch stays a broadcast of one row through any number of ops.
TEST_F(FoldTest, BatchedMaskIsStoredOnce) {
  StaticTensor positions = ints({1, 4}, {0, 1, 2, 3}).expanded({512, 4});
  EXPECT_EQ(positions.getStoredCount(), 4);
  std::vector<int64_t> batch(512);
  for (int64_t i = 0; i < 512; ++i)
    batch[i] = i;
  StaticTensor rows = ints({512, 1, 1}, batch).expanded({512, 4, 1});
  StaticTensor columns = ints({1, 4, 1}, {0, 1, 2, 3}).expanded({512, 4, 1});
  auto indices = fold("Concat", {rows, columns}, {attribute("axis", 2)});
  ASSERT_TRUE(succeeded(indices));
  auto gathered = fold("GatherND", {positions, *indices});
  ASSERT_TRUE(succeeded(gathered));
  EXPECT_EQ(gathered->getShape(), llvm::ArrayRef<int64_t>({512, 4}));
  EXPECT_EQ(gathered->getStored(), llvm::ArrayRef<int64_t>({1, 4}));
  auto mask = fold("LessOrEqual", {gathered->reshaped({512, 1, 4}), gathered->reshaped({512, 4, 1})});
  ASSERT_TRUE(succeeded(mask));
  EXPECT_EQ(mask->getStored(), llvm::ArrayRef<int64_t>({1, 4, 4}));
}

TEST_F(FoldTest, ReshapeKeepsWhatItDoesNotMix) {
  StaticTensor mask = ints({1, 2, 2}, {1, 0, 1, 1}).expanded({8, 2, 2});
  EXPECT_EQ(mask.reshaped({8, 4}).getStored(), llvm::ArrayRef<int64_t>({1, 4}));
  EXPECT_EQ(mask.reshaped({2, 4, 1, 2, 2}).getStored(), llvm::ArrayRef<int64_t>({1, 1, 1, 2, 2}));
  llvm::SmallVector<int64_t> mixed = mask.reshaped({32}).toInts();
  EXPECT_EQ(llvm::ArrayRef(mixed).take_back(4), llvm::ArrayRef<int64_t>({1, 0, 1, 1}));
}

TEST_F(FoldTest, ReluKeepsNan) {
  auto result = fold("Relu", {StaticTensor::ofFloats(ElementType::F32, {2}, {std::nan(""), -1})});
  ASSERT_TRUE(succeeded(result));
  EXPECT_TRUE(std::isnan(result->floatAt(0)));
  EXPECT_EQ(result->floatAt(1), 0);
}

TEST_F(FoldTest, NumbersThatNoIntegerHolds) {
  for (double value : {std::nan(""), double(INFINITY), -1e30})
    EXPECT_EQ(StaticTensor::ofFloats(ElementType::F32, {1}, {value}).toInts()[0], 0) << value;
  auto power = fold("Pow", {ints({1}, {0}), ints({1}, {-1})});
  ASSERT_TRUE(succeeded(power));
  EXPECT_EQ(power->toInts()[0], 0);
}

TEST_F(FoldTest, ReshapeOfNoElements) {
  StaticTensor none = ints({1, 1}, {7}).expanded({0, 2});
  EXPECT_EQ(none.reshaped({1, 0, 2}).getShape(), llvm::ArrayRef<int64_t>({1, 0, 2}));
  EXPECT_TRUE(none.reshaped({0}).toInts().empty());
}

TEST_F(FoldTest, TooManyElementsAreNotFolded) {
  std::vector<int64_t> many(1 << 13);
  for (size_t i = 0; i < many.size(); ++i)
    many[i] = i;
  EXPECT_TRUE(failed(fold("Add", {ints({1 << 13, 1}, many), ints({1 << 13}, many)})));
}

/// A tensor of which each dim may be stored once, with indices below `size` counted from either end, and now and then
/// one out of range.
StaticTensor randomColumns(std::mt19937 &random, llvm::ArrayRef<int64_t> shape, int64_t size) {
  Shape stored(shape);
  for (int64_t &dim : stored)
    dim = random() % 2 ? dim : 1;
  StaticTensor result(ElementType::I64, shape, stored);
  for (int64_t i = 0; i < result.getStoredCount(); ++i)
    result.setInt(i, random() % 16 == 0 ? size : int64_t(random() % (2 * size)) - size);
  return result;
}

// The walk over elements that Concat and GatherND do is the reference.
TEST_F(FoldTest, ColumnsGatherAsJoinedIndicesDo) {
  unsigned gathered = 0, refused = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    auto dims = [&](size_t rank) {
      Shape shape;
      for (size_t i = 0; i < rank; ++i)
        shape.push_back(1 + random() % 4);
      return shape;
    };
    size_t rank = 1 + random() % 4, batch = std::min<size_t>(random() % 2, rank - 1);
    Shape data = dims(rank), outer = dims(batch + random() % 3);
    for (size_t i = 0; i < batch; ++i)
      outer[i] = data[i];
    StaticTensor value = randomColumns(random, data, 1000);
    std::vector<StaticTensor> columns;
    int64_t depth = 1 + random() % (rank - batch), size = *std::min_element(data.begin(), data.end());
    for (int64_t left = depth; left > 0;) {
      Shape shape(outer);
      shape.push_back(1 + random() % left);
      left -= shape.back();
      columns.push_back(randomColumns(random, shape, size));
    }
    onnx::Node concat, gather;
    concat.opType = "Concat", concat.attributes = {attribute("axis", -1)};
    gather.opType = "GatherND", gather.attributes = {attribute("batch_dims", batch)};
    std::vector<const StaticTensor *> pointers;
    for (const StaticTensor &column : columns)
      pointers.push_back(&column);
    llvm::FailureOr<StaticTensor> joined = Folder(20).fold(concat, pointers);
    ASSERT_TRUE(succeeded(joined));
    llvm::FailureOr<StaticTensor> slow = Folder(20).fold(gather, {&value, &*joined});
    llvm::FailureOr<StaticTensor> fast = gatherByColumns(gather, &value, concat, pointers);
    ASSERT_EQ(succeeded(fast), succeeded(slow));
    ++(succeeded(fast) ? gathered : refused);
    if (succeeded(fast)) {
      EXPECT_EQ(fast->getShape(), slow->getShape());
      EXPECT_EQ(fast->getStored(), slow->getStored());
      EXPECT_EQ(fast->toInts(), slow->toInts());
    }
  }
  EXPECT_GT(gathered, 500u);
  EXPECT_GT(refused, 20u);
}

TEST_F(FoldTest, ColumnsOfOtherDimsAreNotGathered) {
  onnx::Node concat, gather;
  concat.attributes = {attribute("axis", 0)};
  StaticTensor data = ints({2}, {3, 4}), column = ints({2, 1}, {0, 1});
  EXPECT_TRUE(failed(gatherByColumns(gather, &data, concat, {&column})));
  concat.attributes = {attribute("axis", -1)};
  EXPECT_TRUE(failed(gatherByColumns(gather, nullptr, concat, {&column})));
  EXPECT_TRUE(failed(gatherByColumns(gather, &data, concat, {&column, &column})));
  expect(gatherByColumns(gather, &data, concat, {&column}), {2}, {3, 4});
}

TEST_F(FoldTest, UnsqueezeAndSqueeze) {
  expect(fold("Unsqueeze", {ints({2}, {1, 2}), ints({2}, {0, -1})}), {1, 2, 1}, {1, 2});
  expect(fold("Squeeze", {ints({1, 2, 1}, {1, 2}), ints({1}, {0})}), {2, 1}, {1, 2});
  expect(fold("Squeeze", {ints({1, 2, 1}, {1, 2})}), {2}, {1, 2});
  EXPECT_TRUE(failed(fold("Unsqueeze", {ints({2}, {1, 2}), ints({2}, {0, 0})})));
  EXPECT_TRUE(failed(fold("Squeeze", {ints({2}, {1, 2}), ints({1}, {0})})));
}

TEST_F(FoldTest, UnknownOpsAreLeftAlone) { EXPECT_TRUE(failed(fold("Conv", {ints({1}, {1})}))); }

} // namespace

// Joins the operators that Import reads and folds. With two rows in one family the later one is read: no file has them.
TEST(Families, ASecondRowEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  using Table = llvm::StringMap<int>;
  auto first = +[](Table &table) { table["Relu"] = 1; };
  auto second = +[](Table &table) { table["Elu"] = 2; };
  EXPECT_EQ(joinFamilies<int>({first, second}).size(), 2u);
  EXPECT_DEATH(joinFamilies<int>({first, second, first}), "operator Relu is registered twice");
}

TEST(Families, NoFileHasTwoRowsOfAName) {
  std::error_code failure;
  unsigned rows = 0;
  for (llvm::sys::fs::recursive_directory_iterator file(PAR_SOURCE_DIR "/lib/Phases/Import", failure), end; file != end;
       file.increment(failure)) {
    if (file->type() == llvm::sys::fs::file_type::directory_file)
      continue;
    auto text = llvm::MemoryBuffer::getFile(file->path());
    ASSERT_TRUE(text) << file->path();
    llvm::StringSet<> names;
    for (llvm::StringRef rest = (*text)->getBuffer(); !rest.empty();) {
      rest = rest.split("table[\"").second;
      llvm::StringRef name = rest.split('"').first;
      rows += !name.empty();
      EXPECT_TRUE(name.empty() || names.insert(name).second) << file->path() << " registers " << name.str() << " twice";
    }
  }
  EXPECT_GT(rows, 200u);
}
