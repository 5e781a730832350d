// Each builtin computes its formula (against f64), in any split into tiles, and touches nothing beyond its operands.
#include "par/kernels/Builtins.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>

using namespace par::kernels;

namespace {

/// Memory that ends at a page without access.
class Guarded {
public:
  explicit Guarded(size_t bytes) : whole((bytes + 4095) / 4096 * 4096 + 4096) {
    base = static_cast<char *>(mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base + whole - 4096, 4096, PROT_NONE);
    data = base + whole - 4096 - bytes;
  }
  Guarded(Guarded &&other) noexcept : whole(other.whole), base(other.base), data(other.data) { other.base = nullptr; }
  ~Guarded() {
    if (base)
      munmap(base, whole);
  }
  float *floats() const { return reinterpret_cast<float *>(data); }
  int64_t *integers() const { return reinterpret_cast<int64_t *>(data); }
  void *pointer() const { return data; }

private:
  size_t whole;
  char *base, *data;
};

std::mt19937 generator(7);

std::vector<float> randoms(size_t n, float low = -2, float high = 2) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(n);
  for (float &value : values)
    value = uniform(generator);
  return values;
}

/// Runs a builtin on guarded copies, in one go or tile by tile from the last, and gives the operands back.
struct Call {
  const BuiltinKernel *kernel;
  std::vector<Guarded> memory;
  std::vector<void *> pointers;
  std::vector<uint64_t> imm;

  Call(std::string_view name, std::vector<uint64_t> immediates)
      : kernel(findBuiltin(name)), imm(std::move(immediates)) {}
  template <typename T>
  Call &with(const std::vector<T> &values) {
    memory.emplace_back(values.size() * sizeof(T));
    std::memcpy(memory.back().pointer(), values.data(), values.size() * sizeof(T));
    pointers.push_back(memory.back().pointer());
    return *this;
  }
  Call &run(bool backwards = false) {
    EXPECT_EQ(imm.size(), kernel->immediates.size());
    KernelFunction function = builtinFunction(kernel->name);
    uint32_t tiles = builtinTiles(*kernel, imm);
    if (!backwards)
      function(pointers.data(), imm.data(), 0, tiles);
    for (uint32_t tile = tiles; backwards && tile-- > 0;)
      function(pointers.data(), imm.data(), tile, tile + 1);
    return *this;
  }
  float *out(size_t operand) { return static_cast<float *>(pointers[operand]); }
};

uint64_t real(double value) { return realImmediate(value); }

TEST(Builtins, tableIsWholeAndNamesAreKnown) {
  for (const BuiltinKernel &kernel : builtins()) {
    EXPECT_NE(builtinFunction(kernel.name), nullptr) << kernel.name;
    EXPECT_EQ(findBuiltin(kernel.name), &kernel);
    bool optional = false;
    for (const BuiltinOperand &operand : kernel.operands) {
      EXPECT_FALSE(optional && operand.onlyIf < 0) << kernel.name << ": optional operands come last";
      optional |= operand.onlyIf >= 0;
    }
  }
  EXPECT_EQ(builtinFunction("nothing"), nullptr);
}

TEST(Builtins, adamwIsPyTorchs) {
  size_t n = 20000;
  auto w = randoms(n), g = randoms(n), m = randoms(n), v = randoms(n, 0, 1);
  std::vector<uint64_t> imm{n, real(0.9), real(0.999), real(1e-8), real(0.01), real(0.5), 1};
  Call call("adamw", imm), tiled("adamw", imm);
  for (Call *one : {&call, &tiled})
    one->with(w)
        .with(g)
        .with(m)
        .with(v)
        .with(std::vector<float>{3})
        .with(std::vector<float>{2e-3f})
        .with(std::vector<float>{0.25f})
        .run(one == &tiled);
  double lr = 1e-3, step = 3;
  for (size_t i = 0; i < n; ++i) {
    double gi = g[i] * 0.25, wi = w[i] * (1 - lr * 0.01);
    double mi = 0.9 * m[i] + 0.1 * gi, vi = 0.999 * v[i] + 0.001 * gi * gi;
    wi -= lr / (1 - std::pow(0.9, step)) * mi / (std::sqrt(vi) / std::sqrt(1 - std::pow(0.999, step)) + 1e-8);
    ASSERT_NEAR(call.out(0)[i], wi, 2e-6);
    ASSERT_NEAR(call.out(2)[i], mi, 1e-6);
    ASSERT_NEAR(call.out(3)[i], vi, 1e-6);
    ASSERT_EQ(call.out(0)[i], tiled.out(0)[i]);
  }
}

