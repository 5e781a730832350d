// Limits of an input's integers, by the tables in which slices of it are looked up.
#include "par/Phases/Bundle/Bundle.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace par;

namespace {

std::string describe(const InputLimits &limits) {
  if (!limits)
    return "other in other places";
  std::string text;
  for (const format::Limits &run : *limits) {
    text += (text.empty() ? "" : ", ") + (run.count == 1 ? "" : std::to_string(run.count) + " x ");
    text += run.limit == 0
                ? "any"
                : "[" + std::to_string(run.fromEnd ? -run.limit : 0) + ", " + std::to_string(run.limit) + ")";
    text += run.ignored ? " or " + std::to_string(*run.ignored) : "";
  }
  return text;
}

/// Limits of the input "x" of a step, an i64 tensor of this shape, whose body this is; it must end in a
/// return.
std::string limitsOf(const std::string &shape, const std::string &body) {
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
  return module ? describe(collectInputLimits(*module)["x"]) : "";
}

constexpr const char *column = R"(
  %0 = par.slice %x [0, 0] to [4, 1] by [1, 1] : tensor<4x3xi64> to tensor<4x1xi64>
  %1 = par.reshape %0 : tensor<4x1xi64> to tensor<4xi64>
  %2 = par.gather %t7, %1 dim 0 : tensor<7x2xf32>, tensor<4xi64> to tensor<4x2xf32>)";

TEST(InputLimits, OfOneTable) {
  EXPECT_EQ(limitsOf("4", "%0 = par.gather %t7, %x dim 0 : tensor<7x2xf32>, tensor<4xi64> to tensor<4x2xf32>"),
            "[0, 7)");
}

// Batches of billions of tokens are supported, too: no element has a limit of its own.
TEST(InputLimits, OfManyElements) {
  std::string many = "1099511627776";
  EXPECT_EQ(limitsOf(many, "%0 = par.gather %t7, %x dim 0 : tensor<7x2xf32>, tensor<" + many + "xi64> to tensor<" +
                               many + "x2xf32>"),
            "[0, 7)");
  std::string slice = " = par.slice %x [0, 0] to [4, 1] by [1, 1] : tensor<" + many + "x3xi64> to tensor<4x1xi64>\n";
  std::string one =
      "%0" + slice + "%1 = par.gather %t7, %0 dim 0 : tensor<7x2xf32>, tensor<4x1xi64> to tensor<4x1x2xf32>\n";
  EXPECT_EQ(limitsOf(many + "x3", one), "[0, 7)");
  EXPECT_EQ(limitsOf(many + "x3",
                     one + "%2" + slice +
                         "%3 = par.gather %t9, %2 dim 0 : tensor<9x2xf32>, tensor<4x1xi64> to tensor<4x1x2xf32>"),
            "other in other places");
}

// Samples of a batch are asked alike, so that one of them tells about all: a batch of any size is followed.
TEST(InputLimits, OfOneSample) {
  auto columns = [](const std::string &batch) {
    std::string slice = " by [1, 1] : tensor<" + batch + "x3xi64> to tensor<" + batch + "x1xi64>\n";
    std::string gather = " dim 0 : tensor<7x2xf32>, tensor<" + batch + "x1xi64> to tensor<" + batch + "x1x2xf32>\n";
    return limitsOf(batch + "x3", "%0 = par.slice %x [0, 0] to [" + batch + ", 1]" + slice +
                                      "%1 = par.slice %x [0, 2] to [" + batch + ", 3]" + slice +
                                      "%2 = par.gather %t7, %0" + gather + "%3 = par.gather %t7, %1" + gather);
  };
  EXPECT_EQ(columns("4"), "[0, 7), any, [0, 7)");
  EXPECT_EQ(columns("1099511627776"), columns("4"));
}

// The first sample is another than the others where rows are padded, cut off or counted backwards.
TEST(InputLimits, OfRowsThatDiffer) {
  EXPECT_EQ(limitsOf("4x3", "%0 = par.slice %x [2, 0] to [4, 3] by [1, 1] : tensor<4x3xi64> to tensor<2x3xi64>\n"
                            "%1 = par.gather %t7, %0 dim 0 : tensor<7x2xf32>, tensor<2x3xi64> to tensor<2x3x2xf32>"),
            "6 x any, 6 x [0, 7)");
  EXPECT_EQ(limitsOf("2x3", "%0 = par.transpose %x [1, 0] : tensor<2x3xi64> to tensor<3x2xi64>\n"
                            "%1 = par.slice %0 [0, 1] to [3, 2] by [1, 1] : tensor<3x2xi64> to tensor<3x1xi64>\n"
                            "%2 = par.gather %t7, %1 dim 0 : tensor<7x2xf32>, tensor<3x1xi64> to tensor<3x1x2xf32>"),
            "3 x any, 3 x [0, 7)");
}

