// Attention of f32 against softmax and its gradient in f64: the shapes of the narrow forms, and sizes around those of
// blocks.
#include "../Cuda/AttentionShapes.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace par;
using namespace par::kernels;

namespace wide_attention {
namespace {

using Numbers = std::vector<double>;

/// Tensors of one attention, head by head, in f64.
struct Tensors {
  Numbers q, k, v, ct, mask;
};

/// Results of an attention, and the cotangents.
struct Attended {
  Numbers out, lse, dq, dk, dv;
};

Numbers random(int64_t count, std::mt19937 &generator) {
  Numbers x;
  for (int64_t i = 0; i < count; ++i)
    x.push_back(std::uniform_int_distribution<int>(-16, 16)(generator) / 16.0); // exact in f32
  return x;
}

Tensors makeTensors(const toy::Attention &s) {
  std::mt19937 generator{7};
  int64_t masks = s.mask.empty() ? 0 : 1;
  for (int64_t dim : s.mask)
    masks *= dim;
  Tensors made;
  made.q = random(s.b * s.h * s.sq * s.d, generator);
  made.k = random(s.b * s.g * s.sk * s.d, generator);
  made.v = random(s.b * s.g * s.sk * s.e, generator);
  made.ct = random(s.b * s.h * s.sq * s.e, generator);
  made.mask = random(masks, generator);
  return made;
}

double dot(const double *x, const double *y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += x[i] * y[i];
  return sum;
}

void add(double *to, double factor, const double *x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[i] += factor * x[i];
}

double maskAt(const toy::Attention &s, const Tensors &x, std::array<int64_t, 4> place) {
  if (s.mask.empty())
    return 0;
  int64_t at = 0;
  for (size_t dim = 0; dim < 4; ++dim)
    at = at * s.mask[dim] + (s.mask[dim] == 1 ? 0 : place[dim]);
  return x.mask[size_t(at)];
}

/// The formulas of par.attention and par.attention_grad, one query after the other.
Attended expected(const toy::Attention &s, const Tensors &x) {
  Attended to{Numbers(x.ct.size()), {}, Numbers(x.q.size()), Numbers(x.k.size()), Numbers(x.v.size())};
  for (int64_t row = 0; row < s.b * s.h * s.sq; ++row) {
    int64_t b = row / s.sq / s.h, h = row / s.sq % s.h, i = row % s.sq, first = (b * s.g + h / (s.h / s.g)) * s.sk;
    const double *q = &x.q[size_t(row * s.d)], *ct = &x.ct[size_t(row * s.e)];
    auto key = [&](auto &of, int64_t j, int64_t width) { return &of[size_t((first + j) * width)]; };
    Numbers p;
    double total = 0;
    for (int64_t j = 0; j < (s.causal ? std::min(s.sk, i + 1) : s.sk); ++j)
      total += p.emplace_back(std::exp(0.25 * dot(q, key(x.k, j, s.d), s.d) + maskAt(s, x, {b, h, i, j})));
    double *out = &to.out[size_t(row * s.e)];
    for (size_t j = 0; j < p.size(); ++j)
      add(out, p[j] /= total, key(x.v, int64_t(j), s.e), s.e);
    to.lse.push_back(std::log(total));
    for (size_t at = 0; at < p.size(); ++at) {
      auto j = int64_t(at);
      double t = 0.25 * p[at] * (dot(ct, key(x.v, j, s.e), s.e) - dot(ct, out, s.e));
      add(&to.dq[size_t(row * s.d)], t, key(x.k, j, s.d), s.d);
      add(key(to.dk, j, s.d), t, q, s.d);
      add(key(to.dv, j, s.e), p[at], ct, s.e);
    }
  }
  return to;
}

/// Offset in the builtins' layout of element `i` of rows of that kind, which are stored here head by head.
size_t place(const toy::Attention &s, char kind, bool written, size_t i) {
  bool ofKeys = kind == 'k' || kind == 'v';
  size_t width = size_t(kind == 'q' || kind == 'k' ? s.d : s.e), count = size_t(ofKeys ? s.sk : s.sq),
         heads = size_t(ofKeys ? s.g : s.h), row = i / width;
  return s.rows(kind, written).place(row / count / heads, row / count % heads, row % count) + i % width;
}

/// In the builtins' layout, with NaN between rows.
std::vector<float> operand(const toy::Attention &s, char kind, const Numbers &x) {
  std::vector<float> to(s.rows(kind).elements, std::numeric_limits<float>::quiet_NaN());
  for (size_t i = 0; i < x.size(); ++i)
    to[place(s, kind, false, i)] = float(x[i]);
  return to;
}

/// Sums of up to 512 products of numbers below 2, each rounded by 2^-24, in the order of a library: found below 2e-6.
constexpr double tolerance = 1e-5;

void expectRows(const toy::Attention &s, char kind, const std::vector<float> &found, const Numbers &wanted,
                const char *what) {
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(double(found[place(s, kind, true, i)]), wanted[i], tolerance) << s.name << " " << what << " " << i;
}

/// All tiles, in calls of so many.
void run(const toy::Attention &s, bool backward, std::vector<void *> pointers, std::vector<float> &mask,
         uint32_t step) {
  if (!mask.empty())
    pointers.push_back(mask.data());
  std::vector<uint64_t> imm = s.immediates(backward);
  const BuiltinKernel &kernel = *findBuiltin(backward ? "attention_backward" : "attention");
  uint32_t tiles = builtinTiles(kernel, imm);
  EXPECT_EQ(tiles, uint32_t(s.b * (backward ? s.g : s.h)));
  for (uint32_t tile = 0; tile < tiles; tile += step)
    builtinFunction(kernel.name)(pointers.data(), imm.data(), tile, std::min(tiles, tile + step));
}

void expectFormulas(const toy::Attention &s, uint32_t step) {
  Tensors x = makeTensors(s);
  Attended wanted = expected(s, x);
  std::vector<float> q = operand(s, 'q', x.q), k = operand(s, 'k', x.k), v = operand(s, 'v', x.v),
                     ct = operand(s, 'o', x.ct), out(wanted.out.size()), lse(wanted.lse.size()),
                     dq(s.rows('q', true).elements), dk(x.k.size()), dv(x.v.size()), mask(x.mask.begin(), x.mask.end());
  run(s, false, {q.data(), k.data(), v.data(), out.data(), lse.data()}, mask, step);
  expectRows(s, 'o', out, wanted.out, "out");
  for (size_t i = 0; i < lse.size(); ++i)
    ASSERT_NEAR(double(lse[i]), wanted.lse[i], 1e-5) << s.name;
  std::vector<void *> operands{ct.data(), q.data(), k.data(), v.data(), out.data(), lse.data(), dq.data()};
  if (!s.joined)
    operands.insert(operands.end(), {dk.data(), dv.data()});
  run(s, true, operands, mask, step);
  expectRows(s, 'q', dq, wanted.dq, "dq");
  expectRows(s, 'k', s.joined ? dq : dk, wanted.dk, "dk");
  expectRows(s, 'v', s.joined ? dq : dv, wanted.dv, "dv");
}

TEST(AttentionF32, HasTheFormulasOfTheNarrowForms) {
  for (const toy::Attention &shape : toy::attentions)
    for (uint32_t step : {1u, 100u})
      expectFormulas(shape, step);
}

TEST(AttentionF32, HasThemAroundTheSizesOfBlocks) {
  const toy::Attention shapes[] = {
      {"two blocks of queries", 1, 1, 1, 257, 31, 5, 3},
      {"a few blocks of queries that share keys", 1, 2, 1, 300, 300, 8, 8, true},
      {"blocks of few queries for the number of keys", 1, 1, 1, 40, 5000, 4, 4},
      {"fewer causal queries than keys", 1, 1, 1, 70, 130, 7, 9, true},
      {"fewer keys than causal queries", 1, 1, 1, 130, 70, 16, 17, true},
      {"one query", 2, 2, 1, 1, 9, 8, 8},
      {"a mask of keys of every query", 1, 1, 1, 129, 65, 8, 8, true, {1, 1, 129, 65}},
      {"a mask of queries alone", 1, 1, 1, 129, 65, 8, 8, false, {1, 1, 129, 1}},
  };
  for (const toy::Attention &shape : shapes)
    expectFormulas(shape, 1);
}

/// As a bundle may say it: rows of one key are nowhere apart.
TEST(AttentionF32, ReadsOneKeyThatHasNoStride) {
  toy::Attention s{"one key", 1, 1, 1, 2, 1, 8, 8};
  Tensors x = makeTensors(s);
  std::vector<float> q = operand(s, 'q', x.q), k = operand(s, 'k', x.k), v = operand(s, 'v', x.v), out(16), lse(2);
  std::vector<uint64_t> imm = s.immediates(false);
  for (size_t tensor : {1, 2})
    imm[AttentionSizes::scalars + AttentionSizes::ofRows * tensor + 4] = 0;
  ASSERT_TRUE(AttentionSizes(imm).fit());
  void *pointers[] = {q.data(), k.data(), v.data(), out.data(), lse.data()};
  builtinFunction("attention")(pointers, imm.data(), 0, 1);
  for (size_t i = 0; i < 16; ++i)
    EXPECT_FLOAT_EQ(out[i], v[i % 8]);
}

/// Slots of a cache after the last token that some query sees are not touched: NaN there goes nowhere.
TEST(AttentionF32, LeavesKeysAfterTheLastShownOne) {
  const float low = std::numeric_limits<float>::lowest();
  toy::Attention s{"a cache", 1, 2, 1, 2, 4, 8, 8, false, {1, 1, 2, 4}};
  Tensors x = makeTensors(s);
  std::vector<float> q = operand(s, 'q', x.q), k = operand(s, 'k', x.k), v = operand(s, 'v', x.v), out(32), lse(4),
                     mask{0, low, low, low, 0, 0, low, low}, same(32);
  run(s, false, {q.data(), k.data(), v.data(), same.data(), lse.data()}, mask, 1);
  for (size_t i = 16; i < 32; ++i)
    k[i] = v[i] = NAN;
  run(s, false, {q.data(), k.data(), v.data(), out.data(), lse.data()}, mask, 1);
  for (size_t i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], same[i]);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_FLOAT_EQ(out[i], v[i]);
}

/// Behind a score of -1e9 f32 has no room for lse: probabilities are those of equal scores, forward and backward.
TEST(AttentionF32, SeesAllKeysWhereAMaskHidesAll) {
  toy::Attention s{"all hidden", 1, 1, 1, 2, 4, 8, 8, false, {1, 1, 1, 4}};
  Tensors x = makeTensors(s);
  std::vector<float> q(16, 0.0f), k = operand(s, 'k', x.k), v = operand(s, 'v', x.v), ct = operand(s, 'o', x.ct),
                                  out(16), lse(2), dq(16), dk(32), dv(32), mask(4, -1e9f);
  run(s, false, {q.data(), k.data(), v.data(), out.data(), lse.data()}, mask, 1);
  run(s, true, {ct.data(), q.data(), k.data(), v.data(), out.data(), lse.data(), dq.data(), dk.data(), dv.data()}, mask,
      1);
  for (size_t e = 0; e < 8; ++e) {
    EXPECT_FLOAT_EQ(out[e], (v[e] + v[8 + e] + v[16 + e] + v[24 + e]) / 4);
    EXPECT_FLOAT_EQ(dv[e], (ct[e] + ct[8 + e]) / 4);
  }
}

} // namespace
} // namespace wide_attention