TEST(Builtins, sgdAndMomentum) {
  size_t n = 1000;
  auto w = randoms(n), g = randoms(n), b = randoms(n);
  Call sgd("sgd", {n, real(0.1), real(1), 0});
  sgd.with(w).with(g).with(std::vector<float>{0.5f}).run();
  Call plain("momentum", {n, real(0.9), real(0.1), 0, real(1), 0});
  plain.with(w).with(g).with(b).with(std::vector<float>{0.5f}).run();
  Call nesterov("momentum", {n, real(0.9), real(0.1), 1, real(1), 1});
  nesterov.with(w).with(g).with(b).with(std::vector<float>{0.5f}).with(std::vector<float>{2}).run();
  for (size_t i = 0; i < n; ++i) {
    double d = g[i] + 0.1 * w[i], buf = 0.9 * b[i] + d, d2 = 2 * g[i] + 0.1 * w[i], buf2 = 0.9 * b[i] + d2;
    ASSERT_NEAR(sgd.out(0)[i], w[i] - 0.5 * d, 1e-6);
    ASSERT_NEAR(plain.out(2)[i], buf, 1e-6);
    ASSERT_NEAR(plain.out(0)[i], w[i] - 0.5 * buf, 2e-6);
    ASSERT_NEAR(nesterov.out(0)[i], w[i] - 0.5 * (d2 + 0.9 * buf2), 3e-6);
  }
}

// The rows that index names are those of the kernel of the whole, in any split into tiles; all others stay.
TEST(Builtins, updatesOfRows) {
  size_t rows = 211, width = 13, n = 140, all = rows * width;
  auto w = randoms(all), m = randoms(all), v = randoms(all, 0, 1), g = randoms(n * width);
  std::vector<int64_t> index(n);
  std::vector<float> whole(all);
  std::vector<bool> touched(all);
  for (size_t i = 0; i < n; ++i) {
    index[i] = i % 7 == 3 ? -1 : i % 11 == 4 ? static_cast<int64_t>(rows) : static_cast<int64_t>((i * 3 + 5) % rows);
    for (size_t j = 0; index[i] >= 0 && index[i] < static_cast<int64_t>(rows) && j < width; ++j) {
      whole[index[i] * width + j] = g[i * width + j];
      touched[index[i] * width + j] = true;
    }
  }
  std::vector<float> lr{0.5f}, step{3}, coef{0.25f};
  for (bool backwards : {false, true}) {
    Call sgd("sgd_rows", {n, width, rows, real(0.1), real(0.5), 0}), sgds("sgd", {all, real(0.1), real(0.5), 0});
    sgd.with(w).with(g).with(lr).with(index).run(backwards);
    sgds.with(w).with(whole).with(lr).run();
    Call momentum("momentum_rows", {n, width, rows, real(0.9), real(0.1), 1, real(1), 1});
    Call momentums("momentum", {all, real(0.9), real(0.1), 1, real(1), 1});
    momentum.with(w).with(g).with(m).with(lr).with(index).with(coef).run(backwards);
    momentums.with(w).with(whole).with(m).with(lr).with(coef).run();
    Call adamw("adamw_rows", {n, width, rows, real(0.9), real(0.99), real(1e-8), real(0.01), real(1), 1});
    Call adamws("adamw", {all, real(0.9), real(0.99), real(1e-8), real(0.01), real(1), 1});
    adamw.with(w).with(g).with(m).with(v).with(step).with(lr).with(index).with(coef).run(backwards);
    adamws.with(w).with(whole).with(m).with(v).with(step).with(lr).with(coef).run();
    for (size_t i = 0; i < all; ++i) {
      ASSERT_EQ(sgd.out(0)[i], touched[i] ? sgds.out(0)[i] : w[i]);
      ASSERT_EQ(momentum.out(0)[i], touched[i] ? momentums.out(0)[i] : w[i]);
      ASSERT_EQ(momentum.out(2)[i], touched[i] ? momentums.out(2)[i] : m[i]);
      ASSERT_EQ(adamw.out(0)[i], touched[i] ? adamws.out(0)[i] : w[i]);
      ASSERT_EQ(adamw.out(2)[i], touched[i] ? adamws.out(2)[i] : m[i]);
      ASSERT_EQ(adamw.out(3)[i], touched[i] ? adamws.out(3)[i] : v[i]);
    }
  }
}

