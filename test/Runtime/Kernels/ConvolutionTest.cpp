// Convolutions and their gradients by the library, against sums in f64.
#include "par/kernels/Builtins.h"
#include "par/kernels/LowPrecision.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace par::kernels;

namespace {

struct Shape {
  std::vector<uint64_t> imm; ///< as Builtins.h lists them
  uint64_t at(unsigned list, unsigned dim) const { return imm[4 + 3 * list + dim]; }
  uint64_t product(unsigned list) const { return at(list, 0) * at(list, 1) * at(list, 2); }
  uint64_t input() const { return imm[0] * imm[1] * imm[2] * product(0); }
  uint64_t filter() const { return imm[3] * imm[2] * product(1); }
  uint64_t output() const { return imm[0] * imm[3] * product(2); }
};

/// Sizes of n images and groups, channels of one group, outputs; per dim: input, window, stride, low, high, dilation.
Shape make(std::vector<uint64_t> counts, std::vector<std::vector<uint64_t>> dims) {
  Shape shape{std::move(counts)};
  while (dims.size() < 3)
    dims.insert(dims.begin(), {1, 1, 1, 0, 0, 1});
  for (unsigned which : {0, 1})
    for (auto &dim : dims)
      shape.imm.push_back(dim[which]);
  for (auto &dim : dims)
    shape.imm.push_back((dim[0] + dim[3] + dim[4] - (dim[1] - 1) * dim[5] - 1) / dim[2] + 1);
  for (unsigned which : {2, 3, 4, 5})
    for (auto &dim : dims)
      shape.imm.push_back(dim[which]);
  return shape;
}

/// Calls visit(input, filter, output) with the offsets of every multiplication.
template <typename Visit>
void forEachProduct(const Shape &s, Visit visit) {
  uint64_t c = s.imm[2], outputs = s.imm[3], each = outputs / s.imm[1];
  for (uint64_t n = 0; n < s.imm[0]; ++n)
    for (uint64_t o = 0; o < outputs; ++o)
      for (uint64_t i = 0; i < c; ++i)
        for (uint64_t y = 0; y < s.product(2); ++y)
          for (uint64_t k = 0; k < s.product(1); ++k) {
            uint64_t window = y, element = k, position = 0, scale = 1;
            bool inside = true;
            for (int dim = 2; dim >= 0; --dim) {
              int64_t at = int64_t(window % s.at(2, dim) * s.at(3, dim) + element % s.at(1, dim) * s.at(6, dim)) -
                           int64_t(s.at(4, dim));
              inside &= at >= 0 && at < int64_t(s.at(0, dim));
              position += uint64_t(at) * scale;
              scale *= s.at(0, dim);
              window /= s.at(2, dim), element /= s.at(1, dim);
            }
            if (inside)
              visit(((n * s.imm[1] + o / each) * c + i) * s.product(0) + position, (o * c + i) * s.product(1) + k,
                    (n * outputs + o) * s.product(2) + y);
          }
}

std::vector<float> randomsOf(size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(n);
  for (float &value : values)
    value = uniform(generator);
  return values;
}

/// All tiles, from the last to the first.
void run(const std::string &name, void *const *pointers, const Shape &shape) {
  for (uint32_t tile = builtinTiles(*findBuiltin(name), shape.imm); tile-- > 0;)
    builtinFunction(name)(pointers, shape.imm.data(), tile, tile + 1);
}

void compare(const char *name, const Shape &shape, const std::vector<float> &lhs, const std::vector<float> &rhs,
             const std::vector<double> &wanted) {
  std::vector<float> result(wanted.size(), 7);
  void *pointers[] = {const_cast<float *>(lhs.data()), const_cast<float *>(rhs.data()), result.data()};
  run(name, pointers, shape);
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(result[i], wanted[i], 1e-4 * (1 + std::fabs(wanted[i]))) << name << " " << i;
}

/// The forms that keep all in bf16 or f16, against the f32 form on the same values: the result is rounded, and no more.
void compareNarrow(const std::string &name, const Shape &shape, const std::vector<float> &lhs,
                   const std::vector<float> &rhs, size_t size) {
  for (bool brain : {true, false}) {
    auto narrow = [&](float x) { return brain ? toBF16(x) : toF16(x); };
    auto wide = [&](uint16_t x) { return brain ? fromBF16(x) : fromF16(x); };
    std::vector<uint16_t> narrowOperands[2], result(size, 7);
    std::vector<float> operands[2], wanted(size);
    for (int i : {0, 1})
      for (float x : i == 0 ? lhs : rhs) {
        narrowOperands[i].push_back(narrow(x));
        operands[i].push_back(wide(narrow(x)));
      }
    void *pointers[] = {operands[0].data(), operands[1].data(), wanted.data()};
    run(name, pointers, shape);
    void *narrowPointers[] = {narrowOperands[0].data(), narrowOperands[1].data(), result.data()};
    run(name + (brain ? "_bf16" : "_f16"), narrowPointers, shape);
    for (size_t i = 0; i < size; ++i)
      ASSERT_EQ(result[i], narrow(wanted[i])) << name << " " << i << (brain ? " bf16" : " f16");
  }
}

class Convolutions : public testing::TestWithParam<Shape> {};

TEST_P(Convolutions, areSums) {
  const Shape &shape = GetParam();
  std::vector<float> x = randomsOf(shape.input(), 1), w = randomsOf(shape.filter(), 2),
                     dy = randomsOf(shape.output(), 3);
  std::vector<double> y(dy.size()), dx(x.size()), dw(w.size());
  forEachProduct(shape, [&](uint64_t i, uint64_t f, uint64_t o) {
    y[o] += double(x[i]) * w[f];
    dx[i] += double(dy[o]) * w[f];
    dw[f] += double(dy[o]) * x[i];
  });
  for (int repetition = 0; repetition < 2; ++repetition) {
    compare("convolution", shape, x, w, y);
    compare("convolution_input_grad", shape, dy, w, dx);
    compare("convolution_filter_grad", shape, x, dy, dw);
  }
  compareNarrow("convolution", shape, x, w, y.size());
  compareNarrow("convolution_input_grad", shape, dy, w, dx.size());
  compareNarrow("convolution_filter_grad", shape, x, dy, dw.size());
}

// A plain one, one of single elements (small images, and more channels than outputs), blocks of 16 channels and
// outputs, strides with rows that no window meets, gaps (in several bands of patches, with strides, in groups, past
// both ends of an image, in three dims), groups, one channel a group (rows of one vector, of two, of three, of four and
// a bit; windows of 1 to 9; strides, gaps, both; more padding than window; windows that leave columns unread; one dim;
// three dims), one dim, three dims, uneven padding.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Convolutions,
    testing::Values(make({2, 1, 3, 5}, {{7, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}}),
                    make({2, 1, 3, 5}, {{4, 1, 1, 0, 0, 1}, {6, 1, 1, 0, 0, 1}}),
                    make({3, 1, 7, 4}, {{11, 1, 1, 0, 0, 1}, {9, 1, 1, 0, 0, 1}}),
                    make({2, 1, 2, 3}, {{17, 1, 1, 0, 0, 1}, {19, 1, 1, 0, 0, 1}}),
                    make({1, 1, 16, 32}, {{9, 1, 2, 0, 0, 1}, {8, 1, 2, 0, 0, 1}}),
                    make({2, 1, 3, 4}, {{5, 1, 2, 0, 0, 1}, {8, 1, 3, 0, 0, 1}, {7, 1, 1, 0, 0, 1}}),
                    make({2, 1, 32, 48}, {{6, 3, 1, 1, 1, 1}, {5, 2, 1, 1, 1, 1}}),
                    make({3, 1, 2, 4}, {{8, 3, 2, 1, 1, 1}, {9, 2, 3, 0, 0, 1}}),
                    make({2, 1, 2, 3}, {{9, 3, 1, 2, 2, 2}, {9, 2, 2, 0, 1, 3}}),
                    make({1, 1, 8, 2}, {{40, 3, 1, 2, 2, 2}, {64, 3, 1, 2, 2, 2}}),
                    make({2, 2, 2, 4}, {{9, 3, 2, 1, 1, 2}, {8, 3, 3, 2, 2, 2}}),
                    make({2, 4, 1, 4}, {{5, 3, 1, 4, 4, 4}, {3, 2, 1, 1, 1, 2}}),
                    make({1, 1, 2, 3}, {{4, 2, 1, 2, 1, 2}, {5, 1, 2, 1, 1, 3}, {6, 3, 2, 4, 4, 4}}),
                    make({2, 3, 2, 6}, {{5, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}}),
                    make({2, 8, 1, 8}, {{5, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}}),
                    make({2, 3, 1, 3}, {{9, 7, 1, 3, 3, 1}, {16, 7, 1, 3, 3, 1}}),
                    make({1, 2, 1, 2}, {{6, 5, 1, 2, 2, 1}, {27, 5, 1, 2, 2, 1}}),
                    make({1, 2, 1, 2}, {{5, 2, 1, 0, 1, 1}, {40, 4, 1, 1, 2, 1}}),
                    make({1, 2, 1, 2}, {{3, 1, 1, 0, 0, 1}, {70, 9, 1, 4, 4, 1}}),
                    make({2, 3, 1, 3}, {{11, 3, 2, 1, 1, 1}, {57, 3, 2, 1, 1, 1}}),
                    make({2, 3, 1, 3}, {{12, 5, 3, 2, 2, 1}, {35, 6, 4, 0, 1, 1}}),
                    make({1, 2, 1, 2}, {{13, 3, 2, 2, 2, 2}, {29, 3, 3, 4, 1, 4}}),
                    make({1, 2, 1, 2}, {{4, 2, 1, 3, 2, 1}, {5, 2, 2, 4, 3, 1}}),
                    make({1, 2, 1, 2}, {{9, 2, 4, 0, 0, 1}, {19, 1, 5, 0, 0, 1}}),
                    make({2, 4, 1, 4}, {{130, 8, 1, 7, 0, 1}}),
                    make({2, 2, 1, 2}, {{5, 3, 2, 1, 1, 1}, {6, 2, 1, 1, 0, 2}, {18, 3, 2, 0, 2, 1}}),
                    make({2, 1, 3, 4}, {{11, 3, 2, 0, 1, 1}}),
                    make({1, 1, 2, 3}, {{4, 2, 1, 1, 0, 1}, {5, 3, 2, 1, 1, 1}, {3, 3, 1, 1, 1, 1}})));

} // namespace
