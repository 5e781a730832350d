// All implementations of a matmul give the result that a call describes.
#include "par/cpu/Matmul.h"
#include "par/messages/Failure.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace par;

namespace {

format::Call callOf(int64_t m, int64_t n, int64_t k, bool transA, bool transB) {
  format::Call call;
  call.name = "product";
  call.m = m, call.n = n, call.k = k;
  call.transA = transA, call.transB = transB;
  call.lda = transA ? m : k, call.ldb = transB ? k : n, call.ldc = n;
  call.workspace = 1 << 20;
  return call;
}

std::vector<float> randoms(uint64_t n) {
  static std::mt19937 generator(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(n);
  for (float &value : values)
    value = uniform(generator);
  return values;
}

int64_t at(const std::vector<int64_t> &strides, const std::vector<int64_t> &batch, int64_t index) {
  int64_t offset = 0;
  for (size_t d = batch.size(); d-- > 0; index /= batch[d])
    offset += index % batch[d] * strides[d];
  return offset;
}

void expectProduct(const format::Call &call, cpu::MatmulChoice choice, std::vector<float> a = {},
                   std::vector<float> b = {}) {
  if (a.empty())
    a = randoms(call.extent('a'));
  if (b.empty())
    b = randoms(call.extent('b'));
  auto c = randoms(call.extent('c'));
  auto bias = randoms(static_cast<uint64_t>(call.n)), before = c;
  std::vector<std::byte> workspace(call.workspace);
  cpu::makeMatmul(call, choice, "toy")
      ->run(a.data(), b.data(), call.bias ? bias.data() : nullptr, c.data(), workspace.data());
  int64_t matrices = 1;
  for (int64_t size : call.batch)
    matrices *= size;
  for (int64_t i = 0; i < matrices; ++i)
    for (int64_t r = 0; r < call.m; ++r)
      for (int64_t j = 0; j < call.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < call.k; ++k) {
          int64_t ia = at(call.strideA, call.batch, i) + (call.transA ? k * call.lda + r : r * call.lda + k);
          int64_t ib = at(call.strideB, call.batch, i) + (call.transB ? j * call.ldb + k : k * call.ldb + j);
          sum += static_cast<double>(a[static_cast<size_t>(ia)]) * b[static_cast<size_t>(ib)];
        }
        auto ic = static_cast<size_t>(at(call.strideC, call.batch, i) + r * call.ldc + j);
        double expected = call.alpha * sum + call.beta * before[ic] + (call.bias ? bias[static_cast<size_t>(j)] : 0);
        ASSERT_NEAR(c[ic], expected, 1e-4) << cpu::shapeKey(call);
      }
}

class MatmulTest : public testing::TestWithParam<cpu::MatmulChoice> {};

TEST_P(MatmulTest, plainAndTransposed) {
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      expectProduct(callOf(17, 33, 29, transA, transB), GetParam());
}

TEST_P(MatmulTest, accumulatesScalesAndAddsBias) {
  format::Call call = callOf(8, 24, 40, true, false);
  call.beta = 1;
  expectProduct(call, GetParam());
  call.alpha = 0.125;
  expectProduct(call, GetParam());
  call = callOf(9, 16, 12, false, false);
  call.bias = true;
  expectProduct(call, GetParam());
}

// Heads as they lie in [batch, sequence, heads, width], and one matrix for a whole batch.
TEST_P(MatmulTest, batchesByStride) {
  format::Call call = callOf(6, 6, 5, false, true);
  call.batch = {2, 3};
  call.lda = call.ldb = 15;
  call.strideA = call.strideB = {90, 5};
  call.strideC = {108, 36};
  expectProduct(call, GetParam());
  call = callOf(6, 7, 5, false, false);
  call.batch = {4};
  call.strideA = {30}, call.strideB = {0}, call.strideC = {42};
  expectProduct(call, GetParam());
}

/// [rows, columns], in which each row has one of `parts` parts that is not zero.
std::vector<float> expertRows(int64_t rows, int64_t columns, int64_t parts) {
  std::vector<float> values = randoms(static_cast<uint64_t>(rows * columns));
  for (int64_t i = 0; i < rows * columns; ++i)
    if (i % columns / (columns / parts) != i / columns * 7 % parts)
      values[static_cast<size_t>(i)] = 0;
  return values;
}

// Rows of an operand that are zero in blocks are skipped: of A beside either form of B, of a transposed A, and of B.
TEST_P(MatmulTest, skipsRowsOfZeros) {
  for (bool transB : {false, true})
    for (double beta : {0.0, 1.0}) {
      format::Call call = callOf(96, 128, 6 * 256, false, transB);
      call.beta = beta;
      expectProduct(call, GetParam(), expertRows(96, 6 * 256, 6));
    }
  format::Call sums = callOf(5 * 256, 64, 280, true, false);
  sums.beta = 1;
  expectProduct(sums, GetParam(), expertRows(280, 5 * 256, 5));
  std::swap(sums.m, sums.n);
  sums.lda = sums.m, sums.ldb = sums.ldc = sums.n;
  expectProduct(sums, GetParam(), {}, expertRows(280, 5 * 256, 5));
}

// The gradient of the experts' second weights: one tokens' matrix for all, and each expert's columns.
TEST_P(MatmulTest, skipsRowsOfZerosInABatch) {
  constexpr int64_t experts = 3, width = 512;
  format::Call call = callOf(64, width, 520, true, false);
  call.batch = {experts};
  call.ldb = experts * width;
  call.strideA = {0}, call.strideB = {width}, call.strideC = {64 * width};
  expectProduct(call, GetParam(), {}, expertRows(520, experts * width, experts));
}

// A block that looks empty where it is probed and is not is read only to its end: the memory after it cannot be read.
// (Logits' gradients of a batch with half of its labels ignored.)
TEST_P(MatmulTest, readsNoFurtherThanItsOperands) {
  constexpr int64_t rows = 80, columns = 1024, blocks = columns / 256;
  format::Call call = callOf(rows, 256, columns, false, false);
  std::vector<float> values = randoms(call.extent('a')), b = randoms(call.extent('b')), c(call.extent('c'));
  for (int64_t probe = 0; probe < 64; ++probe) {
    int64_t place = (2 * probe + 1) * rows * blocks / 128;
    std::fill_n(values.begin() + place / blocks * columns + place % blocks * 256, 256, 0.0f);
  }
  size_t bytes = values.size() * sizeof(float), page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  ASSERT_EQ(bytes % page, 0u);
  auto *memory =
      static_cast<std::byte *>(mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory + bytes, page, PROT_NONE), 0);
  auto *a = reinterpret_cast<float *>(memory);
  std::copy(values.begin(), values.end(), a);
  std::vector<std::byte> workspace(call.workspace);
  cpu::makeMatmul(call, GetParam(), "toy")->run(a, b.data(), nullptr, c.data(), workspace.data());
  double sum = 0;
  for (int64_t k = 0; k < columns; ++k)
    sum += static_cast<double>(values[static_cast<size_t>(k)]) * b[static_cast<size_t>(k * call.n)];
  EXPECT_NEAR(c[0], sum, 1e-4);
  munmap(memory, bytes + page);
}