struct Tokens {
  size_t rows = 37, cols = 53;
  std::vector<float> logits = randoms(37 * 53, -20, 20);
  std::vector<int64_t> labels;
  Tokens() {
    for (size_t r = 0; r < rows; ++r)
      labels.push_back(r % 5 == 0 ? -100 : static_cast<int64_t>(r * 7 % cols));
  }
  double lse(size_t r) const {
    double sum = 0;
    for (size_t c = 0; c < cols; ++c)
      sum += std::exp(static_cast<double>(logits[r * cols + c]));
    return std::log(sum);
  }
};

TEST(Builtins, crossEntropyWholeAndBackward) {
  Tokens t;
  std::vector<float> rowsOut(t.rows), all(t.rows * t.cols), dloss = randoms(t.rows);
  auto ignore = static_cast<uint64_t>(-100);
  Call forward("cross_entropy", {t.rows, t.cols, ignore});
  forward.with(t.logits).with(t.labels).with(rowsOut).with(rowsOut).run(true);
  std::vector<float> lse(forward.out(3), forward.out(3) + t.rows);
  Call backward("cross_entropy_backward", {t.rows, t.cols, ignore, 0, t.cols});
  backward.with(t.logits).with(t.labels).with(lse).with(dloss).with(all).run();
  for (size_t r = 0; r < t.rows; ++r) {
    bool counts = t.labels[r] != -100;
    ASSERT_NEAR(lse[r], t.lse(r), 1e-5);
    ASSERT_NEAR(forward.out(2)[r], counts ? t.lse(r) - t.logits[r * t.cols + static_cast<size_t>(t.labels[r])] : 0,
                2e-5);
    for (size_t c = 0; c < t.cols; ++c) {
      double p = std::exp(t.logits[r * t.cols + c] - t.lse(r)) - (static_cast<int64_t>(c) == t.labels[r]);
      ASSERT_NEAR(backward.out(4)[r * t.cols + c], counts ? p * dloss[r] : 0, 1e-5);
    }
  }
}

// After 53 classes come three more elements, which are NaN: they are not read, and those of a gradient are zeros.
TEST(Builtins, crossEntropyOfPaddedRowsIsThatOfTheClasses) {
  Tokens t;
  size_t cols = t.cols + 3;
  std::vector<float> rowsOut(t.rows), padded(t.rows * cols, NAN), all(t.rows * t.cols), dloss = randoms(t.rows);
  for (size_t r = 0; r < t.rows; ++r)
    std::copy_n(&t.logits[r * t.cols], t.cols, &padded[r * cols]);
  auto ignore = static_cast<uint64_t>(-100);
  Call whole("cross_entropy", {t.rows, t.cols, ignore}), longer("cross_entropy_padded", {t.rows, cols, ignore, t.cols});
  whole.with(t.logits).with(t.labels).with(rowsOut).with(rowsOut).run();
  longer.with(padded).with(t.labels).with(rowsOut).with(rowsOut).run();
  std::vector<float> lse(whole.out(3), whole.out(3) + t.rows);
  Call backward("cross_entropy_backward", {t.rows, t.cols, ignore, 0, t.cols});
  backward.with(t.logits).with(t.labels).with(lse).with(dloss).with(all).run();
  Call behind("cross_entropy_backward", {t.rows, cols, ignore, 0, t.cols});
  behind.with(padded).with(t.labels).with(lse).with(dloss).with(padded).run();
  for (size_t r = 0; r < t.rows; ++r) {
    ASSERT_EQ(longer.out(2)[r], whole.out(2)[r]);
    ASSERT_EQ(longer.out(3)[r], lse[r]);
    for (size_t c = 0; c < cols; ++c)
      ASSERT_EQ(behind.out(4)[r * cols + c], c < t.cols ? backward.out(4)[r * t.cols + c] : 0) << r << " " << c;
  }
}

