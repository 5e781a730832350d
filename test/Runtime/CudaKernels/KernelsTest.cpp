// Every CUDA kernel gives the results of the CPU builtin of its name: over ragged, tiny and large shapes, aligned or
// not, in place if that is allowed, in two orders of threads and blocks with the same bits. It touches no other memory.
#include "Entries.h"
#include "par/kernels/Builtins.h"
#include "par/kernels/LowPrecision.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace par::kernels;

namespace {

constexpr size_t guard = 64; ///< bytes around each operand
constexpr auto guardByte = std::byte(0xa5);

/// An operand between guards; `offset` bytes past a multiple of 16.
class Memory {
public:
  Memory(size_t bytes, size_t offset) : size(bytes), all(bytes + 2 * guard + 32, guardByte) {
    auto base = reinterpret_cast<uintptr_t>(all.data());
    begin = (base + guard + 15) / 16 * 16 - base + offset;
    std::fill_n(data(), bytes, std::byte(0));
  }
  std::byte *data() { return all.data() + begin; }
  float *floats() { return reinterpret_cast<float *>(data()); }
  uint16_t *halves() { return reinterpret_cast<uint16_t *>(data()); }
  /// Element i as f32.
  float get(std::string_view type, size_t i) {
    return type == "bf16" ? fromBF16(halves()[i]) : type == "f16" ? fromF16(halves()[i]) : floats()[i];
  }
  void set(std::string_view type, size_t i, float value) {
    if (type == "bf16")
      halves()[i] = toBF16(value);
    else if (type == "f16")
      halves()[i] = toF16(value);
    else
      floats()[i] = value;
  }
  int64_t *integers() { return reinterpret_cast<int64_t *>(data()); }
  std::vector<std::byte> bytes() { return {data(), data() + size}; }
  bool isWhole() {
    auto intact = [](std::byte byte) { return byte == guardByte; };
    return std::all_of(all.begin(), all.begin() + begin, intact) &&
           std::all_of(all.begin() + begin + size, all.end(), intact);
  }
  size_t size;

private:
  Bytes all;
  size_t begin;
};

using Immediates = std::vector<uint64_t>;

struct Case {
  std::string_view name;
  Immediates imm;
  float tolerance = 0;                ///< relative to 1 + |expected|; 0: the same bits
  std::map<size_t, size_t> same = {}; ///< operand that is another one's memory
  bool aligned = true;
  int64_t labels = 0; ///< integers are drawn from [-1, labels)
};

class Operands {
public:
  Operands(const Case &test, std::mt19937 &random) : kernel(*findBuiltin(test.name)) {
    for (size_t i = 0; i < kernel.operands.size(); ++i) {
      const BuiltinOperand &operand = kernel.operands[i];
      if (!isPresent(operand, test.imm))
        continue;
      size_t count = operandElements(kernel, i, test.imm);
      size_t bytes = typeBytes(operand.type);
      memory.emplace_back(count * bytes, test.aligned ? 0 : bytes == 8 ? 8 : random() % 4 * bytes);
      of.push_back(test.same.contains(i) ? of[test.same.at(i)] : memory.size() - 1);
      if (bytes == 8)
        fillIntegers(memory.back().integers(), count, test.labels, random);
      else
        fill(operand, memory.back(), count, random);
    }
  }
  void *at(size_t operand) { return memory[of[operand]].data(); }
  size_t count() const { return of.size(); }
  Memory &memoryOf(size_t operand) { return memory[of[operand]]; }

  const BuiltinKernel &kernel;
  std::vector<Memory> memory;

private:
  static void fillIntegers(int64_t *to, size_t count, int64_t labels, std::mt19937 &random) {
    // Half of them from a few values, so that some come often.
    for (size_t i = 0; i < count; ++i)
      to[i] = int64_t(random() % uint64_t(i % 2 && labels > 4 ? 5 : labels + 1)) - 1;
  }
  static void fill(const BuiltinOperand &operand, Memory &to, size_t count, std::mt19937 &random) {
    std::string_view name = operand.name;
    std::uniform_real_distribution<float> uniform(-2, 2), positive(0.1f, 1.5f), exponent(4, 12);
    for (size_t i = 0; i < count; ++i)
      to.set(operand.type, i,
             name == "step"                   ? 7.0f
             : name == "v" || name == "rstd"  ? positive(random)
             : name == "lr"                   ? 2e-3f
             : name == "lse" || name == "max" ? exponent(random)
                                              : uniform(random));
  }

