// Attention of bf16 and f16, one query after the other in f32. The oracle of what libraries of GPUs compute:
// no loop here is fast.
#include "par/kernels/Builtins.h"
#include "par/kernels/Narrow.h"

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

/// The immediates, by their names in the table, and where rows lie.
struct Sizes {
  explicit Sizes(const uint64_t *imm)
      : b(imm[0]), h(imm[1]), g(imm[2]), sq(imm[3]), sk(imm[4]), d(imm[5]), e(imm[6]), causal(imm[7]),
        masked(imm[8]), scale(float(immediateReal(imm[9]))), mask{imm[10], imm[11], imm[12], imm[13]} {}

  uint64_t queries() const { return b * h * sq; }
  /// Keys that query `i`, counted over batch and heads, meets.
  uint64_t keys(uint64_t i) const { return causal ? std::min(sk, i % sq + 1) : sk; }
  /// The first key's row for that query.
  uint64_t keyRow(uint64_t i) const {
    uint64_t head = i / sq;
    return (head / h * g + head % h / (h / g)) * sk;
  }
  uint64_t maskPlace(uint64_t i, uint64_t j) const {
    const uint64_t place[] = {i / sq / h, i / sq % h, i % sq, j};
    uint64_t offset = 0;
    for (int dim = 0; dim < 4; ++dim)
      offset = offset * mask[dim] + (mask[dim] == 1 ? 0 : place[dim]);
    return offset;
  }

  uint64_t b, h, g, sq, sk, d, e, causal, masked;
  float scale;
  uint64_t mask[4];
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
void store(uint16_t *to, const std::vector<float> &from) {
  std::transform(from.begin(), from.end(), to, Form::store);
}

template <typename Form>
std::vector<float> scoresOf(const Sizes &s, uint64_t i, const uint16_t *q, const uint16_t *k,
                            const float *mask) {
  std::vector<float> scores(s.keys(i));
  for (uint64_t j = 0; j < scores.size(); ++j) {
    scores[j] = s.scale * dot<Form>(q + i * s.d, k + (s.keyRow(i) + j) * s.d, s.d);
    if (s.masked)
      scores[j] += mask[s.maskPlace(i, j)];
  }
  return scores;
}

template <typename Form>
void forward(void *const *ptr, const uint64_t *imm) {
  Sizes s(imm);
  auto in = [&](int operand) { return static_cast<const uint16_t *>(ptr[operand]); };
  for (uint64_t i = 0; i < s.queries(); ++i) {
    std::vector<float> p =
        scoresOf<Form>(s, i, in(0), in(1), s.masked ? static_cast<const float *>(ptr[5]) : nullptr);
    float largest = *std::max_element(p.begin(), p.end()), sum = 0;
    for (float &score : p)
      sum += score = std::exp(score - largest);
    std::vector<float> row(s.e);
    for (uint64_t j = 0; j < p.size(); ++j)
      add<Form>(row.data(), Form::load(Form::store(p[j] / sum)), in(2) + (s.keyRow(i) + j) * s.e, s.e);
    store<Form>(static_cast<uint16_t *>(ptr[3]) + i * s.e, row);
    static_cast<float *>(ptr[4])[i] = std::log(sum) + largest;
  }
}

template <typename Form>
void backward(void *const *ptr, const uint64_t *imm) {
  Sizes s(imm);
  auto in = [&](int operand) { return static_cast<const uint16_t *>(ptr[operand]); };
  const uint16_t *ct = in(0), *q = in(1), *k = in(2), *v = in(3), *out = in(4);
  auto *lse = static_cast<const float *>(ptr[5]);
  std::vector<float> dk(s.b * s.g * s.sk * s.d), dv(s.b * s.g * s.sk * s.e);
  for (uint64_t i = 0; i < s.queries(); ++i) {
    std::vector<float> p =
        scoresOf<Form>(s, i, q, k, s.masked ? static_cast<const float *>(ptr[9]) : nullptr);
    float whole = dot<Form>(ct + i * s.e, out + i * s.e, s.e);
    std::vector<float> dq(s.d);
    for (uint64_t j = 0; j < p.size(); ++j) {
      uint64_t row = s.keyRow(i) + j;
      p[j] = std::exp(p[j] - lse[i]);
      float t = p[j] * (dot<Form>(ct + i * s.e, v + row * s.e, s.e) - whole) * s.scale;
      t = Form::load(Form::store(t));
      add<Form>(dq.data(), t, k + row * s.d, s.d);
      add<Form>(dk.data() + row * s.d, t, q + i * s.d, s.d);
      add<Form>(dv.data() + row * s.e, Form::load(Form::store(p[j])), ct + i * s.e, s.e);
    }
    store<Form>(static_cast<uint16_t *>(ptr[6]) + i * s.d, dq);
  }
  store<Form>(static_cast<uint16_t *>(ptr[7]), dk);
  store<Form>(static_cast<uint16_t *>(ptr[8]), dv);
}

} // namespace

void attentionBF16(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) { forward<BF16>(ptr, imm); }
void attentionF16(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) { forward<F16>(ptr, imm); }
void attentionBackwardBF16(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) {
  backward<BF16>(ptr, imm);
}
void attentionBackwardF16(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) {
  backward<F16>(ptr, imm);
}

} // namespace par::kernels
