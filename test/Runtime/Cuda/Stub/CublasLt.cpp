// libcublaslt-stub.so: matmuls on the imagined GPU, column-major as the library's own. Sums of f32 are those of the CPU
// device (the same routine on the transposed problem), so runs can be compared bit for bit.
#include "Machine.h"
#include "par/cpu/Matmul.h"

#include <bit>
#include <cmath>
#include <cstring>

using namespace par;
using namespace par::stub;

namespace {

constexpr int invalidValue = 7, notSupported = 15;
/// First word of the heuristic's result, before shape and number of the algorithm: a test sees that it is passed on.
constexpr uint64_t algorithmWord = 0x5eed;
/// The last of them adds by atomics, which the reduction scheme "in place" stands for.
constexpr uint64_t algorithms = 5, inPlace = 1, greedy = 3, atomic = 4, workspaceStep = 1 << 20;

/// Members of cublasLtEpilogue_t are sums of these.
constexpr int epilogueNone = 1, epilogueBias = 4, epilogueGelu = 32, epilogueGeluGrad = 64, epilogueAux = 128,
              epilogueSumFirst = 256, epilogueSumSecond = 512;

struct Descriptor {
  int32_t transA = 0, transB = 0, epilogue = 1, biasType = 0;
  const void *bias = nullptr;
  void *aux = nullptr;
  int64_t auxLeading = 0;
};
struct Layout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, stride = 0;
  int32_t batch = 1;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

template <typename T>
int take(T &to, const void *from, size_t bytes) {
  if (bytes != sizeof(T))
    return invalidValue;
  std::memcpy(&to, from, bytes);
  return 0;
}

format::Call rowMajor(const Descriptor &d, const Layout &a, const Layout &b, const Layout &c) {
  format::Call call;
  call.name = "stub";
  call.m = static_cast<int64_t>(c.columns), call.n = static_cast<int64_t>(c.rows);
  call.k = static_cast<int64_t>(d.transA ? a.rows : a.columns);
  call.transA = d.transB, call.transB = d.transA;
  call.lda = b.leading, call.ldb = a.leading, call.ldc = c.leading;
  if (c.batch > 1) {
    call.batch = {c.batch};
    call.strideA = {b.stride}, call.strideB = {a.stride}, call.strideC = {c.stride};
  }
  call.bias = d.epilogue & epilogueBias;
  return call;
}

/// f32 from bf16 or f16, and back, rounded to nearest, ties to even. Numbers below f16's normal ones become
/// 0.
float widen(uint16_t bits, bool brain) {
  uint32_t wide = brain ? uint32_t(bits) << 16 : 0;
  if (!brain && (bits & 0x7fff) >= 0x0400)
    wide = uint32_t(bits & 0x8000) << 16 | ((uint32_t(bits & 0x7fff) << 13) + (uint32_t(127 - 15) << 23));
  return std::bit_cast<float>(wide);
}

uint16_t narrow(float value, bool brain) {
  auto wide = std::bit_cast<uint32_t>(value);
  if (brain)
    return static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  uint32_t size = (wide & 0x7fffffff) - (uint32_t(127 - 15) << 23);
  bool tiny = (wide & 0x7fffffff) < uint32_t(127 - 14) << 23;
  return static_cast<uint16_t>((wide >> 16 & 0x8000) | (tiny ? 0 : (size + 0xfff + (size >> 13 & 1)) >> 13));
}

bool isSum(int epilogue) { return epilogue == epilogueSumFirst || epilogue == epilogueSumSecond; }

/// The library's sum of an operand needs contiguous elements in the operand, and has the type of the result: f32.
bool isSound(const Descriptor &d, const Layout &result) {
  bool sideBySide = d.epilogue == epilogueSumFirst ? !d.transA : d.transB;
  return !isSum(d.epilogue) || (sideBySide && result.type == 0 && d.biasType == 0 && result.batch == 1);
}

bool isKnown(int epilogue) {
  for (int known :
       {epilogueNone, epilogueBias, epilogueGelu, epilogueGelu + epilogueBias, epilogueGelu + epilogueAux,
        epilogueGelu + epilogueAux + epilogueBias, epilogueGeluGrad + epilogueAux, epilogueSumFirst, epilogueSumSecond})
    if (epilogue == known)
      return true;
  return false;
}

/// The sum of an operand over k: the first one, not transposed, sums to the rows of the result; the second, which must
/// be transposed, to its columns. Without beta, in f32.
void addUp(const Descriptor &d, const format::Call &call, const float *first, const float *second) {
  bool ofFirst = d.epilogue == epilogueSumFirst;
  if (!ofFirst && d.epilogue != epilogueSumSecond)
    return;
  int64_t length = ofFirst ? call.n : call.m, leading = ofFirst ? call.ldb : call.lda;
  auto *sum = static_cast<float *>(const_cast<void *>(d.bias));
  for (int64_t i = 0; i < length; ++i) {
    sum[i] = 0;
    for (int64_t k = 0; k < call.k; ++k)
      sum[i] += (ofFirst ? second : first)[k * leading + i];
  }
}

/// As the library approximates it: by tanh; and its derivative.
double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double geluDerivative(double x) {
  double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

/// Applies the epilogue to the f32 sums, element by element of C; `read` and `write` access aux.
template <typename Read, typename Write>
void finish(const Descriptor &d, const format::Call &call, float *c, Read read, Write write) {
  if (!(d.epilogue & (epilogueGelu | epilogueGeluGrad)))
    return;
  for (int64_t row = 0; row < call.m; ++row)
    for (int64_t column = 0; column < call.n; ++column) {
      float &value = c[row * call.ldc + column];
      int64_t at = row * d.auxLeading + column;
      if (d.epilogue & epilogueGeluGrad) {
        value = static_cast<float>(value * geluDerivative(read(d.aux, at)));
        continue;
      }
      if (d.epilogue & epilogueAux)
        write(d.aux, at, value);
      value = static_cast<float>(gelu(value));
    }
}

/// The product of f32 on widened copies, which add in f32 as the library does; C is narrow, or f32.
void runLowPrecision(const cpu::Matmul &product, const format::Call &call, const Descriptor &d, bool brain,
                     bool narrowC, const void *a, const void *b, void *c) {
  auto wide = [&](const void *from, uint64_t n) {
    std::vector<float> values(n);
    for (uint64_t i = 0; from && i < n; ++i)
      values[i] = widen(static_cast<const uint16_t *>(from)[i], brain);
    return values;
  };
  std::vector<float> first = wide(a, call.extent('a')), second = wide(b, call.extent('b')),
                     row = wide(call.bias ? d.bias : nullptr, static_cast<uint64_t>(call.n));
  if (!narrowC) {
    product.run(first.data(), second.data(), nullptr, static_cast<float *>(c), nullptr);
    addUp(d, call, first.data(), second.data());
    return;
  }
  std::vector<float> result = wide(c, call.extent('c'));
  product.run(first.data(), second.data(), call.bias ? row.data() : nullptr, result.data(), nullptr);
  finish(
      d, call, result.data(), [&](void *aux, int64_t i) { return widen(static_cast<uint16_t *>(aux)[i], brain); },
      [&](void *aux, int64_t i, float value) { static_cast<uint16_t *>(aux)[i] = narrow(value, brain); });
  for (uint64_t i = 0; i < result.size(); ++i)
    static_cast<uint16_t *>(c)[i] = narrow(result[i], brain);
}

void runWide(const cpu::Matmul &product, const format::Call &call, const Descriptor &d, const void *a, const void *b,
             void *c) {
  auto *result = static_cast<float *>(c);
  product.run(static_cast<const float *>(a), static_cast<const float *>(b),
              static_cast<const float *>(call.bias ? d.bias : nullptr), result, nullptr);
  addUp(d, call, static_cast<const float *>(a), static_cast<const float *>(b));
  finish(
      d, call, result, [](void *aux, int64_t i) { return static_cast<float *>(aux)[i]; },
      [](void *aux, int64_t i, float value) { static_cast<float *>(aux)[i] = value; });
}

} // namespace

extern "C" {

size_t cublasLtGetVersion() { return 130100; }

int cublasLtCreate(void **handle) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  *handle = &machine;
  return machine.note("cublasLtCreate", "");
}

int cublasLtDestroy(void *) { return 0; }

int cublasLtMatmulDescCreate(Descriptor **descriptor, int compute, int scale) {
  *descriptor = new Descriptor;
  return compute == 68 && scale == 0 ? 0 : notSupported;
}
int cublasLtMatmulDescDestroy(Descriptor *descriptor) {
  delete descriptor;
  return 0;
}
int cublasLtMatmulDescSetAttribute(Descriptor *d, int name, const void *from, size_t bytes) {
  switch (name) {
  case 3:
    return take(d->transA, from, bytes);
  case 4:
    return take(d->transB, from, bytes);
  case 7:
    return take(d->epilogue, from, bytes);
  case 8:
    return take(d->bias, from, bytes);
  case 11:
    return take(d->aux, from, bytes);
  case 12:
    return take(d->auxLeading, from, bytes);
  case 26:
    return take(d->biasType, from, bytes);
  default:
    return invalidValue;
  }
}

int cublasLtMatrixLayoutCreate(Layout **layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  *layout = new Layout{type, rows, columns, leading};
  return leading >= static_cast<int64_t>(rows) ? 0 : invalidValue;
}
int cublasLtMatrixLayoutDestroy(Layout *layout) {
  delete layout;
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(Layout *layout, int name, const void *from, size_t bytes) {
  return name == 5 ? take(layout->batch, from, bytes) : name == 6 ? take(layout->stride, from, bytes) : invalidValue;
}

int cublasLtMatmulPreferenceCreate(Preference **preference) {
  *preference = new Preference;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(Preference *preference) {
  delete preference;
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(Preference *preference, int name, const void *from, size_t bytes) {
  if (name == 1)
    return take(preference->workspace, from, bytes);
  if (name == 3)
    return take(preference->reductions, from, bytes);
  return name >= 5 && name <= 8 ? take(preference->alignment[name - 5], from, bytes) : invalidValue;
}

struct Heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

/// Proposes algorithms that a mask of reductions allows; the greedy one needs more workspace than it is given.
int cublasLtMatmulAlgoGetHeuristic(void *, Descriptor *d, Layout *a, Layout *b, Layout *c, Layout *,
                                   Preference *preference, int wanted, Heuristic *best, int *found) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  if (int injected =
          machine.note("cublasLtMatmulAlgoGetHeuristic", std::to_string(c->rows) + " " + std::to_string(c->columns) +
                                                             " alignment " + std::to_string(preference->alignment[0])))
    return injected;
  *found = 0;
  for (uint64_t i = 0; i < algorithms && *found < wanted; ++i) {
    if (i == atomic && !(preference->reductions & inPlace))
      continue;
    Heuristic &one = best[(*found)++] = {};
    one.algorithm[0] = algorithmWord;
    one.algorithm[1] = c->rows * 65536 + c->columns;
    one.algorithm[2] = i;
    one.workspace = i == greedy ? preference->workspace + workspaceStep : 0;
  }
  if (isSum(d->epilogue) && !machine.sumsBeside)
    *found = 0;
  uint64_t k = d->transA ? a->rows : a->columns, other = d->transB ? b->columns : b->rows;
  return k == other ? 0 : invalidValue;
}

int cublasLtMatmulAlgoCheck(void *, Descriptor *, Layout *, Layout *, Layout *, Layout *lc, const uint64_t *algorithm,
                            Heuristic *result) {
  *result = {};
  result->workspace = algorithm[2] == greedy ? workspaceStep : 0;
  bool known = algorithm[0] == algorithmWord && algorithm[1] == lc->rows * 65536 + lc->columns;
  return known && algorithm[2] < algorithms ? 0 : notSupported;
}

int cublasLtMatmul(void *, Descriptor *d, const float *alpha, const void *a, Layout *la, const void *b, Layout *lb,
                   const float *beta, const void *c, Layout *, void *result, Layout *lc, const uint64_t *algorithm,
                   void *, size_t workspace, Stream *stream) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  format::Call call = rowMajor(*d, *la, *lb, *lc);
  call.alpha = *alpha, call.beta = *beta;
  if (int injected = machine.note("cublasLtMatmul",
                                  std::to_string(call.m) + " " + std::to_string(call.n) + " " + std::to_string(call.k) +
                                      " stream " + std::to_string(stream->id) + " epilogue " +
                                      std::to_string(d->epilogue) + " algorithm " + std::to_string(algorithm[2])))
    return injected;
  bool typed =
      la->type == lb->type && (lc->type == la->type || (lc->type == 0 && (d->epilogue == 1 || isSum(d->epilogue))));
  if (c != result || !typed || algorithm[0] != algorithmWord || algorithm[1] != lc->rows * 65536 + lc->columns ||
      (algorithm[2] == greedy && workspace < workspaceStep))
    return notSupported;
  uint64_t takes = algorithm[2] == machine.fastest ? 5 : 10 + 10 * algorithm[2];
  takes += isSum(d->epilogue) ? machine.sumTakes : 0;
  auto sizeOf = [](const Layout *layout) { return layout->type == 0 ? sizeof(float) : sizeof(uint16_t); };
  uint64_t size = sizeOf(la), last = call.extent('c') * sizeOf(lc);
  if (machine.checkRange(reinterpret_cast<uint64_t>(result), last) ||
      machine.checkRange(reinterpret_cast<uint64_t>(b), call.extent('a') * size) ||
      machine.checkRange(reinterpret_cast<uint64_t>(a), call.extent('b') * size))
    return invalidValue;
  if (!isKnown(d->epilogue) || !isSound(*d, *lc))
    return notSupported;
  uint64_t summed = static_cast<uint64_t>(d->epilogue == epilogueSumFirst ? call.n : call.m) * sizeof(float);
  if (isSum(d->epilogue) && machine.checkRange(reinterpret_cast<uint64_t>(d->bias), summed))
    return invalidValue;
  if (call.bias && machine.checkRange(reinterpret_cast<uint64_t>(d->bias), static_cast<uint64_t>(call.n) * size))
    return invalidValue;
  // As the library's documentation asks: a leading stride of whole 8 elements, pointers of whole 16 bytes.
  auto aux = reinterpret_cast<uint64_t>(d->aux);
  if ((d->epilogue & epilogueAux) && (d->auxLeading % 8 || d->auxLeading < call.n || aux % 16 || lc->batch > 1 ||
                                      machine.checkRange(aux, last) || *beta != 0))
    return invalidValue;
  std::shared_ptr<cpu::Matmul> product = cpu::makeMatmul(call, {}, "stub");
  bool brain = la->type == 14, wide = la->type == 0, narrowC = lc->type != 0;
  machine.enqueue(*stream, {nullptr, [=, &machine, d = *d] {
                              machine.extra += takes;
                              if (wide)
                                runWide(*product, call, d, b, a, result);
                              else
                                runLowPrecision(*product, call, d, brain, narrowC, b, a, result);
                            }});
  return 0;
}

} // extern "C"
