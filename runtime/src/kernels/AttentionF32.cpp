// Attention of f32 by matmuls of blocks: the scores of some queries of one head stay in the caches of a core between
// the matmuls around them, and are never in memory as a whole. Backward recomputes them. The rows of a head, which are
// strided in their operands, are first packed: matmuls of rows that conflict in a cache's sets are up to a third
// slower.
//
// The formulas are those of FlashAttention (Dao et al. 2022) without the running maximum: a block has all keys of its
// queries.
#include "Lanes.h"
#include "Scratch.h"
#include "par/kernels/Builtins.h"
#include "par/kernels/Sgemm.h"

#include <algorithm>
#include <cmath>

namespace par::kernels {
namespace {

/// Scores of a block, and at least and at most so many queries. (Measured: 256 KiB of scores and as much of their
/// cotangents stay in a second-level cache of 1 or 2 MiB beside the rows; products of fewer queries are slow.)
constexpr uint64_t scoresOfBlock = 1 << 16, minQueries = 16, maxQueries = 256, maxCausal = 64;
/// From so many queries on a copy of the keys and values is worth its time: below, as where a token is generated, it is
/// most of it.
constexpr uint64_t worthCopies = 8;

/// Exponentials of a query's scores, and how to make probabilities of them.
struct Softmax {
  float largest, sum;
};

/// scores = exp(scores + mask - largest) for the first `met` keys, 0 after them.
PAR_CLONES Softmax exponentials(float *scores, const float *mask, uint64_t maskStep, uint64_t met, uint64_t all) {
  if (mask && maskStep == 0) {
    float added = *mask;
    PAR_INDEPENDENT
    for (uint64_t j = 0; j < met; ++j)
      scores[j] += added;
  } else if (mask) {
    PAR_INDEPENDENT
    for (uint64_t j = 0; j < met; ++j)
      scores[j] += mask[j];
  }
  float largest = laneMax(scores, met);
  PAR_INDEPENDENT
  for (uint64_t j = 0; j < met; ++j)
    scores[j] = expf32(scores[j] - largest);
  for (uint64_t j = met; j < all; ++j)
    scores[j] = 0;
  return {largest, laneSum<float>(met, [=](uint64_t j) { return scores[j]; })};
}

PAR_CLONES void scaleRow(const float *x, float factor, float *y, uint64_t n) {
  PAR_INDEPENDENT
  for (uint64_t i = 0; i < n; ++i)
    y[i] = x[i] * factor;
}

PAR_CLONES float dotRow(const float *x, const float *y, uint64_t n) {
  return laneSum<float>(n, [=](uint64_t i) { return x[i] * y[i]; });
}

/// powers become probabilities, and their cotangents, `t`, those of the scores before the scale.
PAR_CLONES void differentiate(float *powers, float *t, float factor, float whole, float scale, uint64_t n) {
  PAR_INDEPENDENT
  for (uint64_t j = 0; j < n; ++j) {
    float p = powers[j] * factor;
    powers[j] = p;
    t[j] = p * (t[j] - whole) * scale;
  }
}

/// Rows that lie a stride apart.
struct HeadRows {
  float *data;
  uint64_t stride;

  HeadRows from(uint64_t row) const { return {data + row * stride, stride}; }
  float *operator[](uint64_t row) const { return data + row * stride; }
  /// The copy.
  HeadRows copy(uint64_t rows, uint64_t width, HeadRows to) const {
    for (uint64_t i = 0; i < rows; ++i)
      std::copy_n((*this)[i], width, to[i]);
    return to;
  }
};

/// Matrices in this thread's memory, one after the other.
class Scratch {
public:
  /// Rows of that width begin an odd number of cache lines apart.
  static uint64_t stride(uint64_t width) { return ((width + 15) / 16 | 1) * 16; }

  explicit Scratch(uint64_t floats) : next(reinterpret_cast<float *>(threadScratch(floats * sizeof(float)))) {}

  HeadRows take(uint64_t rows, uint64_t width) {
    HeadRows taken{next, stride(width)};
    next += rows * taken.stride;
    return taken;
  }

private:
  float *next;
};

/// to[m, n] = alpha op(a) op(b) + beta to, summed over k.
void multiplyRows(char transA, char transB, uint64_t m, uint64_t n, uint64_t k, float alpha, HeadRows a, HeadRows b,
                  float beta, HeadRows to) {
  sgemm(transA, transB, int64_t(m), int64_t(n), int64_t(k), alpha, {a.data, int64_t(a.stride)},
        {b.data, int64_t(b.stride)}, beta, to.data, int64_t(to.stride));
}

/// One call.
struct WideAttention : AttentionSizes {
  WideAttention(const uint64_t *imm, const AttentionTensors &tensors, void *const *ptr)
      : AttentionSizes(imm, tensors), ptr(ptr) {}