// Three shards of ceil(53/3) = 18 classes, the last with one of padding that holds NaN.
TEST(Builtins, crossEntropyByShardsIsTheWhole) {
  Tokens t;
  size_t local = 18, total = t.cols;
  auto ignore = static_cast<uint64_t>(-100);
  std::vector<float> largest(t.rows, -INFINITY), zeros(t.rows), dloss(t.rows, 1), lse(t.rows);
  for (size_t r = 0; r < t.rows; ++r) {
    lse[r] = static_cast<float>(t.lse(r));
    largest[r] = *std::max_element(&t.logits[r * t.cols], &t.logits[r * t.cols] + t.cols);
  }
  std::vector<double> sums(t.rows), picked(t.rows);
  for (size_t shard = 0; shard < 3; ++shard) {
    std::vector<float> part(t.rows * local, NAN);
    for (size_t r = 0; r < t.rows; ++r)
      for (size_t c = 0; c < local && shard * local + c < total; ++c)
        part[r * local + c] = t.logits[r * t.cols + shard * local + c];
    Call forward("cross_entropy_shard", {t.rows, local, ignore, shard, total});
    forward.with(part).with(t.labels).with(largest).with(zeros).with(zeros).run();
    Call backward("cross_entropy_backward", {t.rows, local, ignore, shard, total});
    backward.with(part).with(t.labels).with(lse).with(dloss).with(part).run();
    for (size_t r = 0; r < t.rows; ++r) {
      sums[r] += forward.out(3)[r];
      picked[r] += forward.out(4)[r];
      for (size_t c = 0; c < local; ++c) {
        auto global = static_cast<int64_t>(shard * local + c);
        bool real = global < static_cast<int64_t>(total) && t.labels[r] != -100;
        double p = real ? std::exp(part[r * local + c] - t.lse(r)) - (global == t.labels[r]) : 0;
        ASSERT_NEAR(backward.out(4)[r * local + c], p, 1e-5);
      }
    }
  }
  for (size_t r = 0; r < t.rows; ++r) {
    ASSERT_NEAR(std::log(sums[r]) + largest[r], t.lse(r), 1e-5);
    ASSERT_NEAR(picked[r], t.labels[r] == -100 ? 0 : t.logits[r * t.cols + static_cast<size_t>(t.labels[r])], 0);
  }
}

TEST(Builtins, gatherAndScatterRows) {
  size_t n = 130, width = 300, rows = 10, shard = 2;
  auto table = randoms(rows * width), values = randoms(n * width);
  std::vector<int64_t> index;
  for (size_t i = 0; i < n; ++i)
    index.push_back(static_cast<int64_t>(i * 13 % 40));
  Call gather("gather_rows", {n, width, rows, shard}), scatter("scatter_add_rows", {n, width, rows, shard});
  gather.with(table).with(index).with(std::vector<float>(n * width, NAN)).run(true);
  scatter.with(table).with(index).with(values).run(true);
  std::vector<float> sums = table;
  for (size_t i = 0; i < n; ++i)
    for (size_t c = 0; c < width; ++c) {
      int64_t row = index[i] - 20;
      bool here = row >= 0 && row < 10;
      ASSERT_EQ(gather.out(2)[i * width + c], here ? table[static_cast<size_t>(row) * width + c] : 0);
      if (here)
        sums[static_cast<size_t>(row) * width + c] += values[i * width + c];
    }
  for (size_t i = 0; i < sums.size(); ++i)
    ASSERT_EQ(scatter.out(0)[i], sums[i]);
}

TEST(Builtins, placeRows) {
  size_t batch = 2, heads = 3, slots = 5, width = 7, count = 2;
  auto kept = randoms(batch * heads * slots * width), rows = randoms(batch * heads * count * width);
  std::vector<int64_t> number{-1, 0, 1, 2, 3, 1, 2, int64_t(1) << 40, -7, 0};
  Call place("place_rows", {batch, heads, slots, width, count});
  place.with(kept).with(rows).with(number).run();
  for (size_t head = 0; head < batch * heads; ++head)
    for (size_t slot = 0; slot < slots; ++slot)
      for (size_t i = 0; i < width; ++i) {
        int64_t row = number[head / heads * slots + slot];
        bool here = row == 0 || row == 1;
        ASSERT_EQ(place.out(0)[(head * slots + slot) * width + i],
                  here ? rows[(head * count + static_cast<size_t>(row)) * width + i]
                       : kept[(head * slots + slot) * width + i]);
      }
}

