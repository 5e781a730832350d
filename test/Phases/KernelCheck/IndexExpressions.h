// Random expressions of indices: chains of transposes, slices, reverses, pads, rolls and gathers.
#pragma once

#include "../Train/OpCase.h"

namespace par::test {

/// The body of a step on a parameter %p0 and integers; defines %y of `result`.
class IndexExpression {
public:
  explicit IndexExpression(unsigned seed) : choose(seed, /*round=*/0, /*most=*/7) {
    parameter = choose.anyShape(1, 3);
    values.push_back({"%p0", parameter});
    for (int64_t ops = choose.number(3, 9); ops > 0; --ops)
      add();
    result = values.back().shape;
    body += llvm::formatv("%y = par.add {0}, {0} : {1}\n", values.back().name, typeOf(result, "f32"));
  }

  std::string body;
  Shape parameter, result;
  /// Integer arguments %i0, ...
  std::vector<Shape> integers;

private:
  struct Value {
    std::string name;
    Shape shape;
  };
  static constexpr int64_t maxElements = 600;

  static int64_t sizeOf(const Shape &shape) {
    return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
  }
  std::string fresh() { return "%v" + std::to_string(next++); }
  static std::string real(const Shape &shape) { return typeOf(shape, "f32"); }
  static std::string whole(const Shape &shape) { return typeOf(shape, "i64"); }

  /// `text` reads `x`, and gives a value of `shape`.
  Value define(const Value &x, const std::string &text, Shape shape, bool typed = true) {
    Value value{fresh(), std::move(shape)};
    body += value.name + " = par." + text + " : " + real(x.shape) + (typed ? " to " + real(value.shape) : "") + "\n";
    return value;
  }
  std::string constant(const std::vector<int64_t> &numbers) {
    std::string name = fresh();
    body +=
        llvm::formatv("{0} = par.constant dense<{1}> : {2}\n", name, listOf(numbers), whole({int64_t(numbers.size())}));
    return name;
  }
  std::string argument(Shape shape) {
    integers.push_back(std::move(shape));
    return "%i" + std::to_string(integers.size() - 1);
  }
  int64_t dimOf(const Value &x) { return choose.number(0, x.shape.size() - 1); }

  Value slice(const Value &x, std::vector<int64_t> starts, std::vector<int64_t> limits, std::vector<int64_t> strides) {
    Shape shape;
    for (size_t d = 0; d < starts.size(); ++d)
      shape.push_back((limits[d] - starts[d] + strides[d] - 1) / strides[d]);
    return define(x, "slice " + x.name + " " + listOf(starts) + " to " + listOf(limits) + " by " + listOf(strides),
                  shape);
  }
  /// Elements [start, limit) along one dim.
  Value part(const Value &x, int64_t dim, int64_t start, int64_t limit) {
    std::vector<int64_t> starts(x.shape.size(), 0), limits = x.shape, strides(x.shape.size(), 1);
    starts[dim] = start;
    limits[dim] = limit;
    return slice(x, starts, limits, strides);
  }
  Value reverse(const Value &x, std::vector<int64_t> dims) {
    return define(x, "reverse " + x.name + " dims " + listOf(dims), x.shape, /*typed=*/false);
  }
  Value concat(std::vector<Value> parts, int64_t dim) {
    Value joined{fresh(), parts.front().shape};
    joined.shape[dim] = 0;
    std::vector<std::string> names, types;
    for (const Value &each : parts) {
      names.push_back(each.name);
      types.push_back(real(each.shape));
      joined.shape[dim] += each.shape[dim];
    }
    body += joined.name + " = par.concat " + llvm::join(names, ", ") + " dim " + std::to_string(dim) + " : (" +
            llvm::join(types, ", ") + ") -> " + real(joined.shape) + "\n";
    return joined;
  }
  Value reshape(const Value &x, Shape shape) { return define(x, "reshape " + x.name, std::move(shape)); }

