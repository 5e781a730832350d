// Random kernels: chains of elementwise ops, layout ops and reductions whose values are read several times, against the
// interpreter. Every seed gives the same kernels on every machine.
#include "RunKernels.h"

#include <algorithm>

namespace {

struct Value {
  std::string name;
  std::vector<int64_t> shape;
};

std::string typeOf(const std::vector<int64_t> &shape) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "f32>";
}

std::string listOf(const std::vector<int64_t> &values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed), seed(seed) {}

  std::string kernel() {
    std::vector<int64_t> shape;
    const int64_t sizes[] = {1, 3, 4, 7, 8, 20};
    for (unsigned rank = 1 + pick(3); rank > 0; --rank)
      shape.push_back(sizes[pick(6)]);
    values = {{"%a", shape}, {"%b", shape}};
    for (unsigned ops = 3 + pick(8); ops > 0; --ops)
      addOp();
    std::vector<Value> results{values.back()};
    if (pick(2))
      results.push_back(values[pick(values.size())]);
    std::string names, types;
    for (size_t i = 0; i < results.size(); ++i) {
      names += (i ? ", " : "") + results[i].name;
      types += (i ? ", " : "") + typeOf(results[i].shape);
    }
    return "par.kernel @r" + std::to_string(seed) + "(%a: " + typeOf(shape) + ", %b: " + typeOf(shape) + ") -> (" +
           types + ") attributes {implementation = \"generated\"} {\n" + body + "  par.return " + names + " : " +
           types + "\n}\n";
  }

private:
  unsigned pick(unsigned below) { return random() % below; }

  Value define(const std::string &text, const std::string &types, std::vector<int64_t> shape) {
    Value value{"%" + std::to_string(next++), std::move(shape)};
    body += "  " + value.name + " = par." + text + " : " + types + "\n";
    values.push_back(value);
    return value;
  }

  void addOp() {
    Value x = values[values.size() - 1 - pick(std::min<size_t>(values.size(), 3))];
    switch (pick(9)) {
    case 0:
    case 1:
      define((pick(2) ? "tanh " : "sigmoid ") + x.name, typeOf(x.shape), x.shape);
      return;
    case 2:
    case 3:
      return addBinary(x);
    case 4:
      return addReduction(x);
    case 5:
      return addTranspose(x);
    case 6: {
      std::vector<int64_t> flat{1};
      for (int64_t size : x.shape)
        flat[0] *= size;
      define("reshape " + x.name, typeOf(x.shape) + " to " + typeOf(flat), flat);
      return;
    }
    case 7:
      return addSlice(x);
    default:
      return addPad(x);
    }
  }

  void addBinary(const Value &x) {
    std::vector<Value> same;
    for (const Value &other : values)
      if (other.shape == x.shape)
        same.push_back(other);
    const char *ops[] = {"add ", "subtract ", "minimum ", "maximum "}; // multiplications would overflow f32
    define(ops[pick(4)] + x.name + ", " + same[pick(same.size())].name, typeOf(x.shape), x.shape);
  }

  /// Reduces a dim, and spreads the result over it again.
  void addReduction(const Value &x) {
    if (x.shape.empty())
      return;
    int64_t dim = pick(x.shape.size());
    std::vector<int64_t> kept, dims;
    for (int64_t i = 0; i < static_cast<int64_t>(x.shape.size()); ++i)
      if (i != dim) {
        kept.push_back(x.shape[i]);
        dims.push_back(i);
      }
    Value sum = define(std::string("reduce ") + (pick(2) ? "max " : "sum ") + x.name + " dims " + listOf({dim}),
                       typeOf(x.shape) + " to " + typeOf(kept), kept);
    define("broadcast_in_dim " + sum.name + " dims " + listOf(dims), typeOf(kept) + " to " + typeOf(x.shape), x.shape);
    addBinary(values.back());
  }

  void addTranspose(const Value &x) {
    std::vector<int64_t> permutation, shape;
    for (size_t i = 0; i < x.shape.size(); ++i)
      permutation.push_back(i);
    std::shuffle(permutation.begin(), permutation.end(), random);
    for (int64_t dim : permutation)
      shape.push_back(x.shape[dim]);
    define("transpose " + x.name + " " + listOf(permutation), typeOf(x.shape) + " to " + typeOf(shape), shape);
  }

  void addPad(const Value &x) {
    std::vector<int64_t> low, high, shape;
    for (int64_t size : x.shape) {
      low.push_back(pick(3));
      high.push_back(pick(3));
      shape.push_back(size + low.back() + high.back());
    }
    define("pad " + x.name + " low " + listOf(low) + " high " + listOf(high) + " value 0.5 : f32",
           typeOf(x.shape) + " to " + typeOf(shape), shape);
  }

  /// Half of them begin at 0, where a slice reads as the whole would.
  void addSlice(const Value &x) {
    std::vector<int64_t> starts, limits, shape;
    for (int64_t size : x.shape) {
      starts.push_back(pick(2) ? 0 : pick(size));
      limits.push_back(starts.back() + 1 + pick(size - starts.back()));
      shape.push_back(limits.back() - starts.back());
    }
    define("slice " + x.name + " " + listOf(starts) + " to " + listOf(limits) + " by " +
               listOf(std::vector<int64_t>(x.shape.size(), 1)),
           typeOf(x.shape) + " to " + typeOf(shape), shape);
  }

  std::mt19937 random;
  unsigned seed, next = 0;
  std::vector<Value> values;
  std::string body;
};

TEST(RandomKernels, AgreeWithTheInterpreter) {
  std::string text;
  for (unsigned seed = 1; seed <= 120; ++seed)
    text += Generator(seed).kernel();
  run_kernels::runAll(text);
}

} // namespace
