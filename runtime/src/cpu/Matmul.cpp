// Matmuls by oneDNN, as dnnl_sgemm calls on whole matrices or pieces, or as its matmul primitive; the choice for each
// shape is rank 0's (by timing) and has a text form that ranks exchange.
#include "par/cpu/Matmul.h"

#include "MatrixOffsets.h"
#include "ZeroRows.h"
#include "par/format/OutOfMemory.h"
#include "par/format/SignalsHeld.h"
#include "par/kernels/DnnEngine.h"
#include "par/kernels/Sgemm.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <dnnl.hpp>
#include <sstream>

extern "C" void omp_set_num_threads(int) __attribute__((weak));

namespace par::cpu {

using core::Failure;
using core::Message;
using format::Call;

/// The library takes about 10 MiB at the first matmul, and some for each other kind.
constexpr size_t libraryRoom = 64 << 20, roomOfOne = 16 << 20;

Matmul::~Matmul() = default;

std::string shapeKey(const Call &call) {
  std::ostringstream key;
  key << format::toString(call.type) << ' ' << (call.transA ? 't' : 'n') << (call.transB ? 't' : 'n') << ' ';
  for (size_t i = 0; i < call.batch.size(); ++i)
    key << call.batch[i] << '(' << call.strideA[i] << ',' << call.strideB[i] << ',' << call.strideC[i] << ") ";
  key << call.m << 'x' << call.n << 'x' << call.k << " ld " << call.lda << ',' << call.ldb << ',' << call.ldc;
  key << " alpha " << call.alpha << " beta " << call.beta << (call.bias ? " bias" : "");
  return key.str();
}

std::string toString(const MatmulChoice &choice) {
  switch (choice.routine) {
  case MatmulChoice::SgemmByM:
    return core::format("sgemm by m {}", choice.piece);
  case MatmulChoice::SgemmByK:
    return core::format("sgemm by k {}", choice.piece);
  case MatmulChoice::Primitive:
    return "primitive";
  case MatmulChoice::Sgemm:
    break;
  }
  return "sgemm";
}

std::optional<MatmulChoice> parseChoice(const std::string &text) {
  std::vector<MatmulChoice> all{{MatmulChoice::Sgemm}, {MatmulChoice::Primitive}};
  int64_t piece = std::atoll(text.c_str() + std::min(text.size(), std::string("sgemm by k ").size()));
  if (piece > 0)
    for (MatmulChoice::Routine routine : {MatmulChoice::SgemmByM, MatmulChoice::SgemmByK})
      all.push_back({routine, piece});
  for (const MatmulChoice &choice : all)
    if (toString(choice) == text)
      return choice;
  return std::nullopt;
}

namespace {

/// One dnnl_sgemm a matrix, or one a piece.
class SgemmMatmul : public Matmul {
public:
  SgemmMatmul(const Call &call, const MatmulChoice &choice)
      : call(call), offsets(matrixOffsets(call)),
        rows(choice.routine == MatmulChoice::SgemmByM ? choice.piece : call.m),
        depth(choice.routine == MatmulChoice::SgemmByK ? choice.piece : call.k) {}

  void run(const float *a, const float *b, const float *bias, float *c, void *) const override {
    for (const MatrixOffsets &at : offsets) {
      if (bias)
        addBias(c + at.c, bias);
      float beta = bias ? 1.0f : static_cast<float>(call.beta);
      for (int64_t row = 0; row < call.m; row += rows)
        for (int64_t from = 0; from < call.k; from += depth)
          multiply(a + at.a, b + at.b, from == 0 ? beta : 1.0f, c + at.c, row, from);
    }
  }

private:
  /// C[row ...] = beta C[row ...] + alpha A[row ..., from ...] B[from ..., :], of one piece.
  void multiply(const float *a, const float *b, float beta, float *c, int64_t row, int64_t from) const {
    kernels::sgemm(call.transA ? 'T' : 'N', call.transB ? 'T' : 'N', std::min(rows, call.m - row), call.n,
                   std::min(depth, call.k - from), static_cast<float>(call.alpha),
                   {a + (call.transA ? from * call.lda + row : row * call.lda + from), call.lda},
                   {b + (call.transB ? from : from * call.ldb), call.ldb}, beta, c + row * call.ldc, call.ldc);
  }
  /// C = beta C + bias, so that the matmul can add to it.
  void addBias(float *c, const float *bias) const {
    auto beta = static_cast<float>(call.beta);
    for (int64_t row = 0; row < call.m; ++row, c += call.ldc) {
      if (beta == 0.0f)
        std::copy_n(bias, call.n, c);
      else
        for (int64_t j = 0; j < call.n; ++j)
          c[j] = beta * c[j] + bias[j];
    }
  }

