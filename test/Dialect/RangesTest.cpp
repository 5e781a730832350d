// Ranges of integers, by the ops that make them.
#include "par/Dialect/Ranges.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace par;

namespace {

/// The range of %y, a tensor of this type that the body computes from %x: tensor<4xi64>, %b: tensor<4xi1> and %f:
/// tensor<4xf32>.
std::pair<int64_t, int64_t> rangeOfY(const std::string &type, const std::string &body) {
  MLIRContext context;
  DialectRegistry registry;
  registerDialect(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<ParDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "par.step @eval(%x: tensor<4xi64>, %b: tensor<4xi1>, %f: tensor<4xf32>) -> " + type + " {\n" +
          "%zero = par.constant dense<0> : tensor<4xi64>\n%five = par.constant dense<5> : tensor<4xi64>\n" + body +
          "\npar.return %y : " + type + "\n}",
      &context);
  EXPECT_TRUE(module) << body;
  if (!module)
    return {};
  IntegerRange range = rangeOf((*module->getOps<StepOp>().begin()).getBlock().getTerminator()->getOperand(0));
  return {range.low, range.high};
}

using Range = std::pair<int64_t, int64_t>;
constexpr const char *i64 = "tensor<4xi64>";

TEST(Ranges, OfWhatIsFedNothingIsKnown) {
  EXPECT_EQ(rangeOfY(i64, "%y = par.add %x, %zero : tensor<4xi64>"), Range(INT64_MIN, INT64_MAX));
  EXPECT_EQ(rangeOfY("tensor<4xi8>", "%y = par.convert %f : tensor<4xf32> to tensor<4xi8>"), Range(-128, 127));
  EXPECT_EQ(rangeOfY("tensor<4xi1>", "%y = par.not %b : tensor<4xi1>"), Range(0, 1));
}

TEST(Ranges, Remainders) {
  std::string rest = "%r = par.remainder %x, %five : tensor<4xi64>\n";
  EXPECT_EQ(rangeOfY(i64, rest + "%y = par.add %r, %zero : tensor<4xi64>"), Range(-4, 4));
  // Python's %: the sign of the divisor.
  EXPECT_EQ(rangeOfY(i64, rest +
                              "%n = par.compare lt %r, %zero : tensor<4xi64>\n%a = par.add %r, %five : tensor<4xi64>\n"
                              "%y = par.select %n, %a, %r : tensor<4xi1>, tensor<4xi64>"),
            Range(0, 4));
}

TEST(Ranges, ClampedByComparisons) {
  std::string low =
      "%n = par.compare lt %x, %zero : tensor<4xi64>\n%l = par.select %n, %zero, %x : tensor<4xi1>, tensor<4xi64>\n";
  EXPECT_EQ(rangeOfY(i64, low + "%h = par.compare gt %l, %five : tensor<4xi64>\n"
                                "%y = par.select %h, %five, %l : tensor<4xi1>, tensor<4xi64>"),
            Range(0, 5));
  EXPECT_EQ(rangeOfY(i64, low + "%h = par.compare le %l, %five : tensor<4xi64>\n"
                                "%y = par.select %h, %l, %five : tensor<4xi1>, tensor<4xi64>"),
            Range(0, 5));
  // The other way round it has the larger.
  EXPECT_EQ(rangeOfY(i64, low + "%h = par.compare ge %l, %five : tensor<4xi64>\n"
                                "%y = par.select %h, %l, %five : tensor<4xi1>, tensor<4xi64>"),
            Range(5, INT64_MAX));
  // Chosen by something else.
  EXPECT_EQ(
      rangeOfY(
          i64,
          "%n = par.compare lt %five, %x : tensor<4xi64>\n%y = par.select %n, %zero, %x : tensor<4xi1>, tensor<4xi64>"),
      Range(INT64_MIN, INT64_MAX));
}

TEST(Ranges, PositionsOfAMask) {
  // RoBERTa's positions: a masked token has position 1.
  EXPECT_EQ(rangeOfY("tensor<4xi64>", R"(
    %m = par.convert %b : tensor<4xi1> to tensor<4xi64>
    %c = par.cumulative sum %m dim 0 : tensor<4xi64>
    %p = par.multiply %c, %m : tensor<4xi64>
    %one = par.constant dense<1> : tensor<4xi64>
    %y = par.add %p, %one : tensor<4xi64>)"),
            Range(1, 5));
  EXPECT_EQ(rangeOfY("tensor<i64>", R"(
    %m = par.convert %b : tensor<4xi1> to tensor<4xi64>
    %y = par.reduce sum %m dims [0] : tensor<4xi64> to tensor<i64>)"),
            Range(0, 4));
}

TEST(Ranges, IndicesThatSort) {
  std::string sorted =
      "%i = par.iota dim 0 : tensor<4xi64>\n%p = par.sorted_position %f dim 0 : tensor<4xf32> to tensor<4xi64>\n";
  EXPECT_EQ(
      rangeOfY(i64,
               sorted + "%y = par.scatter_add %i, %p dim 0 size 4 : tensor<4xi64>, tensor<4xi64> to tensor<4xi64>"),
      Range(0, 3));
  // Others may come to one place.
  EXPECT_EQ(
      rangeOfY(i64,
               sorted + "%y = par.scatter_add %i, %x dim 0 size 4 : tensor<4xi64>, tensor<4xi64> to tensor<4xi64>"),
      Range(INT64_MIN, INT64_MAX));
}

} // namespace
