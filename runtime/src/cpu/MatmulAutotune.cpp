// Finds the fastest way to compute a matmul of a shape.
#include "par/cpu/Matmul.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

namespace par::cpu {

using format::Call;

namespace {

constexpr double smallestTried = 1 << 24;
/// Another way must be faster by this factor, so that noise does not choose it.
constexpr double margin = 0.95;
/// Maximum multiplications of a matmul whose pieces are tried, 15 ms on a core with AVX-512: larger ones are as fast
/// whole.
constexpr double largestInPieces = 1.6e9;
/// Elements of all operands, strides included.
constexpr uint64_t maxElements = 1 << 26;

/// Minimum memory of inputs, and of results. Each run takes the next part, since a step's operands are not in the
/// core's own cache.
constexpr uint64_t minMemory = 12 << 20;
constexpr double infinity = std::numeric_limits<double>::infinity();

double multiplications(const Call &call) {
  double work = static_cast<double>(call.m) * static_cast<double>(call.n) * static_cast<double>(call.k);
  for (int64_t size : call.batch)
    work *= static_cast<double>(size);
  return work;
}

/// A leading stride, shorter where matrices would get too big, with the alignment of its rows kept.
int64_t cutStride(int64_t stride) { return stride > 8192 ? 4096 + stride % 4096 : stride; }

/// At most four matrices of the last batch dim, one of the others: enough to contend for the cache as in a step.
void limitBatch(Call &call) {
  for (size_t d = 0; d < call.batch.size(); ++d)
    call.batch[d] = std::min<int64_t>(call.batch[d], d + 1 == call.batch.size() ? 4 : 1);
}

/// The call cut to about a hundred million multiplications.
Call cut(Call call) {
  limitBatch(call);
  call.lda = cutStride(call.lda);
  call.ldb = cutStride(call.ldb);
  call.ldc = cutStride(call.ldc);
  call.k = std::min<int64_t>(call.k, 1024);
  call.n = std::min<int64_t>(call.n, 2048);
  call.m = std::min<int64_t>(call.m, std::max<int64_t>(64, (int64_t(1) << 27) / std::max<int64_t>(1, call.k * call.n)));
  return call;
}

} // namespace

float *MatmulTrials::take(std::vector<float> &memory, uint64_t &next, uint64_t elements, float value) {
  if (memory.size() < std::max(elements, minMemory))
    memory.resize(std::max(elements, minMemory), value);
  if (next + elements > memory.size())
    next = 0;
  float *taken = memory.data() + next;
  next += (elements + 15) / 16 * 16; // rows begin on lines, as they do in a program
  return taken;
}

double MatmulTrials::time(const Call &call, const Matmul &matmul) {
  std::vector<float> bias(call.n);
  std::vector<std::byte> workspace(call.workspace);
  uint64_t ofA = (call.extent('a') + 15) / 16 * 16;
  const float *a = take(inputs, nextInput, ofA + call.extent('b'), 0.5f), *b = a + ofA;
  float *c = take(results, nextResult, call.extent('c'), 0);
  auto start = std::chrono::steady_clock::now();
  matmul.run(a, b, call.bias ? bias.data() : nullptr, c, workspace.data());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

MatmulChoice MatmulTrials::fastest(const Call &call, const std::vector<MatmulChoice> &choices) {
  std::vector<std::unique_ptr<Matmul>> ways;
  for (const MatmulChoice &choice : choices)
    ways.push_back(makeMatmul(call, choice, ""));
  std::vector<double> least(ways.size(), infinity);
  // In turns, so that other load of the machine affects all equally. The first turn warms up; choices that are much
  // slower leave.
  for (double far : {infinity, 1.25, 1.1}) {
    double limit = far * *std::ranges::min_element(least);
    bool warm = far < infinity;
    for (size_t i = 0; i < ways.size(); ++i)
      if (double before = least[i]; !(before > limit)) {
        double taken = time(call, *ways[i]);
        least[i] = warm ? std::min(before, taken) : taken;
      }
  }
  size_t best = size_t(std::ranges::min_element(least) - least.begin());
  return choices[least[best] < margin * least[0] ? best : 0];
}

/// 98 of 273 shapes of vision and small language models gain 5 % or more in pieces of some length (96 to 384), 74 of
/// them in one of these two.
static constexpr MatmulChoice pieces[] = {{MatmulChoice::SgemmByK, 128}, {MatmulChoice::SgemmByM, 384}};

MatmulChoice MatmulTrials::tryPieces(Call call) {
  limitBatch(call);
  if (multiplications(call) > largestInPieces || call.extent('a') + call.extent('b') + call.extent('c') > maxElements)
    return {};
  std::vector<MatmulChoice> choices{{}};
  for (const MatmulChoice &choice : pieces)
    if (choice.piece < (choice.routine == MatmulChoice::SgemmByM ? call.m : call.k))
      choices.push_back(choice);
  return fastest(call, choices);
}

bool worthTrying(const Call &call) { return multiplications(call) >= smallestTried; }

MatmulChoice MatmulTrials::choose(const Call &call) {
  if (!worthTrying(call))
    return {};
  MatmulChoice best = tryPieces(call);
  try {
    makeMatmul(call, {MatmulChoice::Primitive}, ""); // refused if the whole matmul wants too much workspace
    return fastest(cut(call), {best, {MatmulChoice::Primitive}});
  } catch (const core::Failure &) {
    return best; // the primitive cannot compute it within its workspace
  }
}

} // namespace par::cpu
