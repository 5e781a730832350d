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

  /// The heads of a token are adjacent; the query's, the key's and the value's heads are parts of one tensor.
  bool byToken = false;
  /// dq, dk and dv of a token lie side by side in one operand.
  bool joined = false;

  const char *format() const { return isBF16 ? "_bf16" : "_f16"; }
  /// Layout of rows of that kind for the builtins (AttentionTensors).
  kernels::AttentionRows rows(char kind, bool written = false) const {
    bool ofKeys = kind == 'k' || kind == 'v';
    auto heads = static_cast<uint64_t>(ofKeys ? g : h), count = static_cast<uint64_t>(ofKeys ? sk : sq),
         width = static_cast<uint64_t>(kind == 'q' || kind == 'k' ? d : e), batch = static_cast<uint64_t>(b);
    if (!byToken)
      return {batch * heads * count * width, 0, heads * count * width, count * width, width};
    if (joined && written && kind != 'o') {
      uint64_t part = kind == 'q' ? 0 : kind == 'k' ? 1 : 2, all = 3 * heads * width;
      return {batch * count * all, part * heads * width, count * all, width, all};
    }
    uint64_t before = written || kind == 'o' ? 0 : heads * width, token = before + heads * width;
    return {batch * count * token, before, count * token, width, token};
  }
  std::vector<uint64_t> immediates(bool backward) const {
    std::vector<uint64_t> imms;
    auto add = [&](int64_t value) { imms.push_back(static_cast<uint64_t>(value)); };
    for (int64_t size : {b, h, g, sq, sk, d, e})
      add(size);
    add(causal), add(!mask.empty());
    imms.push_back(kernels::realImmediate(0.25));
    for (size_t dim = 0; dim < 4; ++dim)
      add(mask.empty() ? 1 : mask[dim]);
    const auto &[kinds, written] = backward ? kernels::attentionBackward : kernels::attentionForward;
    for (size_t i = 0; i < kinds.size(); ++i) {
      kernels::AttentionRows at = rows(kinds[i], i >= written);
      imms.insert(imms.end(), {at.elements, at.offset, at.batch, at.head, at.row});
    }
    if (backward)
      imms.push_back(!joined);
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
    {"heads by token", 2, 3, 3, 5, 7, 8, 16, false, {}, true, true},
    {"heads by token whose gradients are one tensor", 2, 3, 3, 5, 5, 8, 8, true, {}, true, true, true},
    {"heads by token that share keys", 2, 4, 2, 6, 6, 8, 8, true, {2, 1, 1, 6}, true, true},
};

} // namespace par::toy
