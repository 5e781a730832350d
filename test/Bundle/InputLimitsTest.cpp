// What the integers of an input may be, by the tables that slices of it look up.
#include "par/Bundle/Bundle.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace par;

namespace {

/// Limits of the input "x" of a step, an i64 tensor of this shape, whose body this is; it must end in a
/// return.
InputLimits limitsOf(const std::string &shape, const std::string &body) {
  MLIRContext context;
  context.loadDialect<ParDialect>();
  std::string type = "tensor<" + shape + "xi64>";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "par.step @eval(%x: " + type +
          ", %t7: tensor<7x2xf32>, %t9: tensor<9x2xf32>) -> tensor<f32> "
          "attributes {inputs = [\"x\", \"a\", \"b\"], outputs = [\"loss\"]} {\n" +
          body + "\n  %c = par.constant dense<0.0> : tensor<f32>\n  par.return %c : tensor<f32>\n}",
      &context);
  EXPECT_TRUE(module);
  return module ? collectInputLimits(*module)["x"] : InputLimits();
}

constexpr const char *column = R"(
  %0 = par.slice %x [0, 0] to [4, 1] by [1, 1] : tensor<4x3xi64> to tensor<4x1xi64>
  %1 = par.reshape %0 : tensor<4x1xi64> to tensor<4xi64>
  %2 = par.gather %t7, %1 dim 0 : tensor<7x2xf32>, tensor<4xi64> to tensor<4x2xf32>)";

TEST(InputLimits, OfOneTable) {
  InputLimits limits =
      limitsOf("4", "%0 = par.gather %t7, %x dim 0 : tensor<7x2xf32>, tensor<4xi64> to tensor<4x2xf32>");
  EXPECT_EQ(limits.limit, 7);
  EXPECT_TRUE(limits.limits.empty());
}

// Of batches of billions of tokens too: nothing is made for each of them.
TEST(InputLimits, OfManyElements) {
  EXPECT_EQ(limitsOf("1099511627776", "%0 = par.gather %t7, %x dim 0 : tensor<7x2xf32>, tensor<1099511627776xi64> to tensor<1099511627776x2xf32>").limit, 7);
  InputLimits limits = limitsOf("1099511627776x3", "%0 = par.slice %x [0, 0] to [4, 1] by [1, 1] : tensor<1099511627776x3xi64> to tensor<4x1xi64>\n"
                                "%1 = par.gather %t7, %0 dim 0 : tensor<7x2xf32>, tensor<4x1xi64> to tensor<4x1x2xf32>");
  EXPECT_EQ(limits.limit, 0);
  EXPECT_TRUE(limits.limits.empty());
}

TEST(InputLimits, OfTheSmallerOfTwo) {
  EXPECT_EQ(limitsOf("4",
                     "%0 = par.gather %t9, %x dim 0 : tensor<9x2xf32>, tensor<4xi64> to tensor<4x2xf32>\n"
                     "%1 = par.gather %t7, %x dim 0 : tensor<7x2xf32>, tensor<4xi64> to tensor<4x2xf32>")
                .limit,
            7);
}

TEST(InputLimits, ThroughOtherWidthsAndCountedFromTheEnd) {
  const char *widened = R"(
  %0 = par.convert %x : tensor<4xi64> to tensor<4xi16>
  %1 = par.constant dense<255> : tensor<4xi16>
  %2 = par.and %0, %1 : tensor<4xi16>
  %3 = par.convert %2 : tensor<4xi16> to tensor<4xi64>
  %4 = par.constant dense<0> : tensor<4xi64>
  %5 = par.compare lt %3, %4 : tensor<4xi64>
  %6 = par.constant dense<7> : tensor<4xi64>
  %7 = par.add %3, %6 : tensor<4xi64>
  %8 = par.select %5, %7, %3 : tensor<4xi1>, tensor<4xi64>
  %9 = par.gather %t7, %8 dim 0 : tensor<7x2xf32>, tensor<4xi64> to tensor<4x2xf32>)";
  EXPECT_EQ(limitsOf("4", widened).limit, 7);
  EXPECT_FALSE(limitsOf("4", widened).fromEnd); // of what is below 0 only low bits are left
  // Who computes with an index besides does not say what it may be.
  EXPECT_EQ(limitsOf("4", std::string(widened) + "\n%10 = par.negate %3 : tensor<4xi64>").limit, 7);
}

/// `%index`, of %x counted from the end of `size`, and with `%size` for other names.
std::string wrapped(const std::string &index, int size) {
  std::string name = "%w" + index.substr(1), type = "tensor<4xi64>";
  return name + "0 = par.constant dense<0> : " + type + "\n" + name + "1 = par.constant dense<" + std::to_string(size) + "> : " +
         type + "\n" + name + "2 = par.compare lt %x, " + name + "0 : " + type + "\n" + name + "3 = par.add %x, " + name +
         "1 : " + type + "\n" + index + " = par.select " + name + "2, " + name + "3, %x : tensor<4xi1>, " + type + "\n";
}

