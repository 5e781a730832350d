// Convolutions and pools with random windows.
#pragma once

#include "OpCase.h"

namespace par::test {

/// Windows over one to three dims; in some rounds with gaps, uneven padding, and elements that no window has.
struct RandomWindows {
  explicit RandomWindows(Chooser &choose) {
    for (int64_t rank = choose.number(1, 3); rank > 0; --rank) {
      window.push_back(choose.number(1, 3));
      strides.push_back(choose.number(1, 3));
      dilations.push_back(choose.number(1, 2));
      low.push_back(choose.number(-1, 2));
      high.push_back(choose.number(0, 2));
      int64_t span = (window.back() - 1) * dilations.back() + 1;
      int64_t least = std::max<int64_t>(span - low.back() - high.back(), 1 + (low.back() < 0));
      input.push_back(least + choose.number(0, 4));
      output.push_back((input.back() + low.back() + high.back() - span) / strides.back() + 1);
    }
  }
  std::string attributes() const {
    return llvm::formatv("strides {0} low {1} high {2} dilations {3}", listOf(strides), listOf(low), listOf(high),
                         listOf(dilations));
  }
  Shape input, window, output;
  std::vector<int64_t> strides, low, high, dilations;
};

inline Shape joined(Shape first, const Shape &rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

/// Shapes of a convolution's operand, filter and result.
struct RandomConvolution : RandomWindows {
  RandomConvolution(Chooser &choose, bool grouped) : RandomWindows(choose), groups(grouped ? choose.number(2, 3) : 1) {
    Shape sizes = choose.shape(3); // images, channels of a group
    operand = joined({sizes[0], groups * sizes[1]}, input);
    filter = joined({groups * sizes[2], sizes[1]}, window);
    result = joined({sizes[0], groups * sizes[2]}, output);
  }
  OpCase make(llvm::StringRef op, const Shape &lhs, const Shape &rhs, const Shape &to) const {
    return {llvm::formatv("%y = par.{0} %0, %1 {1} groups {2} : ({3}, {4}) -> {5}", op, attributes(), groups,
                          typeOf(lhs), typeOf(rhs), typeOf(to)),
            {{lhs}, {rhs}},
            to};
  }
  int64_t groups;
  Shape operand, filter, result;
};

inline MakeCase convolution(bool grouped) {
  return [=](Chooser &choose) {
    RandomConvolution made(choose, grouped);
    return made.make("convolution", made.operand, made.filter, made.result);
  };
}
inline OpCase convolutionInputGradCase(Chooser &choose) {
  RandomConvolution made(choose, choose.number(0, 1));
  return made.make("convolution_input_grad", made.result, made.filter, made.operand);
}
inline OpCase convolutionFilterGradCase(Chooser &choose) {
  RandomConvolution made(choose, choose.number(0, 1));
  return made.make("convolution_filter_grad", made.operand, made.result, made.filter);
}
inline OpCase patchesCase(Chooser &choose) {
  RandomWindows windows(choose);
  Shape leading = choose.anyShape(0, 2), operand = joined(leading, windows.input);
  Shape result = joined(joined(leading, windows.output), windows.window);
  return {llvm::formatv("%y = par.patches %0 window {0} {1} value 1.5 : f64 : {2} to {3}", listOf(windows.window),
                        windows.attributes(), typeOf(operand), typeOf(result)),
          {{operand}},
          result};
}
inline OpCase foldPatchesCase(Chooser &choose) {
  RandomWindows windows(choose);
  Shape leading = choose.anyShape(0, 2), result = joined(leading, windows.input);
  Shape operand = joined(joined(leading, windows.output), windows.window);
  return {
      llvm::formatv("%y = par.fold_patches %0 {0} : {1} to {2}", windows.attributes(), typeOf(operand), typeOf(result)),
      {{operand}},
      result};
}
/// Padded by less than a window, so that each has an element.
inline RandomWindows poolWindows(Chooser &choose) {
  RandomWindows windows(choose);
  for (size_t dim = 0; dim < windows.window.size(); ++dim) {
    int64_t span = (windows.window[dim] - 1) * windows.dilations[dim] + 1;
    windows.low[dim] = std::min(windows.low[dim], (windows.window[dim] - 1) / 2);
    windows.high[dim] = 0;
    windows.input[dim] = std::max(windows.input[dim], span - windows.low[dim]);
    windows.output[dim] = (windows.input[dim] + windows.low[dim] - span) / windows.strides[dim] + 1;
  }
  return windows;
}
inline OpCase maxPoolCase(Chooser &choose) {
  RandomWindows windows = poolWindows(choose);
  Shape leading = choose.anyShape(0, 2), operand = joined(leading, windows.input);
  Shape result = joined(leading, windows.output);
  return {llvm::formatv("%y = par.max_pool %0 window {0} {1} : {2} to {3}", listOf(windows.window),
                        windows.attributes(), typeOf(operand), typeOf(result)),
          {{operand}},
          result};
}
/// The largest elements are those of the operand: it stays as it is while the cotangent changes.
inline OpCase maxPoolGradCase(Chooser &choose) {
  RandomWindows windows = poolWindows(choose);
  Shape leading = choose.anyShape(0, 2), operand = joined(leading, windows.input);
  Shape result = joined(leading, windows.output);
  std::string attributes = llvm::formatv("window {0} {1}", listOf(windows.window), windows.attributes());
  return {llvm::formatv("%m = par.max_pool %1 {0} : {1} to {2}\n%y = par.max_pool_grad %0, %1, %m {0} : {2}, {1}",
                        attributes, typeOf(operand), typeOf(result)),
          {{result}, {operand}},
          operand};
}

} // namespace par::test
