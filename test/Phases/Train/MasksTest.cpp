// The mask that is recognised from ops equals the ops' values.
#include "../../../lib/Phases/Train/AttentionMask.h"
#include "Session.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <random>

using namespace mlir;
using namespace par;
using namespace par::test;

namespace {

/// Text of random masks [q, k].
class Writer {
public:
  Writer(unsigned seed, int64_t rows, int64_t columns) : random(seed), rows(rows), columns(columns) {}

  std::string write(std::string value, StringRef element) {
    return llvm::formatv("par.step @eval() -> {0} attributes {{inputs = []} {{\n{1}  par.return {2} : {0}\n}\n",
                         type(element), text, value);
  }

  std::string condition(int depth) {
    switch (pick(depth > 0 ? 7 : 2)) {
    case 0:
    case 1:
      return compare();
    case 2:
      return add("not", "i1", {condition(depth - 1)});
    case 3:
      return add(one({"and", "or", "xor"}), "i1", {condition(depth - 1), condition(depth - 1)});
    case 4:
      return repeat(condition(depth - 1), "i1");
    case 5:
      return compareNumbers(depth);
    default:
      return select("i1", condition(depth - 1), condition(depth - 1), condition(depth - 1));
    }
  }

  std::string number(int depth) {
    switch (pick(depth > 0 ? 6 : 2)) {
    case 0:
    case 1:
      return constant("f32", one({"0.0", "1.0", "-3.4e+38", "-1.0e+4", "-0.0", "0xFF800000", "2.5"}));
    case 2:
      return select("f32", condition(depth - 1), number(depth - 1), number(depth - 1));
    case 3:
      return convert(condition(depth - 1), "i1", "f32");
    case 4:
      return add("subtract", "f32", {constant("f32", "1.0"), number(depth - 1)});
    default:
      return add(one({"multiply", "add", "maximum"}), "f32", {number(depth - 1), number(depth - 1)});
    }
  }

private:
  int64_t pick(int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(random); }
  StringRef one(ArrayRef<StringRef> choices) { return choices[pick(choices.size())]; }
  std::string type(StringRef element, int64_t extra = 0) {
    return llvm::formatv("tensor<{0}x{1}x{2}>", rows + extra, columns + extra, element);
  }
  std::string emit(const std::string &line) {
    std::string name = "%v" + std::to_string(count++);
    text += "  " + name + " = par." + line + "\n";
    return name;
  }
  std::string add(StringRef op, StringRef element, ArrayRef<std::string> operands) {
    return emit(llvm::formatv("{0} {1} : {2}", op, llvm::join(operands, ", "), type(element)));
  }
  std::string constant(StringRef element, StringRef value) {
    return emit(llvm::formatv("constant dense<{0}> : {1}", value, type(element)));
  }
  std::string convert(const std::string &value, StringRef from, StringRef to) {
    return emit(llvm::formatv("convert {0} : {1} to {2}", value, type(from), type(to)));
  }
  std::string select(StringRef element, const std::string &condition, const std::string &met,
                     const std::string &other) {
    return emit(llvm::formatv("select {0}, {1}, {2} : {3}, {4}", condition, met, other, type("i1"), type(element)));
  }
  /// Through dims of size 1 and back.
  std::string repeat(const std::string &value, StringRef element) {
    std::string wide = llvm::formatv("tensor<1x{0}x1x{1}x{2}>", rows, columns, element);
    std::string there = emit(llvm::formatv("reshape {0} : {1} to {2}", value, type(element), wide));
    return emit(llvm::formatv("reshape {0} : {1} to {2}", there, wide, type(element)));
  }
  /// The row or the column, as exporters write it.
  std::string index() {
    int64_t dim = pick(2), size = dim == 0 ? rows : columns;
    switch (pick(4)) {
    case 0:
      return emit(llvm::formatv("iota dim {0} : {1}", dim, type("i64")));
    case 1: {
      std::string line = emit(llvm::formatv("iota dim 0 : tensor<{0}xi64>", size));
      return emit(
          llvm::formatv("broadcast_in_dim {0} dims [{1}] : tensor<{2}xi64> to {3}", line, dim, size, type("i64")));
    }
    case 2: {
      std::string more = emit(llvm::formatv("iota dim {0} : {1}", dim, type("i64", 2)));
      return emit(llvm::formatv("slice {0} [1, 2] to [{1}, {2}] by [1, 1] : {3} to {4}", more, rows + 1, columns + 2,
                                type("i64", 2), type("i64")));
    }
    default: {
      std::string turned = llvm::formatv("tensor<{0}x{1}xi64>", columns, rows);
      std::string other = emit(llvm::formatv("iota dim {0} : {1}", dim, turned));
      return emit(llvm::formatv("transpose {0} [1, 0] : {1} to {2}", other, turned, type("i64")));
    }
    }
  }
  std::string integer(int depth) {
    switch (pick(depth > 0 ? 7 : 2)) {
    case 0:
    case 1:
      return index();
    case 2:
      return constant("i64", std::to_string(pick(12) - 4));
    case 3:
      return add("negate", "i64", {integer(depth - 1)});
    case 4:
      return add("multiply", "i64", {integer(depth - 1), constant("i64", std::to_string(pick(5) - 2))});
    case 5: {
      std::string narrow = one({"i32", "i8", "f32"}).str();
      return convert(convert(integer(depth - 1), "i64", narrow), narrow, "i64");
    }
    default:
      return add(one({"add", "subtract"}), "i64", {integer(depth - 1), integer(depth - 1)});
    }
  }
  std::string compare() {
    if (pick(6) == 0)
      return convert(integer(2), "i64", "i1");
    std::string left = integer(2);
    return emit(llvm::formatv("compare {0} {1}, {2} : {3}", one({"le", "lt", "ge", "gt", "eq", "ne"}), left, integer(2),
                              type("i64")));
  }
  std::string compareNumbers(int depth) {
    std::string left = number(depth - 1);
    return emit(llvm::formatv("compare {0} {1}, {2} : {3}", one({"le", "lt", "eq", "ne"}), left, number(depth - 1),
                              type("f32")));
  }

