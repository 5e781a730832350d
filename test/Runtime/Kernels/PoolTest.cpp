// Largest elements of windows, and where their cotangents go, against a plain search.
#include "par/kernels/Builtins.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

using namespace par::kernels;

namespace {

/// One dim: input, window, stride, low, high, dilation.
using Dim = std::array<uint64_t, 6>;

struct Pool {
  uint64_t planes;
  std::array<Dim, 3> dims;
  uint64_t windows(int dim) const {
    const Dim &d = dims[dim];
    return (d[0] + d[3] + d[4] - (d[1] - 1) * d[5] - 1) / d[2] + 1;
  }
  std::vector<uint64_t> immediates() const {
    std::vector<uint64_t> imm{planes};
    for (int which : {0, 1, -1, 2, 3, 4, 5})
      for (int dim = 0; dim < 3; ++dim)
        imm.push_back(which < 0 ? windows(dim) : dims[dim][which]);
    return imm;
  }
  uint64_t inputs() const { return dims[0][0] * dims[1][0] * dims[2][0]; }
  uint64_t outputs() const { return windows(0) * windows(1) * windows(2); }

  /// Place of the first largest element of a window within its plane, -1 if none lies inside.
  int64_t find(const float *x, uint64_t window) const {
    int64_t best = -1;
    uint64_t y[3] = {window / windows(2) / windows(1), window / windows(2) % windows(1), window % windows(2)};
    for (uint64_t k0 = 0; k0 < dims[0][1]; ++k0)
      for (uint64_t k1 = 0; k1 < dims[1][1]; ++k1)
        for (uint64_t k2 = 0; k2 < dims[2][1]; ++k2) {
          uint64_t k[3] = {k0, k1, k2};
          int64_t place = 0;
          bool inside = true;
          for (int dim = 0; dim < 3; ++dim) {
            int64_t at = int64_t(y[dim] * dims[dim][2] + k[dim] * dims[dim][5]) - int64_t(dims[dim][3]);
            inside &= at >= 0 && at < int64_t(dims[dim][0]);
            place = place * int64_t(dims[dim][0]) + at;
          }
          if (inside && (best < 0 || x[place] > x[best]))
            best = place;
        }
    return best;
  }
};

class Pools : public testing::TestWithParam<Pool> {};

// Few different values, so that windows have several largest elements.
TEST_P(Pools, findTheFirstLargest) {
  const Pool &pool = GetParam();
  std::vector<uint64_t> imm = pool.immediates();
  std::vector<float> x(pool.planes * pool.inputs()), y(pool.planes * pool.outputs(), 7), dy(y.size()), dx(x.size(), 7);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i * 7 % 5) - 3;
  for (size_t i = 0; i < dy.size(); ++i)
    dy[i] = float(i % 11) - 5;
  std::vector<float> wantedY(y.size(), -std::numeric_limits<float>::infinity()), wantedDx(x.size(), 0);
  for (uint64_t plane = 0; plane < pool.planes; ++plane)
    for (uint64_t window = 0; window < pool.outputs(); ++window) {
      int64_t place = pool.find(x.data() + plane * pool.inputs(), window);
      uint64_t at = plane * pool.outputs() + window;
      if (place < 0)
        continue;
      wantedY[at] = x[plane * pool.inputs() + uint64_t(place)];
      wantedDx[plane * pool.inputs() + uint64_t(place)] += dy[at];
    }
  auto run = [&](const char *name, std::vector<void *> pointers) {
    uint32_t tiles = builtinTiles(*findBuiltin(name), imm);
    for (uint32_t tile = tiles; tile-- > 0;)
      builtinFunction(name)(pointers.data(), imm.data(), tile, tile + 1);
  };
  run("max_pool", {x.data(), y.data()});
  EXPECT_EQ(y, wantedY);
  run("max_pool_grad", {dy.data(), x.data(), y.data(), dx.data()});
  EXPECT_EQ(dx, wantedDx);
  // x may have been computed again since, and be another number in its last bit.
  for (float &value : y)
    value = std::nextafter(value, 9.0f);
  std::fill(dx.begin(), dx.end(), 7.0f);
  run("max_pool_grad", {dy.data(), x.data(), y.data(), dx.data()});
  EXPECT_EQ(dx, wantedDx);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Pools,
                         testing::Values(Pool{3, {{{1, 1, 1, 0, 0, 1}, {9, 3, 2, 1, 1, 1}, {20, 3, 2, 1, 1, 1}}}},
                                         Pool{2, {{{1, 1, 1, 0, 0, 1}, {6, 2, 1, 0, 0, 2}, {37, 2, 1, 1, 0, 3}}}},
                                         Pool{2, {{{5, 2, 2, 1, 0, 1}, {4, 3, 1, 1, 1, 1}, {7, 3, 3, 0, 2, 1}}}},
                                         Pool{1, {{{1, 1, 1, 0, 0, 1}, {1, 1, 1, 0, 0, 1}, {1, 1, 1, 0, 0, 1}}}}));

} // namespace
