// Convolutions of all sorts, small enough for every test: on the stub, on a GPU, planned by the true library; and
// larger ones for the latter two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace par::toy {

/// Sizes of a convolution, as the builtins take them.
struct Convolution {
  const char *name;
  int64_t n, groups, c, o;
  std::array<int64_t, 3> in, window, stride, low, high, dilation;

  int64_t out(size_t dim) const {
    return (in[dim] + low[dim] + high[dim] - (window[dim] - 1) * dilation[dim] - 1) / stride[dim] + 1;
  }
  std::vector<uint64_t> immediates() const {
    std::vector<uint64_t> imms;
    auto add = [&](int64_t value) { imms.push_back(static_cast<uint64_t>(value)); };
    add(n), add(groups), add(c), add(o);
    for (const auto &values : {in, window})
      for (int64_t value : values)
        add(value);
    for (size_t dim = 0; dim < 3; ++dim)
      add(out(dim));
    for (const auto &values : {stride, low, high, dilation})
      for (int64_t value : values)
        add(value);
    return imms;
  }
};

inline const Convolution convolutions[] = {
    {"plane", 2, 1, 3, 4, {1, 7, 6}, {1, 3, 3}, {1, 2, 1}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {"groups", 2, 2, 2, 6, {1, 6, 5}, {1, 3, 2}, {1, 1, 2}, {0, 0, 1}, {0, 2, 0}, {1, 2, 1}},
    {"cube", 1, 1, 2, 3, {4, 5, 6}, {3, 3, 3}, {2, 1, 1}, {1, 1, 0}, {1, 1, 0}, {1, 1, 2}},
    {"line", 3, 1, 4, 2, {1, 1, 9}, {1, 1, 4}, {1, 1, 2}, {0, 0, 1}, {0, 0, 0}, {1, 1, 1}},
    {"depth", 2, 6, 1, 6, {1, 8, 8}, {1, 3, 3}, {1, 2, 2}, {0, 0, 0}, {0, 1, 1}, {1, 1, 1}},
    {"point", 2, 1, 5, 4, {1, 4, 4}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}},
};

/// Layers of ResNet-50, two images.
inline const Convolution layers[] = {
    {"stem", 2, 1, 3, 64, {1, 224, 224}, {1, 7, 7}, {1, 2, 2}, {0, 3, 3}, {0, 3, 3}, {1, 1, 1}},
    {"middle", 2, 1, 128, 128, {1, 28, 28}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {"shrink", 2, 1, 256, 512, {1, 28, 28}, {1, 1, 1}, {1, 2, 2}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}},
};

} // namespace par::toy
