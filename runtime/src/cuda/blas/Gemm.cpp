// One matmul by cuBLASLt: layouts and epilogue from the call, batch dims folded into one stride where possible, else
// walked; algorithms come from the heuristic and are checked before use.
#include "StandaloneBiasGradient.h"
#include "par/messages/Failure.h"

namespace par::cuda {

using core::Failure;
using core::Message;
using format::DType;

namespace {

// Values of cublasLt.h and library_types.h.
constexpr int typeF32 = 0, typeF16 = 2, typeBF16 = 14, computeF32 = 68, transpose = 1;
constexpr int descriptorTransA = 3, descriptorTransB = 4, descriptorEpilogue = 7, descriptorBias = 8,
              descriptorAux = 11, descriptorAuxLeading = 12, descriptorBiasType = 26;
constexpr int layoutBatch = 5, layoutStride = 6, preferenceWorkspace = 1, preferenceAlignment = 5,
              preferenceReduction = 3;
/// Parts of a sum over k lie in f32 in the workspace and are added in order: neither by atomics in C, nor
/// rounded to C's type.
constexpr uint32_t reductionInF32 = 2;
constexpr int maxProposals = 8;
/// Members of cublasLtEpilogue_t, which are sums of these.
constexpr int epilogueNone = 1, epilogueBias = 4, epilogueGelu = 32, epilogueGeluGrad = 64, epilogueAux = 128;
/// CUBLASLT_EPILOGUE_BGRADA and BGRADB: the sum of the library's first or second operand, which are our B and A.
constexpr int epilogueSumFirst = 256, epilogueSumSecond = 512;

int epilogueOf(const format::Call &call) {
  int bias = call.bias ? epilogueBias : 0;
  switch (call.epilogue) {
  case format::Epilogue::None:
    return call.bias ? epilogueBias : epilogueNone;
  case format::Epilogue::Gelu:
    return epilogueGelu + bias;
  case format::Epilogue::GeluAux:
    return epilogueGelu + epilogueAux + bias;
  case format::Epilogue::GeluGrad:
    return epilogueGeluGrad + epilogueAux;
  case format::Epilogue::SumA:
    return epilogueSumSecond;
  case format::Epilogue::SumB:
    return epilogueSumFirst;
  }
  return epilogueNone;
}

int typeOf(const format::Call &call, DType type) {
  switch (type) {
  case DType::F32:
    return typeF32;
  case DType::F16:
    return typeF16;
  case DType::BF16:
    return typeBF16;
  default:
    throw Failure::at("", Message::unsupportedInstruction, "call \"" + call.name + "\"",
                      "a matmul of " + std::string(format::toString(type)));
  }
}

} // namespace

/// Folds inner dims that are contiguous in all three operands into one; a loop runs over the others.
BatchFold foldBatch(const format::Call &call) {
  BatchFold fold;
  size_t d = call.batch.size();
  while (d > 0 && call.batch[d - 1] == 1)
    --d;
  if (d > 0) {
    --d;
    fold.count = call.batch[d];
    fold.strideA = call.strideA[d], fold.strideB = call.strideB[d], fold.strideC = call.strideC[d];
  }
  auto continues = [&](const std::vector<int64_t> &strides, int64_t stride) {
    return strides[d - 1] == stride * fold.count;
  };
  while (d > 0 &&
         (call.batch[d - 1] == 1 || (continues(call.strideA, fold.strideA) && continues(call.strideB, fold.strideB) &&
                                     continues(call.strideC, fold.strideC)))) {
    --d;
    fold.count *= call.batch[d];
  }
  for (; d > 0; --d) {
    std::vector<BatchFold::Offset> wider;
    for (int64_t i = 0; i < call.batch[d - 1]; ++i)
      for (const BatchFold::Offset &at : fold.outer)
        wider.push_back(
            {at.a + i * call.strideA[d - 1], at.b + i * call.strideB[d - 1], at.c + i * call.strideC[d - 1]});
    fold.outer = std::move(wider);
  }
  return fold;
}

Gemm::Gemm(const Gpu &gpu, const Blas &blas, const format::Call &call, uint32_t alignment)
    : gpu(gpu), blas(blas), call(call), batch(foldBatch(call)), alignment(alignment),
      alpha(static_cast<float>(call.alpha)), beta(static_cast<float>(call.beta)) {
  int type = typeOf(call, call.type), typeC = typeOf(call, call.typeC);
  auto check = [&](int status, const char *what) { blas.check(status, call.name, what); };
  try {
    check(blas.descriptorCreate(&descriptor, computeF32, typeF32), "cublasLtMatmulDescCreate");
    // The library's first operand is B.
    int first = call.transB ? transpose : 0, second = call.transA ? transpose : 0;
    check(blas.descriptorSet(descriptor, descriptorTransA, &first, sizeof first), "cublasLtMatmulDescSetAttribute");
    check(blas.descriptorSet(descriptor, descriptorTransB, &second, sizeof second), "cublasLtMatmulDescSetAttribute");
    finish(type);
    auto layout = [&](BlasLayout &to, int of, int64_t rows, int64_t columns, int64_t leading, int64_t stride) {
      auto count = static_cast<int32_t>(batch.count);
      check(blas.layoutCreate(&to, of, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), leading),
            "cublasLtMatrixLayoutCreate");
      check(blas.layoutSet(to, layoutBatch, &count, sizeof count), "batch");
      check(blas.layoutSet(to, layoutStride, &stride, sizeof stride), "batch");
    };
    layout(a, type, call.transA ? call.m : call.k, call.transA ? call.k : call.m, call.lda, batch.strideA);
    layout(b, type, call.transB ? call.k : call.n, call.transB ? call.n : call.k, call.ldb, batch.strideB);
    layout(c, typeC, call.n, call.m, call.ldc, batch.strideC);
  } catch (...) {
    destroyAll();
    throw;
  }
}

