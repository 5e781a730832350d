// A mixture of experts computes each expert for all tokens, and the result is zero for tokens that did not choose the
// expert: [token, expert, width] holds few nonzero rows of `width`. A matmul that reads such an operand needs only the
// tokens of each expert, which are known when it runs. The operand is split into blocks of columns, the nonzero rows of
// a block are packed, and one matmul per block has their size. A few places are checked first, so that a dense operand
// costs no more than these.
//
// Only the order of additions changes. 0 times an infinity is not zero: if the other operand has one, or a NaN, the
// matmul is dense.
#include "ZeroRows.h"

#include "MatrixOffsets.h"
#include "par/kernels/Sgemm.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace par::cpu {

using format::Call;

namespace {

constexpr int64_t blockWidth = 256, minRows = 64, minColumns = 64, probes = 64;
constexpr double smallestProduct = 1 << 24;

/// The operand that may be zero in rows, [rows, columns], one row after the other.
struct Operand {
  const float *data;
  int64_t rows, columns, stride;

  bool isZero(int64_t row, int64_t first, int64_t last) const {
    const float *x = data + row * stride;
    return std::all_of(x + first, x + last, [](float value) { return value == 0.0f; });
  }
  int64_t blocks() const { return (columns + blockWidth - 1) / blockWidth; }
  int64_t end(int64_t block) const { return std::min(columns, (block + 1) * blockWidth); }
};

/// Columns [first, last), and the rows that are not all zero there.
struct Block {
  int64_t first, last;
  std::vector<int64_t> rows;

  int64_t width() const { return last - first; }
  auto count() const { return static_cast<int64_t>(rows.size()); }
};

/// Whether more than half of 64 sampled (row, block) places are all zero.
bool looksEmpty(const Operand &operand) {
  if (operand.rows < minRows || operand.columns < blockWidth)
    return false;
  int64_t places = operand.rows * operand.blocks(), empty = 0;
  for (int64_t probe = 0; probe < probes; ++probe) {
    int64_t place = (2 * probe + 1) * places / (2 * probes), block = place % operand.blocks();
    empty += operand.isZero(place / operand.blocks(), block * blockWidth, operand.end(block));
  }
  return 2 * empty > probes;
}

/// The nonzero rows of each block, neighbours with equal rows merged; empty if half of the operand or more is nonzero.
std::vector<Block> findBlocks(const Operand &operand) {
  std::vector<Block> found;
  if (!looksEmpty(operand))
    return found;
  int64_t there = 0;
  for (int64_t block = 0; block < operand.blocks(); ++block) {
    Block next{block * blockWidth, operand.end(block), {}};
    for (int64_t row = 0; row < operand.rows; ++row)
      if (!operand.isZero(row, next.first, next.last))
        next.rows.push_back(row);
    there += next.count() * next.width();
    if (!found.empty() && found.back().rows == next.rows)
      found.back().last = next.last;
    else
      found.push_back(std::move(next));
  }
  return 2 * there < operand.rows * operand.columns ? found : std::vector<Block>();
}

/// No infinity and no NaN among rows of that many columns.
bool isFinite(const float *x, int64_t rows, int64_t columns, int64_t stride) {
  uint32_t largest = 0;
  for (int64_t row = 0; row < rows; ++row, x += stride)
    for (int64_t i = 0; i < columns; ++i)
      largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  return largest < 0x7f800000u;
}

/// Columns [first, last) of some rows, packed.
std::vector<float> pack(const float *x, int64_t stride, const std::vector<int64_t> &rows, int64_t first, int64_t last) {
  std::vector<float> packed;
  packed.reserve(rows.size() * static_cast<size_t>(last - first));
  for (int64_t row : rows)
    packed.insert(packed.end(), x + row * stride + first, x + row * stride + last);
  return packed;
}

class ZeroRows : public Matmul {
public:
  ZeroRows(const Call &call, std::unique_ptr<Matmul> dense)
      : call(call), offsets(matrixOffsets(call)), dense(std::move(dense)) {}

