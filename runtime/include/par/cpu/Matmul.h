// Matrix products by oneDNN: dnnl_sgemm or the matmul primitive, whichever is faster for the shape on this
// machine. Which one is decided once, before the first step, by rank 0, and is the same on all ranks.
#pragma once

#include "par/format/Program.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace par::cpu {

enum class MatmulChoice : uint8_t { Sgemm, Primitive };

/// Describes everything that the choice depends on: "f32 nt 1024x768x3072 ld 3072,3072,768 ...".
std::string shapeKey(const format::Call &call);

/// Choices by shapeKey.
using MatmulChoices = std::map<std::string, MatmulChoice>;

/// A product that is ready to run.
class Matmul {
public:
  virtual ~Matmul();
  /// C = alpha op(A) op(B) + beta C (+ bias); `bias` null where the call has none, `workspace` where it has none.
  virtual void run(const float *a, const float *b, const float *bias, float *c, void *workspace) const = 0;
};

/// Prepares a product. Throws core::Failure for types and shapes that cannot be run, and where the library wants
/// more workspace than the call allows. `place` begins messages.
std::unique_ptr<Matmul> makeMatmul(const format::Call &call, MatmulChoice choice, const std::string &place);

/// Whether a product is big enough to be timed: below 2^24 multiplications the choice does not matter.
bool worthTrying(const format::Call &call);
/// Times both on this machine, on matrices of the call's layout cut to a few milliseconds' work. Products that are
/// not worth it get Sgemm.
MatmulChoice tryMatmul(const format::Call &call);

/// Threads that oneDNN uses in calls from this thread.
void setLibraryThreads(int threads);
/// "oneDNN 2.6.3".
std::string libraryVersion();

} // namespace par::cpu