  float *operand(size_t index) const { return static_cast<float *>(ptr[index]); }
  /// Rows of tensor `index` of a head.
  HeadRows head(size_t index, uint64_t batch, uint64_t head) const {
    AttentionRows at = rows(index);
    return {operand(operandOf(index)) + at.place(batch, head, 0), at.row};
  }
  uint64_t queriesOfBlock() const {
    return std::min(sq, std::clamp(scoresOfBlock / sk, minQueries, causal ? maxCausal : maxQueries));
  }
  /// Keys that the queries before `end` meet.
  uint64_t keysBefore(uint64_t end) const { return causal ? std::min(sk, end) : sk; }
  /// The row added to the scores of a query; null if there is none.
  const float *maskOf(uint64_t batch, uint64_t head, uint64_t query) const {
    return masked ? operand(maskOperand()) + maskPlace(batch, head, query, 0) : nullptr;
  }
  uint64_t maskStep() const { return mask[3] == 1 ? 0 : 1; }

  void *const *ptr;
};

/// A head of the queries.
struct Place {
  uint64_t batch, head;
};

/// The tensors of the head that comes next, whose rows are fetched one by one between those of this one: they lie
/// apart, and no hardware foresees them.
class Ahead {
public:
  Ahead(const WideAttention &s, const AttentionTensors &tensors, Place next) {
    for (char kind : tensors.kinds) {
      auto [heads, rows, width] = s.extents(kind);
      uint64_t head = heads == s.h ? next.head : next.head / (s.h / s.g);
      all[count] = {s.head(count, next.batch, head), rows, width};
      ++count;
    }
  }
  void fetch(uint64_t row) const {
    for (const Tensor *one = all; one != all + count; ++one)
      if (row < one->count)
        for (uint64_t at = 0; at < one->width; at += 16)
          __builtin_prefetch(one->rows[row] + at, 0, 2);
  }

private:
  struct Tensor {
    HeadRows rows;
    uint64_t count, width;
  } all[8];
  size_t count = 0;
};

/// Some queries of a head.
struct QueryBlock {
  uint64_t batch, head, first, end, keys;

  uint64_t queries() const { return end - first; }
};

/// Added to a score it makes an exponential of 0, if the row has another score that is not as low.
constexpr float hiding = -1e30f;

/// The keys before the last one that the mask shows to a query of the block: of a cache, the tokens so far. All keys if
/// it hides all of them from one of the queries, whose probabilities are then not 0.
uint64_t shownKeys(const WideAttention &s, const QueryBlock &block) {
  if (!s.masked || s.maskStep() == 0)
    return block.keys;
  uint64_t shown = 0;
  for (uint64_t query = block.first; query < block.end; ++query) {
    const float *mask = s.maskOf(block.batch, block.head, query);
    uint64_t end = std::min(block.keys, s.keysBefore(query + 1));
    while (end > 0 && mask[end - 1] <= hiding)
      --end;
    if (end == 0)
      return block.keys;
    shown = std::max(shown, end);
    if (s.mask[2] == 1 && !s.causal) // one row for all queries
      break;
  }
  return shown;
}

/// Calls visit(block) for all queries of a head.
template <typename Visit>
void forEachBlock(const WideAttention &s, uint64_t batch, uint64_t head, Visit visit) {
  uint64_t step = s.queriesOfBlock();
  for (uint64_t first = 0; first < s.sq; first += step) {
    uint64_t end = std::min(s.sq, first + step);
    visit(QueryBlock{batch, head, first, end, s.keysBefore(end)});
  }
}

/// The block's queries, copied to `q`, by the keys; calls row(query of the block, softmax) after the exponentials of
/// each query's scores.
template <typename Row>
void scoresOf(const WideAttention &s, const QueryBlock &block, HeadRows q, HeadRows k, HeadRows scores, Row row) {
  multiplyRows('N', 'T', block.queries(), block.keys, s.d, float(s.scale), q, k, 0, scores);
  for (uint64_t i = 0; i < block.queries(); ++i) {
    uint64_t query = block.first + i;
    row(i, exponentials(scores[i], s.maskOf(block.batch, block.head, query), s.maskStep(),
                        std::min(block.keys, s.keysBefore(query + 1)), block.keys));
  }
}

/// Copies of a head's operands in forward.
struct ForwardCopies {
  explicit ForwardCopies(const WideAttention &s)
      : n(s.queriesOfBlock()),
        scratch((n + s.sk) * (Scratch::stride(s.d) + Scratch::stride(s.e)) + n * Scratch::stride(s.sk)),
        q(scratch.take(n, s.d)), k(scratch.take(s.sk, s.d)), v(scratch.take(s.sk, s.e)), out(scratch.take(n, s.e)),
        scores(scratch.take(n, s.sk)) {}