TEST(InputLimits, OfTheSmallerOfTwo) {
  EXPECT_EQ(limitsOf("4", "%0 = par.gather %t9, %x dim 0 : tensor<9x2xf32>, tensor<4xi64> to tensor<4x2xf32>\n"
                          "%1 = par.gather %t7, %x dim 0 : tensor<7x2xf32>, tensor<4xi64> to tensor<4x2xf32>"),
            "[0, 7)");
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
  EXPECT_EQ(limitsOf("4", widened), "[0, 7)"); // integers below 0 keep only low bits
  // Other arithmetic on an index gives no limit.
  EXPECT_EQ(limitsOf("4", std::string(widened) + "\n%10 = par.negate %3 : tensor<4xi64>"), "[0, 7)");
}

/// `%index`, of %x counted from the end of `size`, and with `%size` for other names.
std::string wrapped(const std::string &index, int size) {
  std::string name = "%w" + index.substr(1), type = "tensor<4xi64>";
  return name + "0 = par.constant dense<0> : " + type + "\n" + name + "1 = par.constant dense<" + std::to_string(size) +
         "> : " + type + "\n" + name + "2 = par.compare lt %x, " + name + "0 : " + type + "\n" + name +
         "3 = par.add %x, " + name + "1 : " + type + "\n" + index + " = par.select " + name + "2, " + name +
         "3, %x : tensor<4xi1>, " + type + "\n";
}

TEST(InputLimits, CountedFromTheEnd) {
  const std::string of7 = "%b = par.gather %t7, %a dim 0 : tensor<7x2xf32>, tensor<4xi64> to tensor<4x2xf32>\n",
                    of9 = "%d = par.gather %t9, %e dim 0 : tensor<9x2xf32>, tensor<4xi64> to tensor<4x2xf32>\n";
  EXPECT_EQ(limitsOf("4", wrapped("%a", 7) + of7), "[-7, 7)");
  // Two tables, each with its own size.
  EXPECT_EQ(limitsOf("4", wrapped("%a", 7) + wrapped("%e", 9) + of7 + of9), "[-7, 7)");
  // One of two counts only from 0.
  EXPECT_EQ(limitsOf("4", wrapped("%a", 7) + of7 +
                              "%d = par.gather %t9, %x dim 0 : tensor<9x2xf32>, tensor<4xi64> to tensor<4x2xf32>"),
            "[0, 7)");
  // The number added to integers below 0 is not the number of the table's rows.
  EXPECT_EQ(limitsOf("4", wrapped("%a", 3) + of7), "[0, 7)");
}

TEST(InputLimits, SlicesCountedFromTheEnd) {
  auto sliced = [](int size) {
    return R"(
  %0 = par.slice %x [0, 0] to [4, 1] by [1, 1] : tensor<4x3xi64> to tensor<4x1xi64>
  %1 = par.reshape %0 : tensor<4x1xi64> to tensor<4xi64>
  %2 = par.constant dense<0> : tensor<4xi64>
  %3 = par.compare lt %1, %2 : tensor<4xi64>
  %4 = par.constant dense<)" +
           std::to_string(size) + R"(> : tensor<4xi64>
  %5 = par.add %1, %4 : tensor<4xi64>
  %6 = par.select %3, %5, %1 : tensor<4xi1>, tensor<4xi64>
  %7 = par.gather %t7, %6 dim 0 : tensor<7x2xf32>, tensor<4xi64> to tensor<4x2xf32>)";
  };
  EXPECT_EQ(limitsOf("4x3", sliced(7)), "[-7, 7), 2 x any");
  EXPECT_EQ(limitsOf("4x3", sliced(8)), "[0, 7), 2 x any");
}

TEST(InputLimits, OfEachColumn) {
  EXPECT_EQ(limitsOf("4x3", std::string(column) + R"(
  %3 = par.transpose %x [1, 0] : tensor<4x3xi64> to tensor<3x4xi64>
  %4 = par.slice %3 [2, 0] to [3, 4] by [1, 1] : tensor<3x4xi64> to tensor<1x4xi64>
  %5 = par.reshape %4 : tensor<1x4xi64> to tensor<4xi64>
  %6 = par.gather %t9, %5 dim 0 : tensor<9x2xf32>, tensor<4xi64> to tensor<4x2xf32>
  %7 = par.negate %x : tensor<4x3xi64>)"),
            "[0, 7), any, [0, 9)");
}