  Call call;
  std::vector<MatrixOffsets> offsets;
  int64_t rows, depth; ///< of a piece
};

/// Descriptor of an operand: batch dims (1 where the matrix is repeated), then the matrix as seen by the matmul.
dnnl::memory::desc descriptor(const Call &call, const std::vector<int64_t> &strides, int64_t rows, int64_t cols,
                              int64_t ld, bool transposed) {
  dnnl::memory::dims dims, steps;
  for (size_t d = 0; d < call.batch.size(); ++d) {
    dims.push_back(strides[d] == 0 ? 1 : call.batch[d]);
    steps.push_back(strides[d] == 0 ? std::max(rows, cols) * ld : strides[d]);
  }
  dims.insert(dims.end(), {rows, cols});
  steps.insert(steps.end(), {transposed ? 1 : ld, transposed ? ld : 1});
  return {dims, dnnl::memory::data_type::f32, steps};
}

class PrimitiveMatmul : public Matmul {
public:
  explicit PrimitiveMatmul(const Call &call)
      : a(descriptor(call, call.strideA, call.m, call.k, call.lda, call.transA)),
        b(descriptor(call, call.strideB, call.k, call.n, call.ldb, call.transB)),
        c(descriptor(call, call.strideC, call.m, call.n, call.ldc, false)), withBias(call.bias) {
    format::requireRoom(roomOfOne);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (call.alpha != 1)
      attributes.set_output_scales(0, {static_cast<float>(call.alpha)});
    if (call.beta != 0) {
      dnnl::post_ops sum;
      sum.append_sum(static_cast<float>(call.beta));
      attributes.set_post_ops(sum);
    }
    dnnl::memory::dims biasDims(call.batch.size() + 1, 1);
    biasDims.push_back(call.n);
    bias = dnnl::memory::desc(biasDims, dnnl::memory::data_type::f32, dnnl::memory::dims(biasDims.size(), 1));
    auto operation = withBias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    dnnl::matmul::primitive_desc chosen(operation, attributes, kernels::engine());
    scratchpad = chosen.scratchpad_desc();
    primitive = dnnl::matmul(chosen);
  }

  size_t workspaceBytes() const { return scratchpad.get_size(); }

  void run(const float *ptrA, const float *ptrB, const float *ptrBias, float *ptrC, void *workspace) const override {
    dnnl::stream stream(kernels::engine());
    auto memory = [](const dnnl::memory::desc &desc, const void *ptr) {
      return dnnl::memory(desc, kernels::engine(), const_cast<void *>(ptr));
    };
    std::unordered_map<int, dnnl::memory> arguments{
        {DNNL_ARG_SRC, memory(a, ptrA)}, {DNNL_ARG_WEIGHTS, memory(b, ptrB)}, {DNNL_ARG_DST, memory(c, ptrC)}};
    if (withBias)
      arguments.emplace(DNNL_ARG_BIAS, memory(bias, ptrBias));
    if (workspaceBytes() > 0)
      arguments.emplace(DNNL_ARG_SCRATCHPAD, memory(scratchpad, workspace));
    format::SignalsHeld held;
    primitive.execute(stream, arguments);
    stream.wait();
  }

private:
  dnnl::memory::desc a, b, c, bias, scratchpad;
  dnnl::matmul primitive;
  bool withBias;
};

/// Whether the primitive computes this call: it scales the bias too, and wants each batch dim of C in A or B.
bool primitiveFits(const Call &call) {
  if (call.bias && (call.alpha != 1 || call.beta != 0))
    return false;
  for (size_t d = 0; d < call.batch.size(); ++d)
    if (call.batch[d] > 1 && call.strideA[d] == 0 && call.strideB[d] == 0)
      return false;
  return call.batch.size() <= 8;
}

} // namespace

static std::unique_ptr<Matmul> makeDense(const Call &call, MatmulChoice choice, const std::string &place) {
  if (choice.routine != MatmulChoice::Primitive || !primitiveFits(call))
    return std::make_unique<SgemmMatmul>(call, choice);
  try {
    auto primitive = std::make_unique<PrimitiveMatmul>(call);
    if (primitive->workspaceBytes() > call.workspace)
      throw Failure::at(place, Message::workspaceTooSmall, call.name, primitive->workspaceBytes(), call.workspace);
    return primitive;
  } catch (const dnnl::error &error) {
    throw Failure::at(place, Message::libraryFailed, call.name, shapeKey(call), error.status);
  }
}

std::unique_ptr<Matmul> makeMatmul(const Call &call, MatmulChoice choice, const std::string &place) {
  if (call.kind != "matmul" || call.type != format::DType::F32)
    throw Failure::at(place, Message::libraryFailed, call.name, call.kind + " of " + std::string(toString(call.type)),
                      "not supported yet");
  return skipZeroRows(call, makeDense(call, choice, place));
}

void setLibraryThreads(int threads) {
  format::requireRoom(libraryRoom);
  if (omp_set_num_threads)
    omp_set_num_threads(threads);
}

// The library generates its code by operands that are transposed, and by whether a sum goes on.
void generateLibraryCode() {
  constexpr int64_t size = 64;
  try {
    setLibraryThreads(1);
    std::vector<float> a(size * size), b(size * size), c(size * size);
    for (char transA : {'N', 'T'})
      for (char transB : {'N', 'T'})
        for (int64_t columns : {int64_t(1), size})
          for (float beta : {0.0f, 1.0f})
            kernels::sgemm(transA, transB, size, columns, size, 1, {a.data(), size}, {b.data(), size}, beta, c.data(),
                           size);
  } catch (const std::bad_alloc &) {
  }
}

std::string libraryVersion() {
  const dnnl_version_t *version = dnnl_version();
  return core::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

} // namespace par::cpu
