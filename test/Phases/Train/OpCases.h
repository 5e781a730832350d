// Modules around one op with random shapes, for tests of gradients and decompositions.
#pragma once

#include "AttentionCases.h"
#include "OpCase.h"
#include "WindowCases.h"

namespace par::test {

/// Ops that have a derivative, and how to make a case of each.
inline std::vector<std::pair<std::string, MakeCase>> differentiableCases();
/// Composites that have none.
inline std::vector<std::pair<std::string, MakeCase>> compositeCases();

//===-- Elementwise --------------------------------------------------------------------------===//

inline MakeCase unary(const char *op, double low = -2, double high = 2) {
  return [=](Chooser &choose) {
    Shape shape = choose.anyShape();
    return OpCase{llvm::formatv("%y = par.{0} %0 : {1}", op, typeOf(shape)), {{shape, low, high}}, shape};
  };
}
inline MakeCase binary(const char *op, Input left = {}, Input right = {}) {
  return [=](Chooser &choose) {
    Shape shape = choose.anyShape();
    OpCase made{llvm::formatv("%y = par.{0} %0, %1 : {1}", op, typeOf(shape)), {left, right}, shape};
    for (Input &input : made.inputs)
      input.shape = shape;
    return made;
  };
}
inline OpCase selectCase(Chooser &choose) {
  Shape shape = choose.anyShape();
  return {llvm::formatv("%y = par.select %0, %1, %2 : {0}, {1}", typeOf(shape, "i1"), typeOf(shape)),
          {{shape, 0, 1, "i1"}, {shape}, {shape}},
          shape};
}
inline OpCase convertCase(Chooser &choose) {
  Shape shape = choose.anyShape();
  return {llvm::formatv("%c = par.convert %0 : {0} to {1}\n%y = par.convert %c : {1} to {0}", typeOf(shape),
                        typeOf(shape, "f32")),
          {{shape}},
          shape};
}
inline OpCase geluCase(Chooser &choose) {
  Shape shape = choose.anyShape();
  const char *kind = choose.number(0, 1) ? "{tanh = true} " : "";
  return {llvm::formatv("%y = par.gelu %0 {0}: {1}", kind, typeOf(shape)), {{shape}}, shape};
}
inline OpCase constrainCase(Chooser &choose) {
  Shape shape = choose.shape(2);
  return {llvm::formatv("%y = par.constrain %0 <[{{\"dp\"}, {{} ]> : {0}", typeOf(shape)), {{shape}}, shape};
}

//===-- Shape --------------------------------------------------------------------------------===//

inline OpCase broadcastCase(Chooser &choose) {
  Shape result = choose.shape(choose.number(1, 4));
  std::vector<int64_t> dims = choose.pick(choose.number(0, result.size()), result.size());
  Shape operand;
  for (int64_t dim : dims)
    operand.push_back(choose.number(0, 2) ? result[dim] : 1);
  return {llvm::formatv("%y = par.broadcast_in_dim %0 dims {0} : {1} to {2}", listOf(dims), typeOf(operand),
                        typeOf(result)),
          {{operand}},
          result};
}
inline OpCase reshapeCase(Chooser &choose) {
  Shape shape = choose.shape(3), result{shape[0] * shape[1], 1, shape[2]};
  return {llvm::formatv("%y = par.reshape %0 : {0} to {1}", typeOf(shape), typeOf(result)), {{shape}}, result};
}
inline OpCase transposeCase(Chooser &choose) {
  Shape shape = choose.anyShape(1, 4), result;
  std::vector<int64_t> permutation = choose.permutation(shape.size());
  for (int64_t dim : permutation)
    result.push_back(shape[dim]);
  return {llvm::formatv("%y = par.transpose %0 {0} : {1} to {2}", listOf(permutation), typeOf(shape), typeOf(result)),
          {{shape}},
          result};
}
inline OpCase sliceCase(Chooser &choose) {
  Shape shape = choose.anyShape(1, 3), result;
  std::vector<int64_t> starts, limits, strides;
  for (int64_t &size : shape) {
    size += choose.number(0, 4);
    starts.push_back(choose.number(0, size - 1));
    limits.push_back(choose.number(starts.back() + 1, size));
    strides.push_back(choose.number(1, 3));
    result.push_back((limits.back() - starts.back() + strides.back() - 1) / strides.back());
  }
  return {llvm::formatv("%y = par.slice %0 {0} to {1} by {2} : {3} to {4}", listOf(starts), listOf(limits),
                        listOf(strides), typeOf(shape), typeOf(result)),
          {{shape}},
          result};
}
inline OpCase padCase(Chooser &choose) {
  Shape shape = choose.anyShape(1, 3), result = shape;
  std::vector<int64_t> low, high;
  for (int64_t &size : result) {
    low.push_back(choose.number(0, 2));
    high.push_back(choose.number(0, 2));
    size += low.back() + high.back();
  }
  return {llvm::formatv("%y = par.pad %0 low {0} high {1} value 1.5 : f64 : {2} to {3}", listOf(low), listOf(high),
                        typeOf(shape), typeOf(result)),
          {{shape}},
          result};
}
inline OpCase concatCase(Chooser &choose) {
  Shape first = choose.anyShape(1, 3), second = first, result = first;
  int64_t dim = choose.number(0, first.size() - 1);
  second[dim] = choose.dim();
  result[dim] = 2 * first[dim] + second[dim];
  return {llvm::formatv("%y = par.concat %0, %1, %0 dim {0} : ({1}, {2}, {1}) -> {3}", dim, typeOf(first),
                        typeOf(second), typeOf(result)),
          {{first}, {second}},
          result};
}
inline OpCase reverseCase(Chooser &choose) {
  Shape shape = choose.anyShape(1, 3);
  std::vector<int64_t> dims = choose.pick(choose.number(1, shape.size()), shape.size());
  return {llvm::formatv("%y = par.reverse %0 dims {0} : {1}", listOf(dims), typeOf(shape)), {{shape}}, shape};
}
inline OpCase dynamicSliceCase(Chooser &choose) {
  Shape shape = choose.anyShape(1, 3), result = shape;
  int64_t dim = choose.number(0, shape.size() - 1);
  result[dim] = choose.number(1, shape[dim]);
  return {llvm::formatv("%y = par.dynamic_slice %0 at %1 dim {0} size {1} : {2}, tensor<i64> to {3}", dim, result[dim],
                        typeOf(shape), typeOf(result)),
          {{shape}, {{}, 0, double(shape[dim] - result[dim]), "i64"}},
          result};
}
inline OpCase updateSliceCase(Chooser &choose) {
  Shape shape = choose.anyShape(1, 3), update = shape;
  int64_t dim = choose.number(0, shape.size() - 1);
  update[dim] = choose.number(1, shape[dim]);
  return {llvm::formatv("%y = par.update_slice %0, %1 at %2 dim {0} : {1}, {2}, tensor<i64>", dim, typeOf(shape),
                        typeOf(update)),
          {{shape}, {update}, {{}, 0, double(shape[dim] - update[dim]), "i64"}},
          shape};
}

//===-- Reductions, matmuls, indices ---------------------------------------------------------===//

inline MakeCase reduce(const char *kind) {
  return [=](Chooser &choose) {
    Shape shape = choose.anyShape(1, 4), result;
    std::vector<int64_t> dims = choose.pick(choose.number(1, shape.size()), shape.size());
    for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim)
      if (!llvm::is_contained(dims, dim))
        result.push_back(shape[dim]);
    return OpCase{llvm::formatv("%y = par.reduce {0} %0 dims {1} : {2} to {3}", kind, listOf(dims), typeOf(shape),
                                typeOf(result)),
                  {{shape}},
                  result};
  };
}
inline MakeCase cumulative(const char *kind) {
  return [=](Chooser &choose) {
    Shape shape = choose.anyShape(1, 3);
    return OpCase{llvm::formatv("%y = par.cumulative {0} %0 dim {1} {{exclusive = {2}, reverse = {3}} : {4}", kind,
                                choose.number(0, shape.size() - 1), choose.number(0, 1) ? "true" : "false",
                                choose.number(0, 1) ? "true" : "false", typeOf(shape)),
                  {{shape}},
                  shape};
  };
}
/// Batching, contracting and free dims in any order in either operand.
inline OpCase dotCase(Chooser &choose) {
  Shape batching = choose.shape(choose.number(0, 2)), contracting = choose.shape(choose.number(0, 2));
  Shape left = choose.shape(choose.number(0, 2)), right = choose.shape(choose.number(0, 2));
  auto lay = [&](const Shape &free, Shape &shape, std::vector<int64_t> &batch, std::vector<int64_t> &contract) {
    Shape all = batching;
    all.insert(all.end(), contracting.begin(), contracting.end());
    all.insert(all.end(), free.begin(), free.end());
    // Free dims keep their order: place p[i] of the operand is dim i of `all`.
    std::vector<int64_t> places = choose.permutation(all.size());
    std::sort(places.end() - free.size(), places.end());
    shape.resize(all.size());
    for (size_t i = 0; i < all.size(); ++i)
      shape[places[i]] = all[i];
    batch.assign(places.begin(), places.begin() + batching.size());
    contract.assign(places.begin() + batching.size(), places.end() - free.size());
  };
  Shape lhs, rhs, result = batching;
  std::vector<int64_t> lhsBatch, lhsContract, rhsBatch, rhsContract;
  lay(left, lhs, lhsBatch, lhsContract);
  lay(right, rhs, rhsBatch, rhsContract);
  result.insert(result.end(), left.begin(), left.end());
  result.insert(result.end(), right.begin(), right.end());
  std::string batch =
      batching.empty() ? "" : llvm::formatv("batching {0} x {1} ", listOf(lhsBatch), listOf(rhsBatch)).str();
  return {llvm::formatv("%y = par.dot %0, %1 contracting {0} x {1} {2}: ({3}, {4}) -> {5}", listOf(lhsContract),
                        listOf(rhsContract), batch, typeOf(lhs), typeOf(rhs), typeOf(result)),
          {{lhs}, {rhs}},
          result};
}
inline OpCase gatherCase(Chooser &choose) {
  Shape table = choose.anyShape(1, 3), indices = choose.anyShape(0, 2), result;
  int64_t dim = choose.number(0, table.size() - 1);
  result.assign(table.begin(), table.begin() + dim);
  result.insert(result.end(), indices.begin(), indices.end());
  result.insert(result.end(), table.begin() + dim + 1, table.end());
  return {llvm::formatv("%y = par.gather %0, %1 dim {0} : {1}, {2} to {3}", dim, typeOf(table), typeOf(indices, "i64"),
                        typeOf(result)),
          {{table}, {indices, 0, double(table[dim] - 1), "i64"}},
          result};
}
inline OpCase indexAddCase(Chooser &choose) {
  Shape indices = choose.anyShape(0, 2), before = choose.anyShape(0, 1), after = choose.anyShape(0, 1);
  int64_t size = choose.dim();
  Shape updates = before, result = before;
  updates.insert(updates.end(), indices.begin(), indices.end());
  updates.insert(updates.end(), after.begin(), after.end());
  result.push_back(size);
  result.insert(result.end(), after.begin(), after.end());
  return {llvm::formatv("%y = par.index_add %0, %1 dim {0} size {1} : {2}, {3} to {4}", before.size(), size,
                        typeOf(updates), typeOf(indices, "i64"), typeOf(result)),
          {{updates}, {indices, 0, double(size - 1), "i64"}},
          result};
}
inline OpCase takeCase(Chooser &choose) {
  Shape table = choose.anyShape(1, 3), picked = table;
  int64_t dim = choose.number(0, table.size() - 1);
  picked[dim] = choose.dim();
  return {llvm::formatv("%y = par.take %0, %1 dim {0} : {1}, {2} to {3}", dim, typeOf(table), typeOf(picked, "i64"),
                        typeOf(picked)),
          {{table}, {picked, 0, double(table[dim] - 1), "i64"}},
          picked};
}
inline OpCase scatterAddCase(Chooser &choose) {
  Shape updates = choose.anyShape(1, 3), result = updates;
  int64_t dim = choose.number(0, updates.size() - 1);
  result[dim] = choose.dim();
  return {llvm::formatv("%y = par.scatter_add %0, %1 dim {0} size {1} : {2}, {3} to {4}", dim, result[dim],
                        typeOf(updates), typeOf(updates, "i64"), typeOf(result)),
          {{updates}, {updates, 0, double(result[dim] - 1), "i64"}},
          result};
}