// Along several dims, and in rows that are not all alike.
TEST(InputLimits, OfEachPlace) {
  auto look = [](const std::string &number, const std::string &from, const std::string &to, const std::string &table) {
    return "%a" + number + " = par.slice %x " + from + " to " + to +
           " by [1, 1, 1] : tensor<2x2x2xi64> to tensor<2x1x1xi64>\n%b" + number + " = par.gather %t" + table + ", %a" +
           number + " dim 0 : tensor<" + table + "x2xf32>, tensor<2x1x1xi64> to tensor<2x1x1x2xf32>\n";
  };
  EXPECT_EQ(limitsOf("2x2x2", look("0", "[0, 0, 0]", "[2, 1, 1]", "7") + look("1", "[0, 0, 1]", "[2, 1, 2]", "9") +
                                  look("2", "[0, 1, 1]", "[2, 2, 2]", "7")),
            "[0, 7), [0, 9), any, [0, 7)");
  EXPECT_EQ(limitsOf("4", "%0 = par.slice %x [1] to [3] by [1] : tensor<4xi64> to tensor<2xi64>\n"
                          "%1 = par.gather %t9, %0 dim 0 : tensor<9x2xf32>, tensor<2xi64> to tensor<2x2xf32>"),
            "any, 2 x [0, 9), any");
}

TEST(InputLimits, ThroughPadding) {
  // Labels that the model shifts by one itself.
  EXPECT_EQ(limitsOf("4", R"(
  %0 = par.pad %x low [0] high [1] value -100 : i64 : tensor<4xi64> to tensor<5xi64>
  %1 = par.slice %0 [1] to [5] by [1] : tensor<5xi64> to tensor<4xi64>
  %2 = par.gather %t9, %1 dim 0 : tensor<9x2xf32>, tensor<4xi64> to tensor<4x2xf32>)"),
            "any, 3 x [0, 9)");
}

TEST(InputLimits, LabelsMayBeIgnored) {
  const char *loss = R"(
  %0, %1 = par.cross_entropy %t7, %x ignore 255 : (tensor<7x2xf32>, tensor<7xi64>) -> (tensor<7xf32>, tensor<7xf32>))";
  EXPECT_EQ(limitsOf("7", loss), "[0, 2) or 255");
  // Labels that are looked up too may not.
  EXPECT_EQ(limitsOf("7", std::string(loss) +
                              "\n%2 = par.gather %t9, %x dim 0 : tensor<9x2xf32>, tensor<7xi64> to tensor<7x2xf32>"),
            "[0, 2)");
  // Nor those that two losses ignore as two numbers.
  EXPECT_EQ(limitsOf("7", std::string(loss) + "\n%2, %3 = par.cross_entropy %t7, %x ignore -1 : (tensor<7x2xf32>, "
                                              "tensor<7xi64>) -> (tensor<7xf32>, tensor<7xf32>)"),
            "[0, 2)");
  // Slices have a limit for each element.
  EXPECT_EQ(limitsOf("9", R"(
  %0 = par.slice %x [0] to [7] by [1] : tensor<9xi64> to tensor<7xi64>
  %1, %2 = par.cross_entropy %t7, %0 ignore 255 : (tensor<7x2xf32>, tensor<7xi64>) -> (tensor<7xf32>, tensor<7xf32>)
  %3 = par.slice %x [6] to [9] by [1] : tensor<9xi64> to tensor<3xi64>
  %4 = par.gather %t9, %3 dim 0 : tensor<9x2xf32>, tensor<3xi64> to tensor<3x2xf32>)"),
            "6 x [0, 2) or 255, [0, 2), 2 x [0, 9)");
}

/// `%b`, of `from` with `number` replaced by 1, which looks up 9 rows.
std::string replaced(const std::string &from, int number) {
  return "%n = par.constant dense<" + std::to_string(number) +
         "> : tensor<7xi64>\n%one = par.constant dense<1> : tensor<7xi64>\n"
         "%is = par.compare eq " +
         from + ", %n : tensor<7xi64>\n%b = par.select %is, %one, " + from +
         " : tensor<7xi1>, tensor<7xi64>\n%g = par.gather %t9, %b dim 0 : tensor<9x2xf32>, tensor<7xi64> to "
         "tensor<7x2xf32>\n";
}

