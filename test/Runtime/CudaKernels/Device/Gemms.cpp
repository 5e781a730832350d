// The library's matmuls with epilogues, on a GPU against the same in f64: every algorithm that it proposes, sums of
// operands also separately. The same bits each time.
#include "par/cuda/blas/Gemm.h"
#include "par/kernels/LowPrecision.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace par;
using format::DType;
using format::Epilogue;

namespace {

using Numbers = std::vector<double>;
using Bytes = std::vector<std::byte>;

constexpr int64_t m = 96, n = 200, k = 1024;
/// Bounds of sums in f32, and of GELU by the GPU's own tanh, which is exact to 2^-11.
constexpr double sumBound = 1e-5, tanhBound = 0x1p-10;

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double geluSlope(double x) {
  double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

Bytes pack(DType type, const Numbers &numbers) {
  Bytes bytes(numbers.size() * format::sizeOf(type));
  for (size_t i = 0; i < numbers.size(); ++i) {
    auto wide = static_cast<float>(numbers[i]);
    uint16_t narrow = type == DType::BF16 ? kernels::toBF16(wide) : kernels::toF16(wide);
    type == DType::F32 ? std::memcpy(&bytes[4 * i], &wide, 4) : std::memcpy(&bytes[2 * i], &narrow, 2);
  }
  return bytes;
}

Numbers unpack(DType type, const Bytes &bytes) {
  Numbers numbers(bytes.size() / format::sizeOf(type));
  for (size_t i = 0; i < numbers.size(); ++i) {
    float wide = 0;
    uint16_t narrow = 0;
    type == DType::F32 ? std::memcpy(&wide, &bytes[4 * i], 4) : std::memcpy(&narrow, &bytes[2 * i], 2);
    numbers[i] = type == DType::F32 ? wide : type == DType::BF16 ? kernels::fromBF16(narrow) : kernels::fromF16(narrow);
  }
  return numbers;
}

/// C of A [k,m] transposed and B [k,n], as a weight's gradient is.
struct ProductCase {
  format::Call call;
  Numbers a, b, row, aux; ///< given: rounded to the call's type
  Numbers c, beside;      ///< wanted
};

class CudaGemm : public testing::Test {
protected:
  Numbers draw(DType type, int64_t count, double scale) {
    std::uniform_real_distribution<double> values(-scale, scale);
    Numbers numbers(static_cast<size_t>(count));
    // None below the normal ones of f16, which the stub takes for 0.
    for (double &number : numbers)
      for (number = 0; std::fabs(number) < 1e-3;)
        number = values(random);
    return unpack(type, pack(type, numbers));
  }

  ProductCase make(DType type, Epilogue epilogue, bool row) {
    ProductCase made;
    format::Call &call = made.call;
    call.name = std::string(format::toString(epilogue)) + " of " + std::string(format::toString(type));
    call.type = type, call.epilogue = epilogue, call.bias = row;
    call.typeC = call.sums() ? DType::F32 : type;
    call.m = m, call.n = n, call.k = k, call.transA = true;
    call.lda = m, call.ldb = call.ldc = n;
    made.a = draw(type, k * m, 0.1), made.b = draw(type, k * n, 1), made.row = draw(type, n, 1);
    made.aux = draw(type, m * n, 2);
    made.c.assign(m * n, 0);
    for (int64_t x = 0; x < k; ++x)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          made.c[static_cast<size_t>(i * n + j)] +=
              made.a[static_cast<size_t>(x * m + i)] * made.b[static_cast<size_t>(x * n + j)];
    finish(made);
    return made;
  }

  void finish(ProductCase &made) {
    for (size_t i = 0; made.call.bias && i < made.c.size(); ++i)
      made.c[i] += made.row[i % n];
    made.beside = made.call.epilogue == Epilogue::GeluAux ? made.c : Numbers();
    for (size_t i = 0; i < made.c.size(); ++i) {
      double &value = made.c[i];
      if (made.call.epilogue == Epilogue::Gelu || made.call.epilogue == Epilogue::GeluAux)
        value = gelu(value);
      if (made.call.epilogue == Epilogue::GeluGrad)
        value *= geluSlope(made.aux[i]);
    }
    bool ofA = made.call.epilogue == Epilogue::SumA;
    made.beside.resize(made.call.sums() ? size_t(ofA ? m : n) : made.beside.size());
    for (size_t i = 0; made.call.sums() && i < size_t(ofA ? k * m : k * n); ++i)
      made.beside[i % made.beside.size()] += ofA ? made.a[i] : made.b[i];
  }

  std::byte *put(const Bytes &bytes) {
    blocks.emplace_back(gpu, bytes.size(), cuda::DeviceBuffer::Place::Device);
    gpu->check(gpu->copyToDevice(blocks.back().address(), bytes.data(), bytes.size(), stream), "copy");
    gpu->check(gpu->streamSynchronize(stream), "synchronize");
    return blocks.back().data();
  }

  Bytes take(void *from, size_t bytes) {
    Bytes found(bytes);
    gpu->check(gpu->copyToHost(found.data(), reinterpret_cast<cuda::Address>(from), bytes, stream), "copy");
    gpu->check(gpu->streamSynchronize(stream), "synchronize");
    return found;
  }

  /// `bound`: error before rounding, relative to the largest result, besides the rounding itself.
  static void expectNear(DType type, double bound, const Bytes &bytes, const Numbers &wanted, const std::string &what) {
    Numbers found = unpack(type, bytes);
    ASSERT_EQ(found.size(), wanted.size()) << what;
    double scale = 0, far = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      scale = std::max(scale, std::fabs(wanted[i]));
      far = std::max(far, std::fabs(found[i] - wanted[i]));
    }
    bound += type == DType::F32 ? 0 : type == DType::BF16 ? 0x1p-8 : 0x1p-11;
    EXPECT_LE(far, bound * scale) << what;
  }

  void check(const ProductCase &given) {
    const format::Call &call = given.call;
    bool isGelu = call.epilogue != Epilogue::None && !call.sums();
    std::vector<void *> operands = {put(pack(call.type, given.a)), put(pack(call.type, given.b))};
    if (call.bias)
      operands.push_back(put(pack(call.type, given.row)));
    if (call.hasAux())
      operands.push_back(put(call.writesAux() ? Bytes(call.auxBytes()) : pack(call.type, given.aux)));
    operands.push_back(put(Bytes(given.c.size() * format::sizeOf(call.typeC))));
    cuda::Gemm product(gpu, blas, call, 256);
    size_t number = 0, beside = 0;
    for (const cuda::Algorithms &algorithms : product.propose()) {
      std::string what = call.name + ", proposal " + std::to_string(number++);
      beside += algorithms.size() == 1;
      product.choose(algorithms);
      Bytes before;
      for (int run = 0; run < 2; ++run) {
        product.run(operands.data(), stream);
        Bytes c = take(operands.back(), given.c.size() * format::sizeOf(call.typeC));
        Bytes aux = call.writesAux() ? take(operands[operands.size() - 2], call.auxBytes()) : Bytes();
        expectNear(call.typeC, isGelu ? tanhBound : sumBound, c, given.c, what);
        expectNear(call.typeC, sumBound, aux, given.beside, what + ", beside");
        c.insert(c.end(), aux.begin(), aux.end());
        EXPECT_TRUE(run == 0 || c == before) << what << ": other bits the second time";
        before = c;
      }
    }
    RecordProperty("beside " + call.name, static_cast<int>(beside));
  }

  cuda::Gpu gpu{0};
  cuda::Blas blas;
  cuda::Owned<cuda::Stream> stream = cuda::makeStream(gpu, false);
  std::vector<cuda::DeviceBuffer> blocks;
  std::mt19937 random{11};
};

TEST_F(CudaGemm, addsARow) {
  for (DType type : {DType::F32, DType::BF16, DType::F16})
    check(make(type, Epilogue::None, true));
}

TEST_F(CudaGemm, computesGelu) {
  for (DType type : {DType::F32, DType::BF16, DType::F16}) {
    check(make(type, Epilogue::Gelu, true));
    check(make(type, Epilogue::GeluAux, true));
    check(make(type, Epilogue::GeluGrad, false));
  }
}

TEST_F(CudaGemm, addsUpAnOperand) {
  for (DType type : {DType::F32, DType::BF16, DType::F16})
    for (Epilogue epilogue : {Epilogue::SumA, Epilogue::SumB})
      check(make(type, epilogue, false));
}

} // namespace