  Value transposed(const Value &x) {
    std::vector<int64_t> order = choose.permutation(x.shape.size());
    Shape shape;
    for (int64_t dim : order)
      shape.push_back(x.shape[dim]);
    return define(x, "transpose " + x.name + " " + listOf(order), shape);
  }
  /// Into dims of all elements, or of those of two neighbours.
  Value reshaped(const Value &x) {
    Shape shape;
    int64_t left = sizeOf(x.shape);
    while (left > 1 && shape.size() < 3 && choose.number(0, 3)) {
      std::vector<int64_t> factors;
      for (int64_t by = 1; by <= left; ++by)
        if (left % by == 0)
          factors.push_back(by);
      shape.push_back(factors[choose.number(0, factors.size() - 1)]);
      left /= shape.back();
    }
    shape.insert(shape.begin() + choose.number(0, shape.size()), left);
    return reshape(x, shape);
  }
  Value sliced(const Value &x) {
    std::vector<int64_t> starts, limits, strides;
    for (int64_t size : x.shape) {
      starts.push_back(choose.number(0, 2) ? 0 : choose.number(0, size - 1));
      limits.push_back(choose.number(0, 1) ? size : choose.number(starts.back() + 1, size));
      strides.push_back(choose.number(0, 2) ? 1 : choose.number(1, 3));
    }
    return slice(x, starts, limits, strides);
  }
  Value reversed(const Value &x) { return reverse(x, choose.pick(choose.number(1, x.shape.size()), x.shape.size())); }
  Value padded(const Value &x) {
    std::vector<int64_t> low, high, shape;
    for (int64_t size : x.shape) {
      low.push_back(choose.number(0, 1) ? 0 : choose.number(0, 4));
      high.push_back(choose.number(0, 1) ? 0 : choose.number(0, 4));
      shape.push_back(size + low.back() + high.back());
    }
    return define(x, "pad " + x.name + " low " + listOf(low) + " high " + listOf(high) + " value 0.5 : f32", shape);
  }
  Value reflected(const Value &x) {
    int64_t dim = dimOf(x), size = x.shape[dim], reach = std::min<int64_t>(size - 1, choose.number(1, 3));
    if (reach < 1)
      return x;
    return concat(
        {reverse(part(x, dim, 1, 1 + reach), {dim}), x, reverse(part(x, dim, size - 1 - reach, size - 1), {dim})}, dim);
  }
  Value rolled(const Value &x) {
    int64_t dim = dimOf(x), size = x.shape[dim];
    if (size < 2)
      return x;
    int64_t by = choose.number(1, size - 1);
    return concat({part(x, dim, by, size), part(x, dim, 0, by)}, dim);
  }
  /// As a shard that does not divide the dim is: padded, cut, and one piece taken by a number.
  Value sharded(const Value &x) {
    int64_t dim = dimOf(x), size = x.shape[dim], ranks = choose.number(2, 4), each = (size + ranks - 1) / ranks;
    std::vector<int64_t> none(x.shape.size(), 0), high = none, shape = x.shape;
    high[dim] = each * ranks - size;
    shape[dim] += high[dim];
    Value all =
        define(x, "pad " + x.name + " low " + listOf(none) + " high " + listOf(high) + " value 0.0 : f32", shape);
    return dynamicSlice(all, dim, each);
  }
  Value dynamicSlice(const Value &x, int64_t dim, int64_t size) {
    Shape shape = x.shape;
    shape[dim] = size;
    Value value{fresh(), shape};
    std::string start = argument({});
    body += llvm::formatv("{0} = par.dynamic_slice {1} at {2} dim {3} size {4} : {5}, tensor<i64> to {6}\n", value.name,
                          x.name, start, dim, size, real(x.shape), real(shape));
    return value;
  }
  Value updated(const Value &x) {
    int64_t dim = dimOf(x);
    Value update = reverse(part(x, dim, 0, choose.number(1, x.shape[dim])), {dim}), value{fresh(), x.shape};
    std::string start = argument({});
    body += llvm::formatv("{0} = par.update_slice {1}, {2} at {3} dim {4} : {5}, {6}, tensor<i64>\n", value.name,
                          x.name, update.name, start, dim, real(x.shape), real(update.shape));
    return value;
  }
  Value gathered(const Value &x) {
    int64_t dim = dimOf(x), size = x.shape[dim], many = choose.number(1, size + 2);
    std::vector<int64_t> numbers;
    int64_t kind = choose.number(0, 3);
    for (int64_t i = 0; i < many; ++i) // turned round, or any
      numbers.push_back(kind == 0 ? size - 1 - i % size : choose.number(0, size - 1));
    std::string indices = kind == 1 ? argument({many}) : constant(numbers);
    Shape shape = x.shape;
    shape[dim] = many;
    Value value{fresh(), shape};
    body += llvm::formatv("{0} = par.gather {1}, {2} dim {3} : {4}, {5} to {6}\n", value.name, x.name, indices, dim,
                          real(x.shape), whole({many}), real(shape));
    return value;
  }
  Value broadcast(const Value &x) {
    if (x.shape.size() > 3)
      return x;
    int64_t at = choose.number(0, x.shape.size());
    Shape shape = x.shape;
    shape.insert(shape.begin() + at, choose.number(2, 3));
    std::vector<int64_t> dims;
    for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim)
      if (dim != at)
        dims.push_back(dim);
    return define(x, "broadcast_in_dim " + x.name + " dims " + listOf(dims), shape);
  }
  /// The element itself if the index along a dim is small, else the reversed one.
  Value chosen(const Value &x) {
    int64_t dim = dimOf(x);
    Value other = reversed(x), value{fresh(), x.shape};
    std::string places = fresh(), bound = fresh(), few = fresh();
    body += llvm::formatv("{0} = par.iota dim {1} : {2}\n{3} = par.constant dense<{4}> : {2}\n"
                          "{5} = par.compare lt {0}, {3} : {2}\n{6} = par.select {5}, {7}, {8} : {9}, {10}\n",
                          places, dim, whole(x.shape), bound, choose.number(0, x.shape[dim]), few, value.name, x.name,
                          other.name, typeOf(x.shape, "i1"), real(x.shape));
    return value;
  }
  Value added(const Value &x) {
    std::vector<Value> same;
    for (const Value &other : values)
      if (other.shape == x.shape)
        same.push_back(other);
    const Value &other = same[choose.number(0, same.size() - 1)];
    const char *ops[] = {"add ", "subtract ", "maximum "};
    return define(x, ops[choose.number(0, 2)] + x.name + ", " + other.name, x.shape, /*typed=*/false);
  }
  Value reduced(const Value &x) {
    int64_t dim = dimOf(x);
    Shape shape = x.shape;
    shape.erase(shape.begin() + dim);
    if (shape.empty())
      return x;
    return define(x, (choose.number(0, 2) ? "reduce sum " : "reduce max ") + x.name + " dims " + listOf({dim}), shape);
  }
  Value accumulated(const Value &x) {
    return define(x, "cumulative sum " + x.name + " dim " + std::to_string(dimOf(x)), x.shape, /*typed=*/false);
  }