  std::vector<size_t> of;
};

void runOnCpu(const Case &test, Operands &operands) {
  std::vector<void *> pointers;
  for (size_t i = 0; i < operands.count(); ++i)
    pointers.push_back(operands.at(i));
  builtinFunction(test.name)(pointers.data(), test.imm.data(), 0, builtinTiles(operands.kernel, test.imm));
}

void runOnDevice(const Case &test, Operands &operands, uint64_t seed) {
  auto launch = cudaLaunch(test.name, test.imm);
  ASSERT_TRUE(launch);
  Memory scratch(launch->scratch, 0);
  std::fill_n(scratch.data(), scratch.size, std::byte(0xff));
  std::vector<uint64_t> parameters;
  for (size_t i = 0; i < operands.count(); ++i)
    parameters.push_back(reinterpret_cast<uint64_t>(operands.at(i)));
  if (launch->scratch > 0)
    parameters.push_back(reinterpret_cast<uint64_t>(scratch.data()));
  parameters.insert(parameters.end(), test.imm.begin(), test.imm.end());
  for (const CudaStage &stage : launch->stages())
    launchEntry(stage, parameters, seed);
  EXPECT_TRUE(scratch.isWhole()) << "scratch";
}

/// Results in bf16 and f16 may be rounded to the neighbour, where the sums before differ a little, but
/// seldom.
void compare(const Case &test, Memory &got, Memory &expected, const BuiltinOperand &operand) {
  float ulp = operand.type == "bf16" ? 1.0f / 128 : operand.type == "f16" ? 1.0f / 1024 : 0;
  size_t count = got.size / typeBytes(operand.type), different = 0;
  for (size_t i = 0; i < count; ++i) {
    float x = got.get(operand.type, i), y = expected.get(operand.type, i);
    if (std::isnan(x) && std::isnan(y))
      continue;
    different += x != y;
    if (test.tolerance == 0 || std::isinf(y))
      ASSERT_EQ(x, y) << operand.name << "[" << i << "]";
    else
      ASSERT_NEAR(x, y, (test.tolerance + ulp) * std::abs(y) + test.tolerance) << operand.name << "[" << i << "]";
  }
  if (ulp > 0 && count >= 100) {
    EXPECT_LE(different, count / 20) << operand.name << " is rounded otherwise";
  }
}

using Prepare = std::function<void(Operands &)>;

void check(const Case &test, const Prepare &prepare = {}) {
  std::string text(test.name);
  for (uint64_t imm : test.imm)
    text += " " + (imm >> 52 ? std::to_string(immediateReal(imm)) : std::to_string(imm));
  SCOPED_TRACE(text + (test.aligned ? "" : " unaligned"));
  static std::mt19937 random(11);
  Operands cpu(test, random);
  if (prepare)
    prepare(cpu);
  Operands before(test, random), device(test, random), again(test, random);
  for (Operands *copy : {&before, &device, &again})
    for (size_t i = 0; i < cpu.memory.size(); ++i)
      std::copy_n(cpu.memory[i].data(), cpu.memory[i].size, copy->memory[i].data());
  runOnCpu(test, cpu);
  ASSERT_NO_THROW(runOnDevice(test, device, 1));
  ASSERT_NO_THROW(runOnDevice(test, again, 2));
  for (size_t i = 0; i < cpu.memory.size(); ++i) {
    EXPECT_TRUE(device.memory[i].isWhole()) << "operand memory " << i;
    // Unaligned operands lie differently each time; then sums may be split differently.
    if (test.aligned) {
      EXPECT_EQ(device.memory[i].bytes(), again.memory[i].bytes()) << "two orders of threads";
    }
  }
  for (size_t i = 0; i < cpu.count(); ++i) {
    const BuiltinOperand &operand = cpu.kernel.operands[i];
    bool shared = std::ranges::any_of(test.same, [&](auto pair) { return pair.second == i; });
    if (operand.access == Access::Read && !shared)
      EXPECT_EQ(device.memoryOf(i).bytes(), before.memoryOf(i).bytes()) << operand.name << " is only read";
    else if (operand.type != "i64")
      compare(test, device.memoryOf(i), cpu.memoryOf(i), operand);
  }
}

/// In f32, bf16 and f16.
void checkForms(Case test, const Prepare &prepare = {}) {
  check(test, prepare);
  for (std::string_view type : {"_bf16", "_f16"}) {
    Case form = test;
    const BuiltinKernel *kernel = findBuiltin(std::string(test.name) + std::string(type));
    ASSERT_TRUE(kernel) << test.name << type;
    form.name = kernel->name;
    check(form, prepare);
  }
}

uint64_t real(double value) { return realImmediate(value); }

/// Rows and columns: one, primes, a warp's and a block's limits, a vocabulary.
const std::vector<std::pair<uint64_t, uint64_t>> shapes{{1, 1},    {3, 2},    {5, 7},    {4, 64},
                                                        {9, 127},  {6, 768},  {2, 1024}, {3, 1028},
                                                        {2, 1601}, {1, 8192}, {2, 8195}, {1, 50257}};

TEST(CudaKernels, optimizers) {
  for (uint64_t n : {1, 3, 255, 4096, 4099, 9001})
    for (uint64_t coef : {0, 1})
      for (bool aligned : {true, false}) {
        check({"adamw", {n, real(0.9), real(0.95), real(1e-8), real(0.1), real(0.5), coef}, 1e-6f, {}, aligned});
        check({"sgd", {n, real(0.01), real(2), coef}, 1e-6f, {}, aligned});
        check({"momentum", {n, real(0.9), real(0.01), coef, real(0.5), coef}, 1e-6f, {}, aligned});
      }
}

TEST(CudaKernels, optimizersOfRows) {
  // No row twice; some of none, before and after.
  auto distinct = [](size_t index) {
    return [=](Operands &operands) {
      int64_t *rows = operands.memoryOf(index).integers();
      size_t many = operands.memoryOf(index).size / sizeof(int64_t);
      for (size_t i = 0; i < many; ++i)
        rows[i] = i % 5 == 3 ? -1 : int64_t(many - i);
    };
  };
  struct Sizes {
    uint64_t n, width, rows;
  };
  for (auto [n, width, rows] : {Sizes{1, 1, 3}, {7, 5, 9}, {100, 64, 70}, {33, 768, 40}, {5, 1029, 6}})
    for (uint64_t coef : {0, 1})
      for (bool aligned : {true, false}) {
        check({"adamw_rows",
               {n, width, rows, real(0.9), real(0.95), real(1e-8), real(0.1), real(0.5), coef},
               1e-6f,
               {},
               aligned},
              distinct(6));
        check({"sgd_rows", {n, width, rows, real(0.01), real(2), coef}, 1e-6f, {}, aligned}, distinct(3));
        check({"momentum_rows", {n, width, rows, real(0.9), real(0.01), coef, real(0.5), coef}, 1e-6f, {}, aligned},
              distinct(4));
      }
}

TEST(CudaKernels, crossEntropy) {
  for (auto [rows, cols] : shapes)
    for (bool aligned : {true, false}) {
      Case test{"cross_entropy", {rows, cols, uint64_t(-1)}, 3e-6f, {}, aligned, int64_t(cols)};
      checkForms(test);
    }
}

// Elements after the classes are not read.
TEST(CudaKernels, crossEntropyOfPaddedRows) {
  for (auto [rows, total] : shapes)
    for (uint64_t padding : {1, 5, 64}) {
      uint64_t cols = total + padding;
      auto spoil = [&](Operands &operands) {
        for (size_t i = 0; i < rows * cols; ++i)
          if (i % cols >= total)
            operands.memoryOf(0).set(operands.kernel.operands[0].type, i, NAN);
      };
      checkForms({"cross_entropy_padded", {rows, cols, uint64_t(-1), total}, 3e-6f, {}, true, int64_t(total)}, spoil);
      checkForms({"cross_entropy_backward", {rows, cols, uint64_t(-1), 0, total}, 3e-6f, {}, true, int64_t(total)},
                 spoil);
    }
}

TEST(CudaKernels, crossEntropyShards) {
  for (auto [rows, cols] : shapes)
    for (uint64_t shard : {0, 1}) {
      // The second shard is padded.
      uint64_t total = cols + cols / 2;
      Immediates imm{rows, cols, uint64_t(-1), shard, total};
      checkForms({"cross_entropy_shard", imm, 3e-6f, {}, true, int64_t(total)});
      checkForms({"cross_entropy_backward", imm, 3e-6f, {}, shard == 0, int64_t(total)});
      checkForms({"cross_entropy_backward", imm, 3e-6f, {{4, 0}}, true, int64_t(total)});
    }
  checkForms({"cross_entropy_shard", {3, 8, uint64_t(-1), 3, 17}, 3e-6f, {}, true, 17}); // all padding
}

TEST(CudaKernels, softmaxAndItsGradient) {
  for (auto [rows, cols] : shapes)
    for (bool aligned : {true, false}) {
      checkForms({"softmax", {rows, cols}, 2e-6f, {}, aligned});
      check({"softmax", {rows, cols}, 2e-6f, {{1, 0}}, aligned});
      // So that the sum of y dy is about 1.
      auto shrink = [n = rows * cols, by = std::sqrt(float(cols))](Operands &operands) {
        std::string_view type = operands.kernel.operands[0].type;
        for (size_t i = 0; i < n; ++i)
          operands.memoryOf(0).set(type, i, operands.memoryOf(0).get(type, i) / by);
      };
      checkForms({"softmax_backward", {rows, cols}, 5e-6f, {}, aligned}, shrink);
      check({"softmax_backward", {rows, cols}, 5e-6f, {{2, 1}}, aligned}, shrink);
    }
}

TEST(CudaKernels, softmaxOfMaskedRows) {
  for (uint64_t cols : {5, 64, 2000})
    checkForms({"softmax", {4, cols}, 2e-6f}, [&](Operands &operands) {
      for (uint64_t r = 0; r < 4; ++r) // the last row keeps nothing
        for (uint64_t i = r == 3 ? 0 : r + 1; i < cols; ++i)
          operands.memoryOf(0).set(operands.kernel.operands[0].type, r * cols + i, -INFINITY);
    });
}

TEST(CudaKernels, rowMax) {
  for (auto [rows, cols] : shapes)
    for (bool aligned : {true, false}) {
      checkForms({"row_max", {rows, cols}, 0, {}, aligned});
      checkForms({"row_max", {rows, cols}, 0, {}, aligned}, [&](Operands &operands) {
        std::string_view type = operands.kernel.operands[0].type;
        operands.memoryOf(0).set(type, rows * cols / 2, NAN);
        operands.memoryOf(0).set(type, 0, -INFINITY);
      });
    }
}

TEST(CudaKernels, layerNorm) {
  for (auto [rows, cols] : shapes)
    for (bool aligned : {true, false})
      checkForms({"layer_norm", {rows, cols, real(1e-5)}, 2e-5f, {}, aligned});
}

TEST(CudaKernels, layerNormBackward) {
  for (auto [rows, cols] : shapes) {
    if (cols > 1024) // the second stage has a thread for each part of each column
      continue;
    checkForms({"layer_norm_backward", {rows, cols}, 1e-4f});
    check({"layer_norm_backward", {rows, cols}, 1e-4f, {}, false});
  }
  checkForms({"layer_norm_backward", {67, 36}, 1e-4f, {}, false});
  check({"layer_norm_backward", {9, 4100}, 1e-4f});      // sums that shared memory does not hold
  check({"layer_norm_backward", {4096 + 13, 4}, 3e-4f}); // more tiles than blocks
}

TEST(CudaKernels, gatherAndScatterRows) {
  struct Sizes {
    uint64_t n, width, rows, shard;
  };
  for (auto [n, width, rows, shard] : {Sizes{1, 1, 1, 0},
                                       {7, 5, 3, 0},
                                       {33, 64, 10, 1},
                                       {3000, 12, 40, 0},
                                       {100, 768, 65, 1},
                                       {64, 1028, 5, 0},
                                       {5000, 3, 2, 0},
                                       {17, 300, 131, 0}})
    for (bool aligned : {true, false}) {
      Immediates imm{n, width, rows, shard};
      auto indices = int64_t((shard + 1) * rows + 2);
      check({"gather_rows", imm, 0, {}, aligned, indices});
      check({"scatter_add_rows", imm, 0, {}, aligned, indices});
    }
}

TEST(CudaKernels, sumSquares) {
  for (uint64_t n : {1, 6, 511, 4096, 32768, 32769, 150001})
    for (bool aligned : {true, false})
      check({"sum_squares", {n, real(0.5)}, 1e-6f, {}, aligned});
}

/// planes, then for each of the three dims input, window, output, stride, low, high, dilation.
Immediates pool(uint64_t planes, std::array<std::array<uint64_t, 6>, 3> dims) {
  Immediates imm(22);
  imm[0] = planes;
  for (size_t dim = 0; dim < 3; ++dim) {
    auto [in, window, stride, low, high, dilation] = dims[dim];
    uint64_t out = (in + low + high - (window - 1) * dilation - 1) / stride + 1;
    for (auto [place, value] : {std::pair<size_t, uint64_t>{1, in},
                                {4, window},
                                {7, out},
                                {10, stride},
                                {13, low},
                                {16, high},
                                {19, dilation}})
      imm[place + dim] = value;
  }
  return imm;
}

TEST(CudaKernels, pools) {
  std::array<uint64_t, 6> none{1, 1, 1, 0, 0, 1};
  for (const Immediates &imm :
       {pool(3, {none, none, {7, 2, 2, 0, 0, 1}}), pool(2, {none, {9, 3, 2, 1, 1, 1}, {12, 3, 2, 1, 1, 1}}),
        pool(1, {{{4, 2, 1, 1, 0, 1}, {6, 2, 3, 0, 1, 2}, {5, 3, 1, 2, 2, 2}}}),
        pool(2, {none, {30, 5, 3, 2, 2, 1}, {31, 4, 1, 1, 2, 1}}),
        pool(1, {none, none, {26000, 3, 1, 1, 0, 1}}), // too many windows for one block to keep their places
        pool(1, {none, {1, 1, 1, 0, 0, 1}, {1, 1, 1, 0, 0, 1}})}) {
    check({"max_pool", imm});
    // Equal elements: the first of a window has the gradient.
    check({"max_pool_grad", imm}, [&](Operands &operands) {
      Memory &x = operands.memoryOf(1), &y = operands.memoryOf(2);
      for (size_t i = 0; i < x.size / 4; ++i)
        x.floats()[i] = std::round(x.floats()[i]);
      // The saved result of another rounding: no gradient is lost.
      const void *pointers[]{x.data(), y.data()};
      builtinFunction("max_pool")(const_cast<void *const *>(pointers), imm.data(), 0, uint32_t(imm[0]));
      for (size_t i = 0; i < y.size / 4; ++i)
        y.floats()[i] = std::nextafter(y.floats()[i], 9.0f);
    });
    // The last NaN of a window has it, and no other element.
    check({"max_pool_grad", imm}, [&](Operands &operands) {
      Memory &x = operands.memoryOf(1);
      for (size_t i = 0; i < x.size / 4; ++i)
        x.floats()[i] = i % 7 == 3 ? std::nanf("") : i % 5 == 1 ? -INFINITY : std::round(x.floats()[i]);
    });
  }
}

} // namespace
