// Which values of a program its convolutions know to be finite: from convolution to convolution, so that a residual
// that lies where its sum is to lie need not be looked through.
//
//     y1 = convolution(x, w1)                    x is looked through; y1 is finite if no operation overflows
//     y2 = convolution(x, w2)                    x is known
//     y2 = max(y2 + convolution(y1, w3), 0)      y2 is known: the bound hides no NaN of it
//
// Values are followed within a block, whose instructions run in order.
#pragma once

#include "par/format/Program.h"
#include "par/kernels/PackedConvolution.h"

#include <optional>
#include <vector>

namespace par::cpu {

class FiniteChains {
public:
  /// Follows the values of one block through these of its convolutions, in its order; they have the next places.
  void follow(const format::Program &program, const format::Block &block,
              const std::vector<const format::Instruction *> &convolutions);
  /// Facts before a run of the convolution at `place`, and those that it has to find.
  kernels::FiniteValues before(size_t place) const;
  /// Keeps what the run has found.
  void after(size_t place, const kernels::FiniteValues &found);

private:
  struct Convolution {
    size_t input = 0, result = 0;   ///< values
    std::optional<size_t> residual; ///< a value
    /// Whether it is the first that reads them: what is known of them is of an earlier run.
    bool isFirstOfInput = false, isFirstOfResidual = false;
    bool seeksResult = false;
  };
  class Walk;

  void seekWhatHelps(size_t first, const std::vector<bool> &looksThrough, const std::vector<bool> &isFound);

  std::vector<Convolution> convolutions;
  std::vector<bool> finite; ///< by value, as of the last run
};

} // namespace par::cpu