/// Every row has an update, as a scatter that starts from an operand sees to: infinities have no difference
/// quotient.
inline MakeCase scatterReduce(const char *kind) {
  return [=](Chooser &choose) {
    Shape updates = choose.anyShape(1, 3), rest = updates, wide = updates, result = updates;
    int64_t dim = choose.number(0, updates.size() - 1), size = choose.dim();
    rest[dim] = size;
    wide[dim] += size;
    result[dim] = size;
    std::string text = llvm::formatv("%i = par.iota dim {0} : {1}\n%j = par.concat %2, %i dim {0} : ({2}, {1}) -> {3}\n"
                                     "%u = par.concat %0, %1 dim {0} : ({4}, {5}) -> {6}\n"
                                     "%y = par.scatter_reduce {7} %u, %j dim {0} size {8} : {6}, {3} to {5}",
                                     dim, typeOf(rest, "i64"), typeOf(updates, "i64"), typeOf(wide, "i64"),
                                     typeOf(updates), typeOf(rest), typeOf(wide), kind, size);
    return OpCase{text, {{updates}, {rest}, {updates, 0, double(size - 1), "i64"}}, result};
  };
}

//===-- Composites ---------------------------------------------------------------------------===//

inline OpCase softmaxCase(Chooser &choose) {
  Shape shape = choose.anyShape(1, 3);
  return {llvm::formatv("%y = par.softmax %0 dim {0}{1} : {2}", choose.number(0, shape.size() - 1),
                        choose.number(0, 1) ? " safe" : "", typeOf(shape)),
          {{shape}},
          shape};
}
inline OpCase softmaxGradCase(Chooser &choose) {
  OpCase made = softmaxCase(choose);
  made.text = llvm::formatv("%y = par.softmax_grad %0, %1 dim {0} : {1}", choose.number(0, made.result.size() - 1),
                            typeOf(made.result));
  made.inputs.push_back(made.inputs.front());
  return made;
}
/// Shape, trailing dims, leading dims of a layer norm.
struct NormShapes {
  explicit NormShapes(Chooser &choose) : all(choose.anyShape(1, 3)) {
    int64_t count = choose.number(1, all.size());
    trailing.assign(all.end() - count, all.end());
    leading.assign(all.begin(), all.end() - count);
  }
  Shape all, trailing, leading;
};
inline OpCase layerNormCase(Chooser &choose) {
  NormShapes shapes(choose);
  return {
      llvm::formatv("%y, %mean, %rstd = par.layer_norm %0, %1, %2 epsilon 1.0e-2 : ({0}, {1}, {1}) -> ({0}, {2}, {2})",
                    typeOf(shapes.all), typeOf(shapes.trailing), typeOf(shapes.leading)),
      {{shapes.all}, {shapes.trailing}, {shapes.trailing}},
      shapes.all};
}
inline OpCase layerNormGradCase(Chooser &choose) {
  NormShapes shapes(choose);
  return {llvm::formatv("%y = par.layer_norm_grad %0, %1, %2, %3, %4 : ({0}, {0}, {1}, {2}, {2}) -> {0}",
                        typeOf(shapes.all), typeOf(shapes.trailing), typeOf(shapes.leading)),
          {{shapes.all}, {shapes.all}, {shapes.trailing}, {shapes.leading}, {shapes.leading, 0.5, 2}},
          shapes.all};
}
/// Labels from -1 on, which is ignored.
inline MakeCase crossEntropy(bool ofLse) {
  return [=](Chooser &choose) {
    Shape logits = choose.anyShape(1, 3), tokens(logits.begin(), logits.end() - 1);
    return OpCase{llvm::formatv("{0} = par.cross_entropy %0, %1 ignore -1 : ({1}, {2}) -> ({3}, {3})",
                                ofLse ? "%t, %y" : "%y, %lse", typeOf(logits), typeOf(tokens, "i64"), typeOf(tokens)),
                  {{logits}, {tokens, -1, double(logits.back() - 1), "i64"}},
                  tokens};
  };
}
inline OpCase crossEntropyGradCase(Chooser &choose) {
  Shape logits = choose.anyShape(1, 3), tokens(logits.begin(), logits.end() - 1);
  return {llvm::formatv("%y = par.cross_entropy_grad %0, %1, %2, %3 ignore -1 : ({0}, {1}, {2}, {0}) -> {1}",
                        typeOf(tokens), typeOf(logits), typeOf(tokens, "i64")),
          {{tokens}, {logits}, {tokens, -1, double(logits.back() - 1), "i64"}, {tokens}},
          logits};
}
inline OpCase geluGradCase(Chooser &choose) {
  Shape shape = choose.anyShape();
  const char *kind = choose.number(0, 1) ? "{tanh = true} " : "";
  return {llvm::formatv("%y = par.gelu_grad %0, %1 {0}: {1}", kind, typeOf(shape)), {{shape}, {shape}}, shape};
}

