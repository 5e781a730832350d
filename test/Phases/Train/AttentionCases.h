// Cases of attention: groups of heads, masks of all shapes.
#pragma once

#include "OpCase.h"

namespace par::test {

/// Shapes of the operands, and of a mask some of whose dims are 1.
struct AttentionShapes {
  explicit AttentionShapes(Chooser &choose) {
    Shape sizes = choose.shape(6); // batch, groups, queries, keys, width, width of values
    int64_t heads = sizes[1] * choose.number(1, 2);
    query = {sizes[0], heads, sizes[2], sizes[4]};
    key = {sizes[0], sizes[1], sizes[3], sizes[4]};
    value = {sizes[0], sizes[1], sizes[3], sizes[5]};
    attended = {sizes[0], heads, sizes[2], sizes[5]};
    lse = {sizes[0], heads, sizes[2]};
    mask = {sizes[0], heads, sizes[2], sizes[3]};
    for (int64_t &size : mask)
      if (choose.number(0, 1))
        size = 1;
  }
  Shape query, key, value, attended, lse, mask;
};

inline Input small(const Shape &shape) { return {shape, -1, 1}; }

inline MakeCase attention(bool masked, bool causal) {
  return [=](Chooser &choose) {
    AttentionShapes shapes(choose);
    std::string mask = typeOf(shapes.mask);
    OpCase made{
        llvm::formatv("%y, %lse = par.attention %0, %1, %2 {0}scale 0.3 {{causal = {1}} : ({2}, {3}, {4}{5}) -> "
                      "({6}, {7})",
                      masked ? "mask %3 " : "", causal ? "true" : "false", typeOf(shapes.query), typeOf(shapes.key),
                      typeOf(shapes.value), masked ? ", " + mask : "", typeOf(shapes.attended), typeOf(shapes.lse)),
        {small(shapes.query), small(shapes.key), small(shapes.value)},
        shapes.attended};
    if (masked)
      made.inputs.push_back({shapes.mask});
    return made;
  };
}

/// %y is the cotangent of the query, the key or the value.
inline MakeCase attentionGrad(int result, bool masked, bool causal) {
  return [=](Chooser &choose) {
    AttentionShapes shapes(choose);
    const char *names[] = {"%y, %k, %v", "%q, %y, %v", "%q, %k, %y"};
    const Shape *results[] = {&shapes.query, &shapes.key, &shapes.value};
    std::string query = typeOf(shapes.query), key = typeOf(shapes.key), value = typeOf(shapes.value),
                attended = typeOf(shapes.attended);
    OpCase made{
        llvm::formatv("{0} = par.attention_grad %0, %1, %2, %3, %4, %5 {1}scale 0.3 {{causal = {2}} : ({3}, {4}, "
                      "{5}, {6}, {3}, {7}{8}) -> ({4}, {5}, {6})",
                      names[result], masked ? "mask %6 " : "", causal ? "true" : "false", attended, query, key, value,
                      typeOf(shapes.lse), masked ? ", " + typeOf(shapes.mask) : ""),
        {small(shapes.attended),
         small(shapes.query),
         small(shapes.key),
         small(shapes.value),
         small(shapes.attended),
         {shapes.lse, 1, 3}},
        *results[result]};
    if (masked)
      made.inputs.push_back({shapes.mask});
    return made;
  };
}

} // namespace par::test
