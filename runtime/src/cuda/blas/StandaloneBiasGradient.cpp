#include "StandaloneBiasGradient.h"

namespace par::cuda {

using format::DType;

namespace {

/// Parts of a sum that run side by side, and rows that are worth one.
constexpr int64_t maxParts = 32, minRows = 64;
constexpr uint32_t blockAlignment = 256;

int64_t partsOf(int64_t rows) {
  int64_t parts = 1;
  while (parts < maxParts && rows % (2 * parts) == 0 && rows / (2 * parts) >= minRows)
    parts *= 2;
  return parts;
}

format::Call productOf(const format::Call &call) {
  format::Call product = call;
  product.epilogue = format::Epilogue::None;
  return product;
}

/// C[1,n] = sum of the `k` rows of B[k,n], for each of `count` contiguous Bs.
format::Call sumOf(const std::string &name, DType type, int64_t count, int64_t k, int64_t n, int64_t leading) {
  format::Call sum;
  sum.name = name;
  sum.type = type;
  sum.batch = {count};
  sum.strideA = {0}, sum.strideB = {k * leading}, sum.strideC = {n};
  sum.m = 1, sum.n = n, sum.k = k;
  sum.lda = k, sum.ldb = leading, sum.ldc = n;
  return sum;
}

DeviceBuffer makeOnes(const Gpu &gpu, DType type, int64_t count) {
  auto many = static_cast<size_t>(count);
  DeviceBuffer ones(gpu, many * format::sizeOf(type), DeviceBuffer::Place::Device);
  Owned<Stream> stream = makeStream(gpu, false);
  if (type == DType::F32)
    gpu->check(gpu->set32(ones.address(), 0x3f800000, many, stream), "cuMemsetD32Async");
  else
    gpu->check(gpu->set16(ones.address(), type == DType::BF16 ? 0x3f80 : 0x3c00, many, stream), "cuMemsetD16Async");
  gpu->check(gpu->streamSynchronize(stream), "cuStreamSynchronize");
  return ones;
}

} // namespace

StandaloneBiasGradient::StandaloneBiasGradient(const Gpu &gpu, const Blas &blas, const format::Call &call,
                                               uint32_t alignment)
    : ofA(call.epilogue == format::Epilogue::SumA), productCall(productOf(call)) {
  int64_t length = ofA ? call.m : call.n, count = partsOf(call.k);
  partsCall = sumOf(call.name, call.type, count, call.k / count, length, ofA ? call.lda : call.ldb);
  product = std::make_unique<Gemm>(gpu, blas, productCall, alignment);
  parts = std::make_unique<Gemm>(gpu, blas, partsCall, alignment);
  ones = makeOnes(gpu, call.type, partsCall.k);
  if (count == 1)
    return;
  wholeCall = sumOf(call.name, DType::F32, 1, count, length, length);
  whole = std::make_unique<Gemm>(gpu, blas, wholeCall, std::min(alignment, blockAlignment));
  wideOnes = makeOnes(gpu, DType::F32, count);
  partial = DeviceBuffer(gpu, static_cast<uint64_t>(count * length) * sizeof(float), DeviceBuffer::Place::Device);
}

std::vector<Algorithms> StandaloneBiasGradient::propose() const {
  Algorithms sums;
  for (const Gemm *sum : {parts.get(), whole.get()}) {
    if (!sum)
      continue;
    std::vector<BlasAlgorithm> found = sum->ask();
    if (found.empty())
      return {};
    sums.push_back(found.front());
  }
  std::vector<Algorithms> proposed;
  for (const BlasAlgorithm &algorithm : product->ask()) {
    Algorithms &algorithms = proposed.emplace_back(Algorithms{algorithm});
    algorithms.insert(algorithms.end(), sums.begin(), sums.end());
  }
  return proposed;
}

int StandaloneBiasGradient::check(const Algorithms &algorithms) const {
  if (algorithms.size() != (whole ? 3u : 2u))
    return notSupported;
  int status = product->check({algorithms[0]});
  status = status ? status : parts->check({algorithms[1]});
  return status || !whole ? status : whole->check({algorithms[2]});
}

void StandaloneBiasGradient::choose(const Algorithms &algorithms) {
  product->choose({algorithms.at(0)});
  parts->choose({algorithms.at(1)});
  if (whole)
    whole->choose({algorithms.at(2)});
}

void StandaloneBiasGradient::run(void *const *operands, Stream stream) {
  void *a = operands[0], *b = operands[1], *sum = operands[2], *c = operands[3];
  void *products[] = {a, b, c, productCall.workspace ? operands[4] : nullptr};
  product->run(products, stream);
  void *ofParts[] = {ones.data(), ofA ? a : b, whole ? partial.data() : sum};
  parts->run(ofParts, stream);
  if (!whole)
    return;
  void *ofWhole[] = {wideOnes.data(), partial.data(), sum};
  whole->run(ofWhole, stream);
}

} // namespace par::cuda