/// The n-th result is the one that is compared.
inline OpCase updateCase(Chooser &choose, int64_t states, llvm::StringRef names, llvm::StringRef op,
                         llvm::StringRef attributes, bool counts) {
  Shape shape = choose.anyShape();
  OpCase made{"", {{shape}, {shape}}, shape};
  std::string type = typeOf(shape), types = type + ", " + type, operands = "%0, %1";
  for (int64_t i = 0; i < states; ++i) {
    made.inputs.push_back({shape, 0.1, 2});
    operands += llvm::formatv(", %{0}", 2 + i);
  }
  if (states) // adamw's two states have one type
    types += ", " + type;
  if (counts) {
    types += ", tensor<f64>";
    made.inputs.push_back({{}, 1, 5});
    operands += llvm::formatv(", %{0}", 2 + states);
  }
  made.inputs.push_back({{}, 0.01, 0.5});
  operands += llvm::formatv(", %{0}", made.inputs.size() - 1);
  made.text = llvm::formatv("{0} = par.{1} {2} {3} : {4}, tensor<f64>", names, op, operands, attributes, types);
  return made;
}

/// The same of three rows of a weight, one of which is named by none.
inline OpCase rowsCase(Chooser &choose, int64_t states, llvm::StringRef names, llvm::StringRef op,
                       llvm::StringRef attributes, bool counts) {
  OpCase made = updateCase(choose, states, names, op, attributes, counts);
  Shape shape{choose.number(3, 6), choose.number(1, 3)}, rows{3, shape[1]};
  std::string weight = typeOf(shape);
  for (Input &input : llvm::MutableArrayRef(made.inputs).take_front(2 + states))
    input.shape = shape;
  made.inputs[1].shape = rows;
  made.result = shape;
  std::string scalars = counts ? ", tensor<f64>, tensor<f64>" : ", tensor<f64>";
  std::string operands = llvm::StringRef(made.text).split(" : ").first.str();
  std::string constant = llvm::formatv("%rows = par.constant dense<[{0}, -1, {1}]> : tensor<3xi64>\n", shape[0] - 1,
                                       choose.number(0, shape[0] - 2));
  made.text = llvm::formatv("{0}{1} : {2}, {3}{4}{5} rows %rows : tensor<3xi64>", constant, operands, weight,
                            typeOf(rows), states ? ", " + weight : "", scalars);
  return made;
}

