// Attentions of all sorts, small enough for every test: on the stub, planned by the true library.
#pragma once

#include "par/kernels/Builtins.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace par::toy {

/// Sizes of an attention, as the builtins take them.
struct Attention {
  const char *name;
  int64_t b, h, g, sq, sk, d, e;
  bool causal = false;
  std::vector<int64_t> mask = {};
  bool isBF16 = true;

  const char *format() const { return isBF16 ? "_bf16" : "_f16"; }
  std::vector<uint64_t> immediates() const {
    std::vector<uint64_t> imms;
    auto add = [&](int64_t value) { imms.push_back(static_cast<uint64_t>(value)); };
    for (int64_t size : {b, h, g, sq, sk, d, e})
      add(size);
    add(causal), add(!mask.empty());
    imms.push_back(kernels::realImmediate(0.25));
    for (size_t dim = 0; dim < 4; ++dim)
      add(mask.empty() ? 1 : mask[dim]);
    return imms;
  }
};

inline const Attention attentions[] = {
    {"plain", 2, 3, 3, 5, 7, 8, 16},
    {"causal", 2, 2, 2, 6, 6, 16, 16, true},
    {"keys that heads share", 2, 6, 2, 5, 5, 8, 8, true},
    {"a mask of the batch", 2, 2, 2, 4, 6, 8, 8, false, {2, 1, 1, 6}},
    {"a mask of queries and keys", 2, 2, 2, 4, 6, 8, 8, false, {1, 1, 4, 6}},
    {"a mask of batch, queries and keys", 2, 2, 2, 4, 6, 8, 8, false, {2, 1, 4, 6}},
    {"a whole mask", 1, 2, 1, 4, 6, 8, 8, true, {1, 2, 4, 6}},
    {"f16", 1, 2, 2, 4, 4, 8, 8, true, {}, false},
};

} // namespace par::toy