  std::mt19937 random;
  int64_t rows, columns;
  std::string text;
  int count = 0;
};

Value maskOf(ModuleOp module) { return module.lookupSymbol<StepOp>("eval").getBlock().getTerminator()->getOperand(0); }

double elementOf(const Tensor &tensor, int64_t i) { return tensor.isFloat() ? tensor.floats()[i] : tensor.ints()[i]; }

bool equal(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Whether every element is that of a causal mask.
bool isCausal(const Tensor &mask, llvm::function_ref<bool(double, bool)> fits) {
  int64_t columns = mask.getShape().back();
  for (int64_t i = 0; i < mask.getSize(); ++i)
    if (!fits(elementOf(mask, i), i % columns <= i / columns))
      return false;
  return true;
}

TEST(Masks, FormulasAreWhatTheirOpsCompute) {
  Session session;
  int read = 0, rounds = 3000, causal = 0;
  for (int seed = 0; seed < rounds; ++seed) {
    int64_t rows = 1 + seed % 9, columns = 1 + seed / 9 % 7;
    Writer writer(seed, rows, columns);
    bool isNumeric = seed % 3 == 0;
    std::string root = isNumeric ? writer.number(3) : writer.condition(3);
    std::string text = writer.write(root, isNumeric ? "f32" : "i1");
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    auto module = session.parse(text);
    ASSERT_TRUE(module);
    Outcome outcome = evaluate(*module, "eval", {}, {});
    ASSERT_EQ(outcome.outputs.size(), 1u);
    const Tensor &mask = outcome.outputs.begin()->second;
    AttentionMasks masks;
    bool adds =
        isNumeric && isCausal(mask, [](double element, bool below) { return below ? element == 0 : element <= -1e4; });
    EXPECT_EQ(isNumeric && masks.causalSum(maskOf(*module)).has_value(), adds);
    for (bool meets : {true, false}) {
      bool expected =
          !isNumeric && isCausal(mask, [&](double element, bool below) { return (element != 0) == (below == meets); });
      EXPECT_EQ(!isNumeric && masks.isCausalCondition(maskOf(*module), meets), expected);
      causal += expected && rows > 1 && columns > 1;
    }
    std::optional<MaskFormula> formula = MaskFormula::read(maskOf(*module));
    if (!formula)
      continue;
    ++read;
    std::optional<MaskRows> known = formula->evaluate();
    ASSERT_TRUE(known);
    int64_t next = 0;
    for (auto [i, stretch] : llvm::enumerate(known->stretches)) {
      ASSERT_EQ(stretch.row * columns + stretch.begin, next);
      ASSERT_LT(stretch.begin, stretch.end);
      for (; next < stretch.row * columns + stretch.end; ++next)
        ASSERT_TRUE(equal(elementOf(mask, next), elementOf(known->elements, i))) << "element " << next;
    }
    ASSERT_EQ(next, rows * columns);
  }
  EXPECT_GT(read, rounds / 2);
  EXPECT_GT(causal, 0);
}

/// A mask of 65,536 tokens, from its condition on the row %r, the column %c and numbers.
bool isCausalWhere(StringRef condition) {
  Session session;
  std::string type = "tensor<65536x65536xi64>", mask = "tensor<65536x65536xi1>";
  auto module = session.parse(llvm::formatv(R"(par.step @eval() -> {1} attributes {{inputs = []} {{
    %r = par.iota dim 0 : {0}
    %c = par.iota dim 1 : {0}
    %window = par.constant dense<4096> : {0}
    %there = par.constant dense<40000> : {0}
    %causal = par.compare le %c, %r : {0}
    {2}
    par.return %m : {1}
  })",
                                            type, mask, condition)
                                  .str());
  return module && AttentionMasks().isCausalCondition(maskOf(*module), true);
}