/// Muon of a matrix, wide or tall; the n-th result is the one that is compared.
inline MakeCase muonCase(const char *names, const char *attributes) {
  return [=](Chooser &choose) {
    Shape shape{choose.number(1, 6), choose.number(1, 6)};
    OpCase made{"", {{shape}, {shape}, {shape, 0.1, 2}, {{}, 0.01, 0.5}}, shape};
    made.text = llvm::formatv("{0} = par.muon %0, %1, %2, %3 {1} : {2}, {2}, {2}, tensor<f64>", names, attributes,
                              typeOf(shape));
    return made;
  };
}

inline std::vector<std::pair<std::string, MakeCase>> compositeCases() {
  auto update = [](int64_t states, const char *names, const char *op, const char *attributes, bool counts = true) {
    return [=](Chooser &choose) { return updateCase(choose, states, names, op, attributes, counts); };
  };
  auto rows = [](int64_t states, const char *names, const char *op, const char *attributes, bool counts = true) {
    return [=](Chooser &choose) { return rowsCase(choose, states, names, op, attributes, counts); };
  };
  const char *adamw = "betas 0.9, 0.99 epsilon 1.0e-3 decay 0.1";
  return {{"softmax_grad", softmaxGradCase},
          {"layer_norm_grad", layerNormGradCase},
          {"cross_entropy_grad", crossEntropyGradCase},
          {"gelu_grad", geluGradCase},
          {"attention_grad", attentionGrad(0, false, true)},
          {"attention_grad", attentionGrad(1, true, false)},
          {"attention_grad", attentionGrad(2, true, true)},
          {"sgd", update(0, "%y", "sgd", "decay 0.1", /*counts=*/false)},
          {"momentum", update(1, "%y, %v", "momentum", "momentum 0.9 decay 0.1")},
          {"momentum", update(1, "%w, %y", "momentum", "momentum 0.9 decay 0.1")},
          {"momentum", update(1, "%y, %v", "momentum", "momentum 0.9 decay 0.0 {nesterov = true}")},
          {"adamw", update(2, "%y, %m, %v", "adamw", adamw)},
          {"adamw", update(2, "%w, %y, %v", "adamw", adamw)},
          {"adamw", update(2, "%w, %m, %y", "adamw", adamw)},
          {"lion", update(1, "%y, %m", "lion", "betas 0.9, 0.99 decay 0.1", /*counts=*/false)},
          {"lion", update(1, "%w, %y", "lion", "betas 0.9, 0.99 decay 0.1", /*counts=*/false)},
          {"muon", muonCase("%y, %m", "momentum 0.9 decay 0.1")},
          {"muon", muonCase("%w, %y", "momentum 0.9 decay 0.1")},
          {"muon", muonCase("%y, %m", "momentum 0.8 decay 0.0 {nesterov = false}")},
          {"sgd", rows(0, "%y", "sgd", "decay 0.1", /*counts=*/false)},
          {"lion", rows(1, "%y, %m", "lion", "betas 0.9, 0.99 decay 0.1", /*counts=*/false)},
          {"lion", rows(1, "%w, %y", "lion", "betas 0.9, 0.99 decay 0.1", /*counts=*/false)},
          {"momentum", rows(1, "%y, %v", "momentum", "momentum 0.9 decay 0.1 {nesterov = true}")},
          {"momentum", rows(1, "%w, %y", "momentum", "momentum 0.9 decay 0.1")},
          {"adamw", rows(2, "%y, %m, %v", "adamw", adamw)},
          {"adamw", rows(2, "%w, %m, %y", "adamw", adamw)}};
}