TEST(InputLimits, CountedFromTheEnd) {
  const std::string of7 = "%b = par.gather %t7, %a dim 0 : tensor<7x2xf32>, tensor<4xi64> to tensor<4x2xf32>\n",
                    of9 = "%d = par.gather %t9, %e dim 0 : tensor<9x2xf32>, tensor<4xi64> to tensor<4x2xf32>\n";
  InputLimits limits = limitsOf("4", wrapped("%a", 7) + of7);
  EXPECT_EQ(limits.limit, 7);
  EXPECT_TRUE(limits.fromEnd);
  // Of two tables, each by its size.
  limits = limitsOf("4", wrapped("%a", 7) + wrapped("%e", 9) + of7 + of9);
  EXPECT_EQ(limits.limit, 7);
  EXPECT_TRUE(limits.fromEnd);
  // One of two counts from 0 alone.
  limits = limitsOf("4", wrapped("%a", 7) + of7 + "%d = par.gather %t9, %x dim 0 : tensor<9x2xf32>, tensor<4xi64> to tensor<4x2xf32>");
  EXPECT_EQ(limits.limit, 7);
  EXPECT_FALSE(limits.fromEnd);
  // Something is added to what is below 0, and not the table's rows.
  limits = limitsOf("4", wrapped("%a", 3) + of7);
  EXPECT_EQ(limits.limit, 7);
  EXPECT_FALSE(limits.fromEnd);
  EXPECT_FALSE(limitsOf("4", "%0 = par.negate %x : tensor<4xi64>").fromEnd);
}

TEST(InputLimits, SlicesCountedFromTheEnd) {
  auto sliced = [](int size) {
    return R"(
  %0 = par.slice %x [0, 0] to [4, 1] by [1, 1] : tensor<4x3xi64> to tensor<4x1xi64>
  %1 = par.reshape %0 : tensor<4x1xi64> to tensor<4xi64>
  %2 = par.constant dense<0> : tensor<4xi64>
  %3 = par.compare lt %1, %2 : tensor<4xi64>
  %4 = par.constant dense<)" + std::to_string(size) + R"(> : tensor<4xi64>
  %5 = par.add %1, %4 : tensor<4xi64>
  %6 = par.select %3, %5, %1 : tensor<4xi1>, tensor<4xi64>
  %7 = par.gather %t7, %6 dim 0 : tensor<7x2xf32>, tensor<4xi64> to tensor<4x2xf32>)";
  };
  EXPECT_EQ(limitsOf("4x3", sliced(7)).limit, 7);
  EXPECT_TRUE(limitsOf("4x3", sliced(7)).fromEnd);
  EXPECT_FALSE(limitsOf("4x3", sliced(8)).fromEnd);
  EXPECT_FALSE(limitsOf("4x3", column).fromEnd);
}

TEST(InputLimits, OfEachColumn) {
  InputLimits limits = limitsOf("4x3", std::string(column) + R"(
  %3 = par.transpose %x [1, 0] : tensor<4x3xi64> to tensor<3x4xi64>
  %4 = par.slice %3 [2, 0] to [3, 4] by [1, 1] : tensor<3x4xi64> to tensor<1x4xi64>
  %5 = par.reshape %4 : tensor<1x4xi64> to tensor<4xi64>
  %6 = par.gather %t9, %5 dim 0 : tensor<9x2xf32>, tensor<4xi64> to tensor<4x2xf32>
  %7 = par.negate %x : tensor<4x3xi64>)");
  EXPECT_EQ(limits.limit, 0);
  EXPECT_EQ(limits.dim, 1);
  EXPECT_EQ(limits.limits, (std::vector<int64_t>{7, 0, 9}));
}

TEST(InputLimits, UnreadElementsDoNotMatter) {
  InputLimits limits = limitsOf("4x3", column);
  EXPECT_EQ(limits.limit, 7);
  EXPECT_TRUE(limits.limits.empty());
}

TEST(InputLimits, ThroughPadding) {
  // Labels that the model shifts by one itself.
  EXPECT_EQ(limitsOf("4", R"(
  %0 = par.pad %x low [0] high [1] value -100 : i64 : tensor<4xi64> to tensor<5xi64>
  %1 = par.slice %0 [1] to [5] by [1] : tensor<5xi64> to tensor<4xi64>
  %2 = par.gather %t9, %1 dim 0 : tensor<9x2xf32>, tensor<4xi64> to tensor<4x2xf32>)")
                .limit,
            9);
}

TEST(InputLimits, LabelsMayBeIgnored) {
  InputLimits limits = limitsOf("7", R"(
  %0, %1 = par.cross_entropy %t7, %x ignore 255 : (tensor<7x2xf32>, tensor<7xi64>) -> (tensor<7xf32>, tensor<7xf32>))");
  EXPECT_EQ(limits.limit, 2);
  EXPECT_EQ(limits.ignored, 255);
  EXPECT_FALSE(limitsOf("4x3", column).ignored);
  // Labels that are looked up too may not.
  limits = limitsOf("7", R"(
  %0, %1 = par.cross_entropy %t7, %x ignore 255 : (tensor<7x2xf32>, tensor<7xi64>) -> (tensor<7xf32>, tensor<7xf32>)
  %2 = par.gather %t9, %x dim 0 : tensor<9x2xf32>, tensor<7xi64> to tensor<7x2xf32>)");
  EXPECT_EQ(limits.limit, 2);
  EXPECT_FALSE(limits.ignored);
  // Of slices too: it is not said which of the elements are which.
  limits = limitsOf("9", R"(
  %0 = par.slice %x [0] to [7] by [1] : tensor<9xi64> to tensor<7xi64>
  %1, %2 = par.cross_entropy %t7, %0 ignore 255 : (tensor<7x2xf32>, tensor<7xi64>) -> (tensor<7xf32>, tensor<7xf32>)
  %3 = par.slice %x [7] to [9] by [1] : tensor<9xi64> to tensor<2xi64>
  %4 = par.gather %t9, %3 dim 0 : tensor<9x2xf32>, tensor<2xi64> to tensor<2x2xf32>)");
  EXPECT_FALSE(limits.ignored);
}

TEST(InputLimits, NoneWhereNothingIsLookedUp) {
  EXPECT_EQ(limitsOf("4", "%0 = par.negate %x : tensor<4xi64>").limit, 0);
}

} // namespace