  void add() {
    using Make = Value (IndexExpression::*)(const Value &);
    static constexpr Make makes[] = {
        &IndexExpression::transposed, &IndexExpression::transposed, &IndexExpression::reshaped,
        &IndexExpression::reshaped,   &IndexExpression::reshaped,   &IndexExpression::sliced,
        &IndexExpression::sliced,     &IndexExpression::reversed,   &IndexExpression::reversed,
        &IndexExpression::padded,     &IndexExpression::reflected,  &IndexExpression::rolled,
        &IndexExpression::sharded,    &IndexExpression::updated,    &IndexExpression::gathered,
        &IndexExpression::broadcast,  &IndexExpression::chosen,     &IndexExpression::added,
        &IndexExpression::reduced,    &IndexExpression::accumulated};
    Value x = choose.number(0, 5) ? values.back() : values[choose.number(0, values.size() - 1)];
    std::string before = body;
    size_t integersBefore = integers.size();
    Value value = (this->*makes[choose.number(0, std::size(makes) - 1)])(x);
    if (sizeOf(value.shape) <= maxElements && !value.shape.empty()) {
      values.push_back(value);
      return;
    }
    body = before;
    integers.resize(integersBefore);
  }

  Chooser choose;
  std::vector<Value> values;
  unsigned next = 0;
};

} // namespace par::test
