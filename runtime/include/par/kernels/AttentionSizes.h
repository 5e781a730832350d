// The immediates of the attention builtins, by name.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace par::kernels {

/// Strided rows of a tensor of heads in an operand of `elements` elements: row i of head h of batch b begins at offset
/// + b batch + h head + i row, and its elements are contiguous.
struct AttentionRows {
  uint64_t elements, offset, batch, head, row;

  constexpr uint64_t place(uint64_t b, uint64_t h, uint64_t i) const { return offset + b * batch + h * head + i * row; }
  /// Whether [b, h, n] rows of that width, none of them 0, lie inside of the operand, those of a head apart.
  constexpr bool fit(uint64_t b, uint64_t h, uint64_t n, uint64_t width) const;
  /// Whether the rows fill the operand without overlap; or `tensors` such tensors do, each `apart` elements after the
  /// one before.
  constexpr bool fill(uint64_t b, uint64_t h, uint64_t n, uint64_t width, uint64_t tensors = 1,
                      uint64_t apart = 0) const;
};

/// Which tensors an attention builtin has rows of, in the order of its immediates: 'q' queries, 'k' keys, 'v' values,
/// 'o' results; those from `written` on it writes.
struct AttentionTensors {
  std::string_view kinds;
  size_t written;
};
inline constexpr AttentionTensors attentionForward{"qkvo", 3}, attentionBackward{"oqkvoqkv", 5};

/// b batches of h heads, g of which have keys and values of their own; sq queries and sk keys of d elements, values of
/// e.
struct AttentionSizes {
  static constexpr size_t scalars = 14, ofRows = 5;
  /// Index among the backward builtins' immediates: whether dk and dv have operands of their own, or lie in that of dq.
  static constexpr size_t apartIndex = scalars + 8 * ofRows;

  constexpr explicit AttentionSizes(std::span<const uint64_t> imms)
      : b(imms[0]), h(imms[1]), g(imms[2]), sq(imms[3]), sk(imms[4]), d(imms[5]), e(imms[6]), causal(imms[7]),
        masked(imms[8]), scale(std::bit_cast<double>(imms[9])), mask{imms[10], imms[11], imms[12], imms[13]},
        places(imms.subspan(scalars)) {}

  /// Immediates of the builtin that has those tensors.
  constexpr AttentionSizes(const uint64_t *imm, const AttentionTensors &tensors)
      : AttentionSizes(std::span(imm, scalars + ofRows * tensors.kinds.size() + (&tensors == &attentionBackward))) {}

  /// Numbers of backward's tensors.
  enum BackwardTensor : size_t { Ct, Q, K, V, Out, Dq, Dk, Dv };
  /// The operand that tensor `index` lies in. Backward's lse follows out; without operands of their own, dk and dv lie
  /// in that of dq.
  constexpr size_t operandOf(size_t index) const { return index <= Out ? index : writesApart() ? index + 1 : Dq + 1; }
  /// The mask's operand, the last one, and its element for the score of a key.
  constexpr size_t maskOperand() const { return isForward() ? 5 : operandOf(Dv) + 1; }
  constexpr uint64_t maskPlace(uint64_t batch, uint64_t head, uint64_t query, uint64_t key) const {
    const uint64_t place[] = {batch, head, query, key};
    uint64_t offset = 0;
    for (size_t dim = 0; dim < 4; ++dim)
      offset = offset * mask[dim] + (mask[dim] == 1 ? 0 : place[dim]);
    return offset;
  }

  /// Rows of tensor `index` of the table: q, k, v, out forward; dout, q, k, v, out, dq, dk, dv backward.
  constexpr AttentionRows rows(size_t index) const {
    std::span<const uint64_t> at = places.subspan(ofRows * index);
    return {at[0], at[1], at[2], at[3], at[4]};
  }
  /// [b, heads, count] rows of that width are the tensors of a kind (AttentionTensors).
  struct Extents {
    uint64_t heads, count, width;
  };
  constexpr Extents extents(char kind) const {
    bool ofKeys = kind == 'k' || kind == 'v';
    return {ofKeys ? g : h, ofKeys ? sk : sq, kind == 'q' || kind == 'k' ? d : e};
  }
  constexpr bool isForward() const { return places.size() == ofRows * attentionForward.kinds.size(); }
  /// True of forward builtins.
  constexpr bool writesApart() const { return places.size() <= 8 * ofRows || places[8 * ofRows] != 0; }
  constexpr bool fit() const;

