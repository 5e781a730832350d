// Matmuls by oneDNN: dnnl_sgemm, whole or in pieces, or the matmul primitive, whichever is faster for the shape on this
// machine. Rank 0 decides once, before the first step, for all ranks.
#pragma once

#include "par/format/Program.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace par::cpu {

/// How a matmul is computed: whole, in pieces along `m`, or in pieces along `k` that are added up. Pieces can be faster
/// because dnnl_sgemm chooses its blocks only by the shape: two sums of 1536 x 384 over 1024 take a fifth longer than
/// eight pieces of 128.
struct MatmulChoice {
  enum Routine : uint8_t { Sgemm, SgemmByM, SgemmByK, Primitive } routine = Sgemm;
  int64_t piece = 0; ///< rows of C, or members of a sum

  bool operator==(const MatmulChoice &) const = default;
};

/// "sgemm", "sgemm by k 128", "primitive".
std::string toString(const MatmulChoice &choice);
/// Parses the text of toString(); nullopt for any other text.
std::optional<MatmulChoice> parseChoice(const std::string &text);

/// Describes everything that the choice depends on: "f32 nt 1024x768x3072 ld 3072,3072,768 ...".
std::string shapeKey(const format::Call &call);

/// Choices by shapeKey.
using MatmulChoices = std::map<std::string, MatmulChoice>;

/// A matmul that is ready to run.
class Matmul {
public:
  virtual ~Matmul();
  /// C = alpha op(A) op(B) + beta C (+ bias); `bias` null where the call has none, `workspace` where it has none.
  virtual void run(const float *a, const float *b, const float *bias, float *c, void *workspace) const = 0;
};

/// Prepares a matmul. Throws core::Failure for types and shapes that cannot be run, and if the library wants more
/// workspace than the call allows. `place` begins messages.
std::unique_ptr<Matmul> makeMatmul(const format::Call &call, MatmulChoice choice, const std::string &place);

/// Whether a matmul is big enough to be timed: below 2^24 multiplications the choice does not matter.
bool worthTrying(const format::Call &call);
/// Times the choices on this machine.
class MatmulTrials {
public:
  /// The fastest for a call. Pieces are tried on the call's own matrices (one to four of a batch) where those are up to
  /// 15 ms' work, since what the library does depends on each dim; the primitive on matrices of its layout cut to 2 ms'
  /// work. Calls that are not worth it get Sgemm.
  MatmulChoice choose(const format::Call &call);

private:
  MatmulChoice tryPieces(format::Call call);
  /// The first choice, or the one that takes the least time in two or three runs, if that is clearly less.
  MatmulChoice fastest(const format::Call &call, const std::vector<MatmulChoice> &choices);
  /// Seconds of one run, on operands that were not used before.
  double time(const format::Call &call, const Matmul &matmul);
  static float *take(std::vector<float> &memory, uint64_t &next, uint64_t elements, float value);

  std::vector<float> inputs, results;
  uint64_t nextInput = 0, nextResult = 0;
};

/// Threads that oneDNN uses in calls from this thread. Throws format::OutOfMemory where it would find too
/// little memory for the code of its kernels: it takes that for given.
void setLibraryThreads(int threads);
/// Lets oneDNN generate the code of its matmuls, so that processes which are forked from here on have it. Starts no
/// thread. Does nothing where memory is scarce: the first matmul generates it then.
void generateLibraryCode();
/// "oneDNN 2.6.3".
std::string libraryVersion();

} // namespace par::cpu
