// Attention of bf16 and f16 against softmax in f64 and the gradients that differences of it give.
#include "../Cuda/AttentionShapes.h"
#include "par/kernels/LowPrecision.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace par;
using namespace par::kernels;

namespace {

using Numbers = std::vector<double>;

/// q, k, v and a mask as the builtins read them, and in f64.
struct Attended {
  explicit Attended(const toy::Attention &shape) : s(shape) {
    q = random(s.b * s.h * s.sq * s.d), k = random(s.b * s.g * s.sk * s.d), v = random(s.b * s.g * s.sk * s.e);
    ct = random(s.b * s.h * s.sq * s.e);
    int64_t elements = 1;
    for (int64_t dim : s.mask)
      elements *= dim;
    if (!s.mask.empty())
      mask = random(elements);
  }

  float widen(uint16_t x) const { return s.isBF16 ? fromBF16(x) : fromF16(x); }
  /// Offset in the builtins' layout of element `i` of rows of that kind, which are stored here head by head.
  size_t place(char kind, bool written, size_t i) const {
    bool ofKeys = kind == 'k' || kind == 'v';
    size_t width = size_t(kind == 'q' || kind == 'k' ? s.d : s.e), count = size_t(ofKeys ? s.sk : s.sq),
           heads = size_t(ofKeys ? s.g : s.h), row = i / width;
    return s.rows(kind, written).place(row / count / heads, row / count % heads, row % count) + i % width;
  }
  /// In the builtins' layout, with NaN between rows.
  std::vector<uint16_t> narrow(char kind, const Numbers &x) const {
    std::vector<uint16_t> to(s.rows(kind).elements, 0x7fff);
    for (size_t i = 0; i < x.size(); ++i)
      to[place(kind, false, i)] = s.isBF16 ? toBF16(float(x[i])) : toF16(float(x[i]));
    return to;
  }
  Numbers widen(char kind, const std::vector<uint16_t> &x) const {
    const Numbers &like = kind == 'q' ? q : kind == 'k' ? k : kind == 'v' ? v : ct;
    Numbers to;
    for (size_t i = 0; i < like.size(); ++i)
      to.push_back(widen(x[place(kind, true, i)]));
    return to;
  }
  /// Numbers that are not rounded when they are narrowed.
  Numbers random(int64_t count) {
    Numbers x;
    for (int64_t i = 0; i < count; ++i)
      x.push_back(std::uniform_int_distribution<int>(-16, 16)(generator) / 16.0);
    return x;
  }

  double maskAt(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (s.mask.empty())
      return 0;
    int64_t at = 0, dim = 0;
    for (int64_t place : {b, h, i, j}) {
      at = at * s.mask[size_t(dim)] + (s.mask[size_t(dim)] == 1 ? 0 : place);
      ++dim;
    }
    return mask[size_t(at)];
  }
  /// Results and logarithms of sums, row by row.
  void forward(Numbers &out, Numbers &lse) const {
    for (int64_t row = 0; row < s.b * s.h * s.sq; ++row) {
      int64_t b = row / s.sq / s.h, h = row / s.sq % s.h, i = row % s.sq, keys = (b * s.g + h / (s.h / s.g)) * s.sk;
      Numbers p, sum(size_t(s.e), 0);
      double total = 0;
      for (int64_t j = 0; j < (s.causal ? std::min(s.sk, i + 1) : s.sk); ++j) {
        double score = 0;
        for (int64_t d = 0; d < s.d; ++d)
          score += q[size_t(row * s.d + d)] * k[size_t((keys + j) * s.d + d)];
        p.push_back(std::exp(0.25 * score + maskAt(b, h, i, j)));
        total += p.back();
      }
      for (size_t j = 0; j < p.size(); ++j)
        for (int64_t e = 0; e < s.e; ++e)
          sum[size_t(e)] += p[j] / total * v[size_t((keys + int64_t(j)) * s.e + e)];
      out.insert(out.end(), sum.begin(), sum.end());
      lse.push_back(std::log(total));
    }
  }
  /// The results weighted by the cotangent `ct`.
  double objective() const {
    Numbers out, lse;
    forward(out, lse);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i)
      sum += out[i] * ct[i];
    return sum;
  }
  /// Central differences, whose error is far below a rounding of 16 bits.
  Numbers differences(Numbers Attended::*operand) {
    Numbers result;
    for (size_t i = 0; i < (this->*operand).size(); ++i) {
      double old = (this->*operand)[i], step = 1e-4;
      (this->*operand)[i] = old + step;
      double above = objective();
      (this->*operand)[i] = old - step;
      result.push_back((above - objective()) / (2 * step));
      (this->*operand)[i] = old;
    }
    return result;
  }
  void run(const std::string &builtin, std::vector<void *> pointers, std::vector<float> &masks) const {
    if (!s.mask.empty())
      pointers.push_back(masks.data());
    std::vector<uint64_t> imm = s.immediates(builtin == "attention_backward");
    builtinFunction(builtin + s.format())(pointers.data(), imm.data(), 0, 1);
  }

  const toy::Attention &s;
  std::mt19937 generator{7};
  Numbers q, k, v, ct, mask;
};

/// Sums of up to 16 parts below 2, each rounded by 2^-9 or 2^-12.
void expectNear(const Numbers &found, const Numbers &expected, const toy::Attention &shape, const char *what) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], shape.isBF16 ? 0x1p-6 : 0x1p-9) << shape.name << " " << what << " " << i;
}

TEST(Attention, isSoftmaxInF64AndItsDifferences) {
  for (const toy::Attention &shape : toy::attentions) {
    Attended a(shape);
    Numbers wantedOut, wantedLse;
    a.forward(wantedOut, wantedLse);
    std::vector<uint16_t> q = a.narrow('q', a.q), k = a.narrow('k', a.k), v = a.narrow('v', a.v),
                          ct = a.narrow('o', a.ct), out(wantedOut.size()), dq(shape.rows('q', true).elements),
                          dk(a.k.size()), dv(a.v.size());
    std::vector<float> lse(wantedLse.size()), mask(a.mask.begin(), a.mask.end());
    a.run("attention", {q.data(), k.data(), v.data(), out.data(), lse.data()}, mask);
    expectNear(a.widen('o', out), wantedOut, shape, "out");
    for (size_t i = 0; i < lse.size(); ++i)
      ASSERT_NEAR(double(lse[i]), wantedLse[i], 1e-5) << shape.name;
    std::vector<void *> operands{ct.data(),  q.data(),  k.data(),  v.data(), out.data(),
                                 lse.data(), dq.data(), dk.data(), dv.data()};
    operands.resize(operands.size() - (shape.joined ? 2 : 0));
    a.run("attention_backward", operands, mask);
    expectNear(a.widen('q', dq), a.differences(&Attended::q), shape, "dq");
    expectNear(a.widen('k', shape.joined ? dq : dk), a.differences(&Attended::k), shape, "dk");
    expectNear(a.widen('v', shape.joined ? dq : dv), a.differences(&Attended::v), shape, "dv");
  }
}

} // namespace