  uint64_t n;
  Scratch scratch;
  HeadRows q, k, v, out, scores;
};

void forwardOf(const WideAttention &s, Place here, Place next) {
  auto [batch, head] = here;
  uint64_t group = head / (s.h / s.g);
  HeadRows q = s.head(0, batch, head), out = s.head(3, batch, head);
  const Ahead ahead(s, attentionForward, next);
  float *lse = s.operand(4) + (batch * s.h + head) * s.sq;
  ForwardCopies own(s);
  HeadRows k = s.head(1, batch, group), v = s.head(2, batch, group);
  if (s.sq >= worthCopies || s.sk == 1) { // one row may have any stride
    k = k.copy(s.sk, s.d, own.k);
    v = v.copy(s.sk, s.e, own.v);
  }
  float sums[maxQueries];
  forEachBlock(s, batch, head, [&](QueryBlock block) {
    block.keys = shownKeys(s, block);
    q.from(block.first).copy(block.queries(), s.d, own.q);
    scoresOf(s, block, own.q, k, own.scores, [&](uint64_t i, Softmax softmax) {
      ahead.fetch(block.first + i);
      lse[block.first + i] = std::log(softmax.sum) + softmax.largest;
      sums[i] = softmax.sum;
    });
    multiplyRows('N', 'N', block.queries(), s.e, block.keys, 1, own.scores, v, 0, own.out);
    for (uint64_t i = 0; i < block.queries(); ++i)
      scaleRow(own.out[i], 1 / sums[i], out[block.first + i], s.e);
  });
}

/// Copies of a head's operands in backward.
struct BackwardCopies {
  explicit BackwardCopies(const WideAttention &s)
      : n(s.queriesOfBlock()),
        scratch(2 * (n + s.sk) * (Scratch::stride(s.d) + Scratch::stride(s.e)) + 2 * n * Scratch::stride(s.sk)),
        ct(scratch.take(n, s.e)), q(scratch.take(n, s.d)), k(scratch.take(s.sk, s.d)), v(scratch.take(s.sk, s.e)),
        dq(scratch.take(n, s.d)), dk(scratch.take(s.sk, s.d)), dv(scratch.take(s.sk, s.e)),
        scores(scratch.take(n, s.sk)), t(scratch.take(n, s.sk)) {
    std::fill_n(dk.data, s.sk * dk.stride, 0.0f);
    std::fill_n(dv.data, s.sk * dv.stride, 0.0f);
  }

  uint64_t n;
  Scratch scratch;
  HeadRows ct, q, k, v, dq, dk, dv, scores, t;
};

/// All heads that share keys and values.
void backwardOf(const WideAttention &s, Place here, Place next) {
  using enum AttentionSizes::BackwardTensor;
  uint64_t batch = here.batch, repeats = s.h / s.g, group = here.head / repeats;
  const Ahead ahead(s, attentionBackward, next);
  BackwardCopies own(s);
  s.head(K, batch, group).copy(s.sk, s.d, own.k);
  s.head(V, batch, group).copy(s.sk, s.e, own.v);
  for (uint64_t head = group * repeats; head < (group + 1) * repeats; ++head) {
    HeadRows ct = s.head(Ct, batch, head), q = s.head(Q, batch, head), out = s.head(Out, batch, head),
             dq = s.head(Dq, batch, head);
    forEachBlock(s, batch, head, [&](const QueryBlock &block) {
      uint64_t n = block.queries();
      ct.from(block.first).copy(n, s.e, own.ct);
      q.from(block.first).copy(n, s.d, own.q);
      multiplyRows('N', 'T', n, block.keys, s.e, 1, own.ct, own.v, 0, own.t);
      scoresOf(s, block, own.q, own.k, own.scores, [&](uint64_t i, Softmax softmax) {
        if (head == here.head)
          ahead.fetch(block.first + i);
        differentiate(own.scores[i], own.t[i], 1 / softmax.sum, dotRow(own.ct[i], out[block.first + i], s.e),
                      float(s.scale), block.keys);
      });
      multiplyRows('N', 'N', n, s.d, block.keys, 1, own.t, own.k, 0, own.dq);
      own.dq.copy(n, s.d, dq.from(block.first));
      multiplyRows('T', 'N', block.keys, s.d, n, 1, own.t, own.q, 1, own.dk);
      multiplyRows('T', 'N', block.keys, s.e, n, 1, own.scores, own.ct, 1, own.dv);
    });
  }
  own.dk.copy(s.sk, s.d, s.head(Dk, batch, group));
  own.dv.copy(s.sk, s.e, s.head(Dv, batch, group));
}

} // namespace

void attentionF32(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  WideAttention s(imm, attentionForward, ptr);
  auto place = [&](uint64_t tile) { return Place{tile / s.h, tile % s.h}; };
  for (uint64_t tile = tile0; tile < tile1; ++tile)
    forwardOf(s, place(tile), place(std::min<uint64_t>(tile + 1, tile1 - 1)));
}

void attentionBackwardF32(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  WideAttention s(imm, attentionBackward, ptr);
  auto place = [&](uint64_t tile) { return Place{tile / s.g, tile % s.g * (s.h / s.g)}; };
  for (uint64_t tile = tile0; tile < tile1; ++tile)
    backwardOf(s, place(tile), place(std::min<uint64_t>(tile + 1, tile1 - 1)));
}

} // namespace par::kernels
