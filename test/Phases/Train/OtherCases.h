// Cases of ops that have no derivative, and of ops on other element types than f64.
#pragma once

#include "OpCases.h"

#include "llvm/ADT/StringSet.h"

namespace par::test {

using NamedCase = std::pair<std::string, MakeCase>;

/// `text` defines %z of `element` and of the shape of %y.
inline OpCase converted(std::string text, std::vector<Input> inputs, const Shape &result, llvm::StringRef element) {
  text += llvm::formatv("\n%y = par.convert %z : {0} to {1}", typeOf(result, element), typeOf(result));
  return {text, std::move(inputs), result};
}
/// An elementwise op of `operands` operands of one element type.
inline MakeCase elements(const char *op, int64_t operands, const char *element, const char *result, double low = -5,
                         double high = 5) {
  return [=](Chooser &choose) {
    Shape shape = choose.anyShape();
    std::string names = operands == 2 ? "%0, %1" : "%0";
    return converted(llvm::formatv("%z = par.{0} {1} : {2}", op, names, typeOf(shape, element)),
                     std::vector<Input>(operands, {shape, low, high, element}), shape, result);
  };
}
/// Cases on numbers, infinities and NaN: logarithms of -1, 0 and 1.
inline MakeCase testCase(const char *op) {
  return [=](Chooser &choose) {
    Shape shape = choose.anyShape();
    std::string type = typeOf(shape);
    return converted(llvm::formatv("%a = par.convert %0 : {0} to {1}\n%q = par.log %a : {1}\n%z = par.{2} %q : {1}",
                                   typeOf(shape, "i64"), type, op),
                     {{shape, -1, 1, "i64"}}, shape, "i1");
  };
}
inline MakeCase convertTo(llvm::StringLiteral from, llvm::StringLiteral to) {
  return [=](Chooser &choose) {
    Shape shape = choose.anyShape();
    bool isBool = from == "i1";
    return converted(llvm::formatv("%z = par.convert %0 : {0} to {1}", typeOf(shape, from), typeOf(shape, to)),
                     {{shape, isBool ? 0.0 : -3.0, isBool ? 1.0 : 3.0, from.str()}}, shape, to);
  };
}
inline OpCase constantCase(Chooser &choose) {
  Shape shape{choose.dim(), 2};
  std::string rows = llvm::join(std::vector<std::string>(shape[0], "[1.0, 2.0]"), ", ");
  return {llvm::formatv("%c = par.constant dense<[{0}]> : {1}\n%s = par.constant dense<3.0> : {1}\n"
                        "%d = par.add %c, %s : {1}\n%y = par.add %d, %0 : {1}",
                        rows, typeOf(shape)),
          {{shape}},
          shape};
}
inline MakeCase iota(const char *element) {
  return [=](Chooser &choose) {
    Shape shape = choose.anyShape(1, 3);
    int64_t dim = choose.number(0, shape.size() - 1);
    return converted(llvm::formatv("%z = par.iota dim {0} : {1}", dim, typeOf(shape, element)), {{shape}}, shape,
                     element);
  };
}
inline MakeCase argReduce(const char *kind) {
  return [=](Chooser &choose) {
    Shape shape = choose.anyShape(1, 3), result = shape;
    int64_t dim = choose.number(0, shape.size() - 1);
    result.erase(result.begin() + dim);
    return converted(llvm::formatv("%z = par.arg_reduce {0} %0 dim {1} : {2} to {3}", kind, dim, typeOf(shape, "i64"),
                                   typeOf(result, "i64")),
                     {{shape, -3, 3, "i64"}}, result, "i64");
  };
}
inline MakeCase logicalReduce(const char *kind) {
  return [=](Chooser &choose) {
    Shape shape = choose.anyShape(1, 3), result;
    std::vector<int64_t> dims = choose.pick(choose.number(1, shape.size()), shape.size());
    for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim)
      if (!llvm::is_contained(dims, dim))
        result.push_back(shape[dim]);
    return converted(llvm::formatv("%z = par.reduce {0} %0 dims {1} : {2} to {3}", kind, listOf(dims),
                                   typeOf(shape, "i1"), typeOf(result, "i1")),
                     {{shape, 0, 1, "i1"}}, result, "i1");
  };
}
inline OpCase bitCastCase(Chooser &choose) {
  Shape shape = choose.anyShape();
  std::string type = typeOf(shape, "i64");
  return converted(llvm::formatv("%z = par.bit_cast %0 : {0} to {1}", typeOf(shape), type), {{shape}}, shape, "i64");
}
inline OpCase sortedPositionCase(Chooser &choose) {
  Shape shape = choose.anyShape(1, 3);
  int64_t dim = choose.number(0, shape.size() - 1);
  const char *descending = choose.number(0, 1) ? "true" : "false";
  return converted(llvm::formatv("%z = par.sorted_position %0 dim {0} {{descending = {1}} : {2} to {3}", dim,
                                 descending, typeOf(shape), typeOf(shape, "i64")),
                   {{shape}}, shape, "i64");
}
inline OpCase runningMaximumCase(Chooser &choose) {
  Shape shape = choose.anyShape(1, 3);
  int64_t dim = choose.number(0, shape.size() - 1);
  return {llvm::formatv("%y = par.cumulative max %0 dim {0} : {1}", dim, typeOf(shape)), {{shape}}, shape};
}
/// The same small factors joined to dims in two ways.
inline OpCase regroupCase(Chooser &choose) {
  std::vector<int64_t> factors;
  for (int64_t count = choose.number(2, 5); count > 0; --count)
    factors.push_back(choose.number(1, 3));
  auto join = [&] {
    Shape shape{1};
    for (int64_t factor : factors) {
      if (choose.number(0, 1))
        shape.push_back(1);
      shape.back() *= factor;
    }
    return shape;
  };
  Shape from = join(), to = join();
  return {llvm::formatv("%y = par.reshape %0 : {0} to {1}", typeOf(from), typeOf(to)), {{from}}, to};
}