  uint64_t b, h, g, sq, sk, d, e, causal, masked;
  double scale;
  std::array<uint64_t, 4> mask;

private:
  constexpr bool fitMask() const;
  constexpr bool fillTogether() const;
  std::span<const uint64_t> places;
};

constexpr bool AttentionRows::fit(uint64_t b, uint64_t h, uint64_t n, uint64_t width) const {
  if (n > 1 && row < width) // so that memory bounds n
    return false;
  uint64_t end = offset;
  auto add = [&](uint64_t count, uint64_t stride) {
    uint64_t far = 0;
    return !__builtin_mul_overflow(count, stride, &far) && !__builtin_add_overflow(end, far, &end);
  };
  return add(b - 1, batch) && add(h - 1, head) && add(n - 1, row) && add(1, width) && end <= elements;
}

constexpr bool AttentionRows::fill(uint64_t b, uint64_t h, uint64_t n, uint64_t width, uint64_t tensors,
                                   uint64_t apart) const {
  const uint64_t sizes[] = {b, h, n, tensors}, strides[] = {batch, head, row, apart};
  bool done[] = {false, false, false, false};
  uint64_t inner = width;
  // From the innermost dim outwards, each begins again where those inside of it end.
  for (int step = 0; step < 4; ++step) {
    int next = -1;
    for (int dim = 0; dim < 4; ++dim)
      if (!done[dim] && (sizes[dim] == 1 || strides[dim] == inner))
        next = dim;
    if (next < 0 || __builtin_mul_overflow(inner, sizes[next], &inner))
      return false;
    done[next] = true;
  }
  return offset == 0 && inner == elements;
}

/// Each dim of the mask is that of the scores or 1.
constexpr bool AttentionSizes::fitMask() const {
  const uint64_t scores[] = {b, h, sq, sk};
  for (size_t dim = 0; dim < 4; ++dim)
    if (mask[dim] != 1 && (!masked || mask[dim] != scores[dim]))
      return false;
  return true;
}

/// dq, dk and dv, in any order, are all of one operand.
constexpr bool AttentionSizes::fillTogether() const {
  AttentionRows all[] = {rows(5), rows(6), rows(7)};
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      if (all[j].offset > all[j + 1].offset) {
        AttentionRows first = all[j];
        all[j] = all[j + 1];
        all[j + 1] = first;
      }
  uint64_t apart = all[1].offset;
  for (const AttentionRows &one : all)
    if (one.elements != all[0].elements || one.batch != all[0].batch || one.head != all[0].head ||
        one.row != all[0].row)
      return false;
  return g == h && sk == sq && e == d && all[2].offset == 2 * apart && all[0].fill(b, h, sq, d, 3, apart);
}

/// No size is 0, heads of queries share those of keys evenly, and every row lies in its operand.
constexpr bool AttentionSizes::fit() const {
  for (uint64_t size : {b, h, g, sq, sk, d, e})
    if (size == 0)
      return false;
  if (h % g || causal > 1 || masked > 1 || !fitMask())
    return false;
  const AttentionTensors &tensors = isForward() ? attentionForward : attentionBackward;
  for (size_t index = 0; index < tensors.kinds.size(); ++index) {
    auto [heads, count, width] = extents(tensors.kinds[index]);
    bool alone = index >= tensors.written && writesApart();
    if (!rows(index).fit(b, heads, count, width) || (alone && !rows(index).fill(b, heads, count, width)))
      return false;
  }
  return writesApart() || fillTogether();
}

} // namespace par::kernels
