// One op with random shapes, in text.
#pragma once

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace par::test {

using Shape = std::vector<int64_t>;

/// An operand: floats come from a variable, integers and booleans from an input.
struct Input {
  Shape shape;
  double low = -2, high = 2; ///< range of values; integers include both ends
  std::string element = "f64";
};

/// One op: `text` defines %y (and perhaps more) of %0, %1, ...; `result` is the shape of %y, of `element`s.
struct OpCase {
  std::string text;
  std::vector<Input> inputs;
  Shape result;
  std::string element = "f64";
};

/// Deterministic choices; round 0 is any shape, round 1 has a dim of size 1, round 2 odd dims only, round 3
/// two dims of size 1 where there are as many. Dims have 2 to `most` elements.
class Chooser {
public:
  Chooser(unsigned seed, unsigned round, int64_t most = 5) : random(seed * 16 + round), round(round), most(most) {}

  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }
  double real() { return std::uniform_real_distribution<double>(0, 1)(random); }
  int64_t dim() { return round == 2 ? 2 * number(1, (most - 1) / 2) + 1 : number(2, most); }
  /// A shape of the given rank; some rounds have dims of 1.
  Shape shape(int64_t rank) {
    Shape shape(rank);
    for (int64_t &size : shape)
      size = dim();
    for (unsigned ones = round == 1 ? 1 : round == 3 ? 2 : 0; ones && rank; --ones)
      shape[number(0, rank - 1)] = 1;
    return shape;
  }
  Shape anyShape(int64_t least = 0, int64_t most = 3) { return shape(number(least, most)); }
  /// `count` different numbers below `below`, rising.
  std::vector<int64_t> pick(int64_t count, int64_t below) {
    std::vector<int64_t> all = permutation(below);
    all.resize(count);
    llvm::sort(all);
    return all;
  }
  std::vector<int64_t> permutation(int64_t size) {
    std::vector<int64_t> all(size);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random);
    return all;
  }
  /// Values in [low, high) that keep apart from each other and from those of another operand of the same
  /// size, so that a small step changes no comparison.
  std::vector<double> values(const Input &input, int64_t size, unsigned operand) {
    std::vector<double> values;
    for (int64_t place : permutation(size))
      values.push_back(input.low +
                       (input.high - input.low) * (place + 0.1 + 0.3 * (operand % 3) + 0.1 * real()) / size);
    return values;
  }

private:
  std::mt19937 random;
  unsigned round;
  int64_t most;
};

inline std::string typeOf(const Shape &shape, llvm::StringRef element = "f64") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element.str() + ">";
}
inline std::string listOf(const std::vector<int64_t> &numbers) {
  return "[" + llvm::join(llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); }), ", ") + "]";
}

/// %0 is a result number to the parser: operands are %a0, ...
inline std::string renamed(llvm::StringRef text) {
  std::string out;
  for (auto [i, c] : llvm::enumerate(text)) {
    out += c;
    if (c == '%' && i + 1 < text.size() && llvm::isDigit(text[i + 1]))
      out += 'a';
  }
  return out;
}

using MakeCase = std::function<OpCase(Chooser &)>;

} // namespace par::test
