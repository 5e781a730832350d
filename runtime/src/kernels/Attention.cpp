// Attention of bf16 and f16, one query after the other in f32. The oracle of GPU libraries: no loop here is fast.
#include "par/kernels/Builtins.h"
#include "par/kernels/LowPrecision.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace par::kernels {
namespace {

struct BF16 {
  static float load(uint16_t x) { return fromBF16(x); }
  static uint16_t store(float x) { return toBF16(x); }
};
struct F16 {
  static float load(uint16_t x) { return fromF16(x); }
  static uint16_t store(float x) { return toF16(x); }
};

/// Queries are counted over batch and heads, keys and values within a head.
struct Sizes : AttentionSizes {
  using AttentionSizes::AttentionSizes;

  uint64_t queries() const { return b * h * sq; }
  /// Keys that query `i` meets.
  uint64_t keys(uint64_t i) const { return causal ? std::min(sk, i % sq + 1) : sk; }
  /// Offset in tensor `index` of the row of query `i`.
  uint64_t query(size_t index, uint64_t i) const { return rows(index).place(i / sq / h, i / sq % h, i % sq); }
  /// Offset of key `j` for that query.
  uint64_t key(size_t index, uint64_t i, uint64_t j) const {
    return rows(index).place(i / sq / h, i / sq % h / (h / g), j);
  }
  /// The number of that key among all.
  uint64_t keyRow(uint64_t i, uint64_t j) const { return (i / sq / h * g + i / sq % h / (h / g)) * sk + j; }
  uint64_t maskPlace(uint64_t i, uint64_t j) const {
    return AttentionSizes::maskPlace(i / sq / h, i / sq % h, i % sq, j);
  }
};

template <typename Form>
float dot(const uint16_t *x, const uint16_t *y, uint64_t n) {
  float sum = 0;
  for (uint64_t i = 0; i < n; ++i)
    sum += Form::load(x[i]) * Form::load(y[i]);
  return sum;
}

/// to += factor x
template <typename Form>
void add(float *to, float factor, const uint16_t *x, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i)
    to[i] += factor * Form::load(x[i]);
}

template <typename Form>
void store(uint16_t *to, const float *from, uint64_t n) {
  std::transform(from, from + n, to, Form::store);
}

/// The operands of one kernel.
struct Operands {
  const uint16_t *in(size_t operand) const { return static_cast<const uint16_t *>(ptr[operand]); }
  uint16_t *out(size_t operand) const { return static_cast<uint16_t *>(ptr[operand]); }
  float *wide(size_t operand) const { return static_cast<float *>(ptr[operand]); }
  void *const *ptr;
};

/// Scores of query `i`; `q` and `k` are indices of tensors, and of their operands.
template <typename Form>
std::vector<float> scoresOf(const Sizes &s, uint64_t i, const Operands &operands, size_t q, size_t k) {
  std::vector<float> scores(s.keys(i));
  for (uint64_t j = 0; j < scores.size(); ++j) {
    scores[j] = float(s.scale) * dot<Form>(operands.in(q) + s.query(q, i), operands.in(k) + s.key(k, i, j), s.d);
    if (s.masked)
      scores[j] += operands.wide(s.maskOperand())[s.maskPlace(i, j)];
  }
  return scores;
}

template <typename Form>
void forward(void *const *ptr, const uint64_t *imm) {
  Sizes s(imm, attentionForward);
  Operands operands{ptr};
  for (uint64_t i = 0; i < s.queries(); ++i) {
    std::vector<float> p = scoresOf<Form>(s, i, operands, 0, 1);
    float largest = *std::max_element(p.begin(), p.end()), sum = 0;
    for (float &score : p)
      sum += score = std::exp(score - largest);
    std::vector<float> row(s.e);
    for (uint64_t j = 0; j < p.size(); ++j)
      add<Form>(row.data(), Form::load(Form::store(p[j] / sum)), operands.in(2) + s.key(2, i, j), s.e);
    store<Form>(operands.out(3) + s.query(3, i), row.data(), s.e);
    operands.wide(4)[i] = std::log(sum) + largest;
  }
}

/// Rows of keys or values, head by head, to where tensor `index` has them.
template <typename Form>
void storeKeys(const Sizes &s, size_t index, uint16_t *to, const std::vector<float> &from, uint64_t width) {
  for (uint64_t row = 0; row < s.b * s.g * s.sk; ++row)
    store<Form>(to + s.rows(index).place(row / s.sk / s.g, row / s.sk % s.g, row % s.sk), from.data() + row * width,
                width);
}

template <typename Form>
void backward(void *const *ptr, const uint64_t *imm) {
  using enum AttentionSizes::BackwardTensor;
  Sizes s(imm, attentionBackward);
  Operands operands{ptr};
  std::vector<float> dk(s.b * s.g * s.sk * s.d), dv(s.b * s.g * s.sk * s.e);
  for (uint64_t i = 0; i < s.queries(); ++i) {
    std::vector<float> p = scoresOf<Form>(s, i, operands, Q, K);
    const uint16_t *ct = operands.in(Ct) + s.query(Ct, i), *q = operands.in(Q) + s.query(Q, i);
    float whole = dot<Form>(ct, operands.in(Out) + s.query(Out, i), s.e);
    std::vector<float> dq(s.d);
    for (uint64_t j = 0; j < p.size(); ++j) {
      uint64_t row = s.keyRow(i, j);
      p[j] = std::exp(p[j] - operands.wide(5)[i]);
      float t = p[j] * (dot<Form>(ct, operands.in(V) + s.key(V, i, j), s.e) - whole) * float(s.scale);
      t = Form::load(Form::store(t));
      add<Form>(dq.data(), t, operands.in(K) + s.key(K, i, j), s.d);
      add<Form>(dk.data() + row * s.d, t, q, s.d);
      add<Form>(dv.data() + row * s.e, Form::load(Form::store(p[j])), ct, s.e);
    }
    store<Form>(operands.out(s.operandOf(Dq)) + s.query(Dq, i), dq.data(), s.d);
  }
  storeKeys<Form>(s, Dk, operands.out(s.operandOf(Dk)), dk, s.d);
  storeKeys<Form>(s, Dv, operands.out(s.operandOf(Dv)), dv, s.e);
}

} // namespace

void attentionBF16(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) { forward<BF16>(ptr, imm); }
void attentionF16(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) { forward<F16>(ptr, imm); }
void attentionBackwardBF16(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) { backward<BF16>(ptr, imm); }
void attentionBackwardF16(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) { backward<F16>(ptr, imm); }

} // namespace par::kernels