// 0 times an infinity is NaN, in a matmul that skips zeros as in one that does not.
TEST_P(MatmulTest, infinitiesMeetTheZeros) {
  format::Call call = callOf(96, 128, 6 * 256, false, false);
  auto a = expertRows(96, 6 * 256, 6), b = randoms(call.extent('b')), c = randoms(call.extent('c'));
  b[5] = INFINITY;
  std::vector<std::byte> workspace(call.workspace);
  cpu::makeMatmul(call, GetParam(), "toy")->run(a.data(), b.data(), nullptr, c.data(), workspace.data());
  for (int64_t row = 0; row < call.m; ++row)
    EXPECT_EQ(std::isnan(c[static_cast<size_t>(row * call.n + 5)]), row % 6 != 0) << row;
}

INSTANTIATE_TEST_SUITE_P(Choices, MatmulTest,
                         testing::Values(cpu::MatmulChoice{}, cpu::MatmulChoice{cpu::MatmulChoice::Primitive},
                                         cpu::MatmulChoice{cpu::MatmulChoice::SgemmByM, 8},
                                         cpu::MatmulChoice{cpu::MatmulChoice::SgemmByK, 8}),
                         [](const auto &choice) {
                           std::string name = cpu::toString(choice.param);
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

TEST(Matmul, refusesOtherTypes) {
  format::Call call = callOf(4, 4, 4, false, false);
  call.type = format::DType::BF16;
  try {
    cpu::makeMatmul(call, {}, "toy.par");
    FAIL();
  } catch (const core::Failure &failure) {
    EXPECT_STREQ(failure.what(),
                 "toy.par: error: call \"product\": oneDNN refused matmul of bf16 (status not supported yet)");
  }
}

// The primitive of a plain matmul needs scratch memory; if the bundle has none, an error says so before any step.
TEST(Matmul, refusesAWorkspaceThatIsTooSmall) {
  format::Call call = callOf(64, 768, 300, false, true);
  call.workspace = 0;
  try {
    cpu::makeMatmul(call, {cpu::MatmulChoice::Primitive}, "toy.par");
  } catch (const core::Failure &failure) {
    std::string said = failure.what();
    EXPECT_TRUE(said.starts_with("toy.par: error: call \"product\" needs a workspace of ")) << said;
    EXPECT_TRUE(said.ends_with(" bytes, the bundle allows 0")) << said;
    return;
  }
  GTEST_SKIP() << "this machine's routine needs no workspace";
}

TEST(Matmul, smallProductsAreNotTried) {
  EXPECT_FALSE(cpu::worthTrying(callOf(64, 64, 64, false, false)));
  EXPECT_EQ(cpu::MatmulTrials().choose(callOf(64, 64, 64, false, false)), cpu::MatmulChoice{});
  EXPECT_TRUE(cpu::worthTrying(callOf(1024, 768, 768, false, false)));
}

TEST(Matmul, choicesAreKeptAsText) {
  for (const char *text : {"sgemm", "primitive", "sgemm by m 384", "sgemm by k 128"}) {
    auto choice = cpu::parseChoice(text);
    ASSERT_TRUE(choice) << text;
    EXPECT_EQ(cpu::toString(*choice), text);
  }
  for (const char *text : {"", "sgemm by k", "sgemm by k 0", "sgemm by k -128", "sgemm by n 128", "sgemm by k 128 ",
                           "sgemm by m 0384", "sgemm by k 99999999999999999999", "Primitive"})
    EXPECT_FALSE(cpu::parseChoice(text)) << text;
}

/// Stretches of this process's memory that hold code and come from no file.
size_t generatedCode() {
  size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    count += line.find('x') < line.find(' ', line.find(' ') + 1) && line.find(" 00:00 0") != std::string::npos &&
             line.find('[') == std::string::npos;
  return count;
}

/// 0 if all holds. To be called in a process that has multiplied nothing.
int multiplyAfterFork() {
  cpu::generateLibraryCode();
  size_t threads = 0;
  for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator("/proc/self/task"))
    ++threads;
  if (threads != 1)
    return 1;
  if (pid_t child = fork(); child > 0) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
  }
  size_t before = generatedCode();
  if (before == 0)
    return 3;
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      expectProduct(callOf(48, 80, 32, transA, transB), {});
  return testing::Test::HasFailure() ? 4 : generatedCode() == before ? 0 : 5;
}

// As a supervisor does for the ranks that it forks, and forks again.
TEST(Matmul, forkedProcessesHaveTheCode) {
  pid_t child = fork();
  if (child == 0)
    _exit(multiplyAfterFork());
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