inline std::vector<std::pair<std::string, MakeCase>> differentiableCases() {
  Input positive{{}, 0.2, 3};
  return {{"negate", unary("negate")},
          {"abs", unary("abs")},
          {"sign", unary("sign")},
          {"exp", unary("exp")},
          {"log", unary("log", 0.2, 3)},
          {"sqrt", unary("sqrt", 0.2, 3)},
          {"rsqrt", unary("rsqrt", 0.2, 3)},
          {"reciprocal", unary("reciprocal", 0.2, 3)},
          {"tanh", unary("tanh")},
          {"erf", unary("erf")},
          {"sigmoid", unary("sigmoid")},
          {"sin", unary("sin")},
          {"cos", unary("cos")},
          {"floor", unary("floor", 0.1, 0.9)},
          {"ceil", unary("ceil", 0.1, 0.9)},
          {"atan", unary("atan")},
          {"round", unary("round", 0.6, 1.4)},
          {"add", binary("add")},
          {"subtract", binary("subtract")},
          {"multiply", binary("multiply")},
          {"divide", binary("divide", {}, positive)},
          {"remainder", binary("remainder", {{}, 2.5, 2.9}, {{}, 1, 1.2})},
          {"maximum", binary("maximum")},
          {"minimum", binary("minimum")},
          {"power", binary("power", positive, {})},
          {"select", selectCase},
          {"convert", convertCase},
          {"gelu", geluCase},
          {"constrain", constrainCase},
          {"broadcast_in_dim", broadcastCase},
          {"reshape", reshapeCase},
          {"transpose", transposeCase},
          {"slice", sliceCase},
          {"pad", padCase},
          {"concat", concatCase},
          {"dynamic_slice", dynamicSliceCase},
          {"update_slice", updateSliceCase},
          {"reverse", reverseCase},
          {"reduce", reduce("sum")},
          {"reduce", reduce("max")},
          {"reduce", reduce("min")},
          {"reduce", reduce("product")},
          {"cumulative", cumulative("sum")},
          {"cumulative", cumulative("product")},
          {"dot", dotCase},
          {"gather", gatherCase},
          {"index_add", indexAddCase},
          {"take", takeCase},
          {"scatter_add", scatterAddCase},
          {"scatter_reduce", scatterReduce("max")},
          {"scatter_reduce", scatterReduce("min")},
          {"scatter_reduce", scatterReduce("product")},
          {"scatter_reduce", scatterReduce("sum")},
          {"softmax", softmaxCase},
          {"layer_norm", layerNormCase},
          {"attention", attention(false, false)},
          {"attention", attention(false, true)},
          {"attention", attention(true, false)},
          {"attention", attention(true, true)},
          {"cross_entropy", crossEntropy(false)},
          {"cross_entropy", crossEntropy(true)},
          {"convolution", convolution(false)},
          {"convolution", convolution(true)},
          {"convolution_input_grad", convolutionInputGradCase},
          {"convolution_filter_grad", convolutionFilterGradCase},
          {"patches", patchesCase},
          {"fold_patches", foldPatchesCase},
          {"max_pool", maxPoolCase},
          {"max_pool_grad", maxPoolGradCase}};
}

} // namespace par::test