  void run(const float *a, const float *b, const float *bias, float *c, void *workspace) const override {
    // Only the first matrix is sampled: those of a batch are alike.
    if (!looksEmpty(operand(a)) && !looksEmpty(other(b)))
      return dense->run(a, b, bias, c, workspace);
    for (const MatrixOffsets &at : offsets)
      if (!skip(a + at.a, b + at.b, c + at.c))
        multiply(a + at.a, b + at.b, c + at.c);
  }

private:
  Operand operand(const float *a) const {
    return call.transA ? Operand{a, call.k, call.m, call.lda} : Operand{a, call.m, call.k, call.lda};
  }
  /// B as [k, n] if A is transposed, else empty: only then are the rows of A that match B's stored as rows.
  Operand other(const float *b) const {
    return call.transA ? Operand{b, call.k, call.n, call.ldb} : Operand{b, 0, 0, 0};
  }
  void multiply(const float *a, const float *b, float *c) const {
    kernels::sgemm(call.transA ? 'T' : 'N', call.transB ? 'T' : 'N', call.m, call.n, call.k,
                   static_cast<float>(call.alpha), {a, call.lda}, {b, call.ldb}, static_cast<float>(call.beta), c,
                   call.ldc);
  }
  /// C += alpha A[rows, block] op(B)[block, :] for each block of A, which is not transposed.
  void addBlocks(const std::vector<Block> &blocks, const float *a, const float *b, float *c) const;
  /// C[block, :] of a transposed A, or C[:, block] where B has the blocks.
  void sumRows(const std::vector<Block> &blocks, bool ofA, const float *a, const float *b, float *c) const;
  /// beta C, of one block of rows and columns.
  void scale(float *c, int64_t rows, int64_t columns) const;
  /// Computes C from nonzero rows; false: compute it densely.
  bool skip(const float *a, const float *b, float *c) const;

  Call call;
  std::vector<MatrixOffsets> offsets;
  std::unique_ptr<Matmul> dense;
};

void ZeroRows::scale(float *c, int64_t rows, int64_t columns) const {
  auto beta = static_cast<float>(call.beta);
  for (int64_t row = 0; row < rows; ++row, c += call.ldc)
    for (int64_t i = 0; i < columns; ++i)
      c[i] = beta == 0.0f ? 0.0f : beta * c[i];
}

void ZeroRows::addBlocks(const std::vector<Block> &blocks, const float *a, const float *b, float *c) const {
  scale(c, call.m, call.n);
  std::vector<float> product;
  for (const Block &block : blocks) {
    if (block.rows.empty())
      continue;
    std::vector<float> packed = pack(a, call.lda, block.rows, block.first, block.last);
    product.resize(block.rows.size() * static_cast<size_t>(call.n));
    kernels::sgemm('N', call.transB ? 'T' : 'N', block.count(), call.n, block.width(), static_cast<float>(call.alpha),
                   {packed.data(), block.width()}, {b + block.first * (call.transB ? 1 : call.ldb), call.ldb}, 0,
                   product.data(), call.n);
    const float *from = product.data();
    for (int64_t row : block.rows) {
      float *to = c + row * call.ldc;
      for (int64_t i = 0; i < call.n; ++i)
        to[i] += from[i];
      from += call.n;
    }
  }
}

void ZeroRows::sumRows(const std::vector<Block> &blocks, bool ofA, const float *a, const float *b, float *c) const {
  for (const Block &block : blocks) {
    float *to = c + block.first * (ofA ? call.ldc : 1);
    int64_t m = ofA ? block.width() : call.m, n = ofA ? call.n : block.width();
    if (block.rows.empty()) {
      scale(to, m, n);
      continue;
    }
    std::vector<float> left = pack(a, call.lda, block.rows, ofA ? block.first : 0, ofA ? block.last : call.m);
    std::vector<float> right = pack(b, call.ldb, block.rows, ofA ? 0 : block.first, ofA ? call.n : block.last);
    kernels::sgemm('T', 'N', m, n, block.count(), static_cast<float>(call.alpha), {left.data(), m}, {right.data(), n},
                   static_cast<float>(call.beta), to, call.ldc);
  }
}

bool ZeroRows::skip(const float *a, const float *b, float *c) const {
  std::vector<Block> blocks = findBlocks(operand(a));
  bool ofA = !blocks.empty();
  if (!ofA)
    blocks = findBlocks(other(b)); // none unless A is transposed, [k, m]
  if (blocks.empty())
    return false;
  bool finite = !ofA          ? isFinite(a, call.k, call.m, call.lda)
                : call.transB ? isFinite(b, call.n, call.k, call.ldb)
                              : isFinite(b, call.k, call.n, call.ldb);
  if (!finite)
    return false;
  call.transA ? sumRows(blocks, ofA, a, b, c) : addBlocks(blocks, a, b, c);
  return true;
}

} // namespace

std::unique_ptr<Matmul> skipZeroRows(const Call &call, std::unique_ptr<Matmul> dense) {
  double work = static_cast<double>(call.m) * static_cast<double>(call.n) * static_cast<double>(call.k);
  bool skips =
      work >= smallestProduct && !call.bias && std::min(call.m, call.n) >= minColumns && !(call.transA && call.transB);
  return skips ? std::make_unique<ZeroRows>(call, std::move(dense)) : std::move(dense);
}

} // namespace par::cpu