/// The case with `element` where it has f64, its own result apart.
inline MakeCase retyped(MakeCase make, std::string element) {
  return [=](Chooser &choose) {
    OpCase made = make(choose);
    bool isFloat = element.front() != 'i', isBool = element == "i1";
    std::string text, converts;
    for (auto [i, input] : llvm::enumerate(made.inputs)) {
      if (input.element != "f64")
        continue;
      if (isFloat)
        converts += llvm::formatv("%c{0} = par.convert %{0} : {1} to {2}\n", i, typeOf(input.shape),
                                  typeOf(input.shape, element));
      else
        input = {input.shape, isBool ? 0. : input.low > 0 ? 1. : -5., isBool ? 1. : 5., element};
    }
    for (llvm::StringRef rest = made.text; !rest.empty();) {
      unsigned number;
      if (rest.consume_front("f64"))
        text += element;
      else if (!isFloat && rest.consume_front("1.5"))
        text += isBool ? "true" : "3";
      else if (rest.consume_front("%y"))
        text += "%z";
      else if (isFloat && rest.starts_with("%") && !rest.substr(1).consumeInteger(10, number) &&
               llvm::StringRef(converts).contains("%c" + std::to_string(number) + " =")) {
        text += "%c";
        rest = rest.drop_front();
      } else {
        text += rest.front();
        rest = rest.drop_front();
      }
    }
    // An i1 attribute says its type itself.
    for (size_t at; isBool && (at = text.find("true : i1")) != std::string::npos;)
      text.erase(at + 4, 5);
    return converted(converts + text, made.inputs, made.result, element);
  };
}
/// The case with `element` where it has f64, its operands and results too.
inline MakeCase inElement(MakeCase make, std::string element) {
  return [=](Chooser &choose) {
    OpCase made = make(choose);
    for (size_t at; element != "f64" && (at = made.text.find("f64")) != std::string::npos;)
      made.text.replace(at, 3, element);
    for (Input &input : made.inputs)
      if (input.element == "f64")
        input.element = element;
    made.element = element;
    return made;
  };
}
/// The case with i32 where it has i64.
inline MakeCase narrowIndices(MakeCase make) {
  return [=](Chooser &choose) {
    OpCase made = make(choose);
    for (size_t at; (at = made.text.find("i64")) != std::string::npos;)
      made.text.replace(at, 3, "i32");
    for (Input &input : made.inputs)
      if (input.element == "i64")
        input.element = "i32";
    return made;
  };
}