TEST(InputLimits, OneNumberMayBeReplaced) {
  auto loss = [](int ignored) {
    return "%l, %m = par.cross_entropy %t7, %x ignore " + std::to_string(ignored) +
           " : (tensor<7x2xf32>, tensor<7xi64>) -> (tensor<7xf32>, tensor<7xf32>)\n";
  };
  EXPECT_EQ(limitsOf("7", replaced("%x", -100)), "[0, 9) or -100");
  EXPECT_EQ(limitsOf("7", replaced("%x", 3)), "[0, 9)");
  // Labels that are decoded too: both take the number, or one does not.
  EXPECT_EQ(limitsOf("7", replaced("%x", -100) + loss(-100)), "[0, 2) or -100");
  EXPECT_EQ(limitsOf("7", replaced("%x", -1) + loss(-100)), "[0, 2)");
  EXPECT_EQ(limitsOf("7", replaced("%x", -1) +
                              "%o = par.gather %t7, %x dim 0 : tensor<7x2xf32>, tensor<7xi64> to tensor<7x2xf32>"),
            "[0, 7)");
  // One that another counts from the end; one that was counted before.
  EXPECT_EQ(limitsOf("7", replaced("%x", -1) + R"(
  %0 = par.constant dense<0> : tensor<7xi64>
  %1 = par.compare lt %x, %0 : tensor<7xi64>
  %2 = par.constant dense<9> : tensor<7xi64>
  %3 = par.add %x, %2 : tensor<7xi64>
  %4 = par.select %1, %3, %x : tensor<7xi1>, tensor<7xi64>
  %5 = par.gather %t9, %4 dim 0 : tensor<9x2xf32>, tensor<7xi64> to tensor<7x2xf32>)"),
            "[0, 9) or -1");
  EXPECT_EQ(limitsOf("7", R"(
  %0 = par.constant dense<0> : tensor<7xi64>
  %1 = par.compare lt %x, %0 : tensor<7xi64>
  %2 = par.constant dense<9> : tensor<7xi64>
  %3 = par.add %x, %2 : tensor<7xi64>
  %4 = par.select %1, %3, %x : tensor<7xi1>, tensor<7xi64>
)" + replaced("%4", -100)),
            "[-9, 9)");
  // Told the other way round.
  EXPECT_EQ(limitsOf("7", R"(
  %n = par.constant dense<-1> : tensor<7xi64>
  %one = par.constant dense<1> : tensor<7xi64>
  %is = par.compare eq %x, %n : tensor<7xi64>
  %not = par.not %is : tensor<7xi1>
  %b = par.select %not, %x, %one : tensor<7xi1>, tensor<7xi64>
  %g = par.gather %t9, %b dim 0 : tensor<9x2xf32>, tensor<7xi64> to tensor<7x2xf32>)"),
            "[0, 9) or -1");
  // A number that is replaced where it is not the index's own.
  EXPECT_EQ(limitsOf("7", R"(
  %n = par.constant dense<-1> : tensor<7xi64>
  %y = par.negate %x : tensor<7xi64>
  %is = par.compare eq %y, %n : tensor<7xi64>
  %b = par.select %is, %n, %x : tensor<7xi1>, tensor<7xi64>
  %g = par.gather %t9, %b dim 0 : tensor<9x2xf32>, tensor<7xi64> to tensor<7x2xf32>)"),
            "");
}

TEST(InputLimits, ThroughConcatenations) {
  // Labels that follow a start, as a decoder's ids do: the last is none.
  EXPECT_EQ(limitsOf("4", R"(
  %0 = par.constant dense<0> : tensor<1xi64>
  %1 = par.slice %x [0] to [3] by [1] : tensor<4xi64> to tensor<3xi64>
  %2 = par.concat %0, %1 dim 0 : (tensor<1xi64>, tensor<3xi64>) -> tensor<4xi64>
  %3 = par.gather %t9, %2 dim 0 : tensor<9x2xf32>, tensor<4xi64> to tensor<4x2xf32>)"),
            "3 x [0, 9), any");
  // Concatenated with itself, with only the second half read.
  EXPECT_EQ(limitsOf("2x2", R"(
  %0 = par.concat %x, %x dim 1 : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x4xi64>
  %1 = par.slice %0 [0, 3] to [2, 4] by [1, 1] : tensor<2x4xi64> to tensor<2x1xi64>
  %2 = par.gather %t7, %1 dim 0 : tensor<7x2xf32>, tensor<2x1xi64> to tensor<2x1x2xf32>)"),
            "any, [0, 7)");
}

TEST(InputLimits, NoneWhereNothingIsLookedUp) { EXPECT_EQ(limitsOf("4", "%0 = par.negate %x : tensor<4xi64>"), ""); }

} // namespace