/// Sets the epilogue. The heuristic wants to see pointers, as aligned as those of runs.
void Gemm::finish(int type) {
  auto set = [&](int name, const auto &value) {
    blas.check(blas.descriptorSet(descriptor, name, &value, sizeof value), call.name, "epilogue");
  };
  int epilogue = epilogueOf(call);
  if (epilogue == epilogueNone)
    return;
  auto *place = reinterpret_cast<void *>(static_cast<uintptr_t>(alignment));
  set(descriptorEpilogue, epilogue);
  if (call.bias || call.sums()) {
    set(descriptorBiasType, call.sums() ? typeF32 : type);
    set(descriptorBias, place);
  }
  if (call.hasAux() && !call.sums()) {
    set(descriptorAuxLeading, call.ldc);
    set(descriptorAux, place);
  }
}

Gemm::~Gemm() { destroyAll(); }

void Gemm::destroyAll() {
  for (BlasLayout layout : {a, b, c})
    if (layout)
      blas.layoutDestroy(layout);
  if (descriptor)
    blas.descriptorDestroy(descriptor);
}

std::vector<Algorithms> Gemm::propose() const {
  std::vector<Algorithms> proposed;
  for (const BlasAlgorithm &algorithm : ask())
    proposed.push_back({algorithm});
  if (call.sums())
    for (Algorithms &algorithms : standaloneBiasGradient().propose())
      proposed.push_back(std::move(algorithms));
  if (proposed.empty())
    throw Failure::at("", Message::blasNoAlgorithm, call.name, core::grouped(call.workspace));
  return proposed;
}

std::vector<BlasAlgorithm> Gemm::ask() const {
  BlasPreference preference = nullptr;
  blas.check(blas.preferenceCreate(&preference), call.name, "cublasLtMatmulPreferenceCreate");
  size_t cap = call.workspace;
  blas.preferenceSet(preference, preferenceWorkspace, &cap, sizeof cap);
  blas.preferenceSet(preference, preferenceReduction, &reductionInF32, sizeof reductionInF32);
  // Alignment of A, B, C and D. Matrices of an outer batch may begin at any element.
  uint32_t bytes = batch.outer.size() > 1 ? static_cast<uint32_t>(format::sizeOf(call.type)) : alignment;
  for (int operand = 0; operand < 4; ++operand)
    blas.preferenceSet(preference, preferenceAlignment + operand, &bytes, sizeof bytes);
  std::array<BlasHeuristic, maxProposals> found;
  int count = 0;
  int status = blas.heuristic(blas.handle, descriptor, b, a, c, c, preference, maxProposals, found.data(), &count);
  blas.preferenceDestroy(preference);
  std::vector<BlasAlgorithm> good;
  for (int i = 0; status == 0 && i < count; ++i)
    if (found[i].state == 0 && found[i].workspace <= cap)
      good.push_back(found[i].algorithm);
  return good;
}

int Gemm::check(const Algorithms &algorithms) const {
  if (algorithms.size() != 1)
    return call.sums() ? standaloneBiasGradient().check(algorithms) : notSupported;
  BlasHeuristic needs;
  int status = blas.algorithmCheck(blas.handle, descriptor, b, a, c, c, &algorithms[0], &needs);
  return status == 0 && needs.workspace > call.workspace ? notSupported : status;
}

StandaloneBiasGradient &Gemm::standaloneBiasGradient() const {
  if (!apart)
    apart = std::make_unique<StandaloneBiasGradient>(gpu, blas, call, alignment);
  return *apart;
}

void Gemm::choose(const Algorithms &algorithms) {
  isApart = algorithms.size() != 1;
  if (isApart)
    standaloneBiasGradient().choose(algorithms);
  else
    chosen = algorithms[0];
}

void Gemm::run(void *const *operands, Stream stream) {
  if (isApart)
    return apart->run(operands, stream);
  auto *first = static_cast<std::byte *>(*operands++), *second = static_cast<std::byte *>(*operands++);
  if (call.bias) {
    void *bias = *operands++;
    blas.check(blas.descriptorSet(descriptor, descriptorBias, &bias, sizeof bias), call.name, "bias");
  }
  if (call.hasAux()) {
    void *aux = *operands++;
    blas.check(blas.descriptorSet(descriptor, call.sums() ? descriptorBias : descriptorAux, &aux, sizeof aux),
               call.name, "aux");
  }
  auto *result = static_cast<std::byte *>(*operands++);
  void *workspace = call.workspace ? *operands : nullptr;
  auto size = static_cast<int64_t>(format::sizeOf(call.type)), sizeC = static_cast<int64_t>(format::sizeOf(call.typeC));
  for (const BatchFold::Offset &at : batch.outer)
    blas.check(blas.matmul(blas.handle, descriptor, &alpha, second + at.b * size, b, first + at.a * size, a, &beta,
                           result + at.c * sizeC, c, result + at.c * sizeC, c, &chosen, workspace, call.workspace,
                           stream),
               call.name, "cublasLtMatmul");
}

} // namespace par::cuda