TEST(Masks, LargeOnesAreToldApart) {
  std::string i64 = " : tensor<65536x65536xi64>\n", i1 = " : tensor<65536x65536xi1>\n";
  EXPECT_TRUE(isCausalWhere("%m = par.and %causal, %causal" + i1));
  // A window hides elements further back, unless it is as long as the sequence.
  std::string window = "%back = par.subtract %r, %c" + i64 + "%near = par.compare lt %back, %reach" + i64 +
                       "%m = par.and %causal, %near" + i1;
  EXPECT_FALSE(isCausalWhere("%reach = par.add %window, %window" + i64 + window));
  EXPECT_TRUE(isCausalWhere("%reach = par.multiply %window, %there" + i64 + window));
  // Padding after the sequence.
  EXPECT_FALSE(isCausalWhere("%short = par.compare lt %c, %there" + i64 + "%m = par.and %causal, %short" + i1));
  // One element differs.
  EXPECT_FALSE(isCausalWhere("%row = par.compare eq %r, %there" + i64 + "%column = par.compare eq %c, %window" + i64 +
                             "%both = par.and %row, %column" + i1 + "%m = par.xor %causal, %both" + i1));
  // The diagonal is hidden.
  EXPECT_FALSE(isCausalWhere("%m = par.compare lt %c, %r" + i64));
}

TEST(Masks, EqualOnesHaveEqualKeys) {
  Session session;
  auto key = [&](StringRef condition, int64_t columns) {
    auto module = session.parse(llvm::formatv(R"(par.step @eval() -> tensor<8x{1}xi1> attributes {{inputs = []} {{
      %r = par.iota dim 0 : tensor<8x{1}xi64>
      %c = par.iota dim 1 : tensor<8x{1}xi64>
      %m = par.compare {0} : tensor<8x{1}xi64>
      par.return %m : tensor<8x{1}xi1>
    })",
                                              condition, columns)
                                    .str());
    return MaskFormula::read(maskOf(*module))->key();
  };
  EXPECT_EQ(key("le %c, %r", 8), key("le %c, %r", 8));
  EXPECT_EQ(key("le %c, %r", 8), key("le %c, %r {stage = 1 : i64}", 8));
  EXPECT_NE(key("le %c, %r", 8), key("lt %c, %r", 8));
  EXPECT_NE(key("le %c, %r", 8), key("le %c, %r", 9));
  EXPECT_NE(key("le %c, %r", 8), key("le %r, %c", 8));
}

} // namespace