TEST(Builtins, sumSquaresAndRowMax) {
  auto x = randoms(1037);
  Call sum("sum_squares", {x.size(), real(0.5)});
  sum.with(x).with(std::vector<float>{10}).run();
  double expected = 0;
  for (float value : x)
    expected += 0.5 * value * value;
  EXPECT_NEAR(sum.out(1)[0], 10 + expected, 1e-4);
  Call largest("row_max", {17, 61});
  largest.with(x).with(std::vector<float>(17)).run();
  for (size_t r = 0; r < 17; ++r)
    EXPECT_EQ(largest.out(1)[r], *std::max_element(&x[r * 61], &x[r * 61] + 61));
}

TEST(Builtins, softmaxAndItsGradient) {
  size_t rows = 35, cols = 77;
  auto x = randoms(rows * cols, -30, 30), dy = randoms(rows * cols);
  x[5] = -INFINITY; // a masked place
  Call forward("softmax", {rows, cols}), backward("softmax_backward", {rows, cols});
  forward.with(x).with(x).run(true);
  std::vector<float> y(forward.out(1), forward.out(1) + rows * cols);
  backward.with(y).with(dy).with(y).run();
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0, dot = 0;
    for (size_t c = 0; c < cols; ++c)
      sum += std::exp(static_cast<double>(x[r * cols + c]));
    for (size_t c = 0; c < cols; ++c)
      dot += std::exp(static_cast<double>(x[r * cols + c])) / sum * dy[r * cols + c];
    for (size_t c = 0; c < cols; ++c) {
      double p = std::exp(static_cast<double>(x[r * cols + c])) / sum;
      ASSERT_NEAR(y[r * cols + c], p, 1e-6);
      ASSERT_NEAR(backward.out(2)[r * cols + c], p * (dy[r * cols + c] - dot), 2e-6);
    }
  }
}

TEST(Builtins, softmaxOfNanIsNan) {
  std::vector<float> x(20, 1.0f);
  x[3] = NAN;
  Call call("softmax", {1, 20});
  call.with(x).with(x).run();
  EXPECT_TRUE(std::isnan(call.out(1)[0]));
}

TEST(Builtins, layerNormAndItsGradient) {
  size_t rows = 33, cols = 70;
  double eps = 1e-5;
  auto x = randoms(rows * cols), gamma = randoms(cols), beta = randoms(cols), dy = randoms(rows * cols);
  std::vector<float> perRow(rows), zeros(cols);
  Call forward("layer_norm", {rows, cols, real(eps)});
  forward.with(x).with(gamma).with(beta).with(x).with(perRow).with(perRow).run(true);
  std::vector<float> mean(forward.out(4), forward.out(4) + rows), rstd(forward.out(5), forward.out(5) + rows);
  Call backward("layer_norm_backward", {rows, cols});
  backward.with(x).with(gamma).with(mean).with(rstd).with(dy).with(x).with(zeros).with(zeros).run();
  std::vector<double> dgamma(cols), dbeta(cols);
  for (size_t r = 0; r < rows; ++r) {
    const float *row = &x[r * cols], *d = &dy[r * cols];
    double mu = 0, var = 0, sum = 0, dot = 0;
    for (size_t c = 0; c < cols; ++c)
      mu += row[c] / static_cast<double>(cols);
    for (size_t c = 0; c < cols; ++c)
      var += (row[c] - mu) * (row[c] - mu) / static_cast<double>(cols);
    double scale = 1 / std::sqrt(var + eps);
    for (size_t c = 0; c < cols; ++c) {
      double normal = (row[c] - mu) * scale;
      ASSERT_NEAR(forward.out(3)[r * cols + c], normal * gamma[c] + beta[c], 2e-6);
      sum += d[c] * gamma[c] / static_cast<double>(cols);
      dot += d[c] * gamma[c] * normal / static_cast<double>(cols);
      dgamma[c] += d[c] * normal;
      dbeta[c] += d[c];
    }
    for (size_t c = 0; c < cols; ++c)
      ASSERT_NEAR(backward.out(5)[r * cols + c], (d[c] * gamma[c] - sum - (row[c] - mu) * scale * dot) * scale, 1e-5);
  }
  for (size_t c = 0; c < cols; ++c) {
    ASSERT_NEAR(backward.out(6)[c], dgamma[c], 2e-5);
    ASSERT_NEAR(backward.out(7)[c], dbeta[c], 2e-5);
  }
}

} // namespace