/// Ops without a derivative: tests, integers, positions. Results are converted to f64.
inline std::vector<NamedCase> otherCases() {
  return {{"not", elements("not", 1, "i64", "i64")},
          {"is_nan", testCase("is_nan")},
          {"is_finite", testCase("is_finite")},
          {"compare", elements("compare lt", 2, "i64", "i1")},
          {"compare", elements("compare ge", 2, "f64", "i1")},
          {"and", elements("and", 2, "i64", "i64")},
          {"or", elements("or", 2, "i1", "i1", 0, 1)},
          {"xor", elements("xor", 2, "i64", "i64")},
          {"shift_left", elements("shift_left", 2, "i64", "i64", 0, 9)},
          {"shift_right", elements("shift_right", 2, "i64", "i64", 0, 9)},
          {"random_bits", elements("random_bits", 2, "i64", "i64", 0, 1000)},
          {"bit_cast", bitCastCase},
          {"convert", convertTo("i1", "i64")},
          {"convert", convertTo("i64", "i1")},
          {"convert", convertTo("i64", "i32")},
          {"constant", constantCase},
          {"iota", iota("i64")},
          {"iota", iota("f32")},
          {"reduce", logicalReduce("and")},
          {"reduce", logicalReduce("or")},
          {"arg_reduce", argReduce("max")},
          {"arg_reduce", argReduce("min")},
          {"sorted_position", sortedPositionCase},
          {"cumulative", runningMaximumCase},
          {"reshape", regroupCase}};
}

/// Ops of all kinds on integers, booleans and other floats in turn, and with i32 indices.
inline std::vector<NamedCase> retypedCases(std::vector<std::string> floats = {"f32", "bf16", "f16"}) {
  const llvm::StringSet<> integers{"negate",    "abs",           "sign",         "add",
                                   "subtract",  "multiply",      "divide",       "remainder",
                                   "maximum",   "minimum",       "select",       "broadcast_in_dim",
                                   "reshape",   "transpose",     "slice",        "pad",
                                   "concat",    "dynamic_slice", "update_slice", "reverse",
                                   "reduce",    "cumulative",    "dot",          "gather",
                                   "index_add", "take",          "scatter_add",  "scatter_reduce",
                                   "patches",   "fold_patches",  "max_pool"};
  const llvm::StringSet<> layoutOps{"select", "broadcast_in_dim", "reshape",      "transpose", "slice", "pad",
                                    "concat", "dynamic_slice",    "update_slice", "gather",    "take",  "patches"};
  const llvm::StringSet<> addressing{"gather",        "index_add",    "take",          "scatter_add",
                                     "dynamic_slice", "update_slice", "cross_entropy", "cross_entropy_grad"};
  // Their statistics are f32 whatever the type.
  const llvm::StringSet<> wide{"layer_norm",         "layer_norm_grad", "cross_entropy",
                               "cross_entropy_grad", "attention",       "attention_grad"};
  std::vector<NamedCase> cases;
  auto add = [&](std::vector<NamedCase> from) {
    for (auto [i, named] : llvm::enumerate(from)) {
      auto &[name, make] = named;
      if (name != "convert" && name != "constrain")
        cases.emplace_back(name, retyped(make, wide.contains(name) ? "f32" : floats[i % floats.size()]));
      if (integers.contains(name))
        cases.emplace_back(name, retyped(make, i % 2 ? "i64" : "i32"));
      if (layoutOps.contains(name))
        cases.emplace_back(name, retyped(make, "i1"));
      if (addressing.contains(name))
        cases.emplace_back(name, narrowIndices(make));
    }
  };
  add(differentiableCases());
  add(compositeCases());
  return cases;
}

} // namespace par::test
