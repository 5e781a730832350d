// Kernels, calls and copies of one rank's program, measured without communication.
#pragma once

#include "Bench.h"
#include "Rows.h"

namespace par::calibrate {

/// Times of one pass over a program's local work, by what the steps do.
struct Pass {
  double matmul = 0, kernel = 0; ///< ns
};

class LocalWork {
public:
  /// The scratch memory holds random numbers, and as many bytes as the largest value that another rank sends.
  explicit LocalWork(Bench &bench);

  /// A CPU plays the entry in its order, so that an instruction finds in the caches what the ones before it left
  /// there; a row is the mean over the steps of a key of each one's median over passes. A GPU, whose queue hides
  /// the time of a launch, plays each key's first step many times.
  Pass measure(Rows &rows, double seconds);
  /// As many passes as fit; the median of each part. Ranks may play at the same time.
  Pass passes(double seconds);

  /// By how much the later of two ranks is later than their mean after compute of so many ns: half the difference of
  /// parts of that length of two of the last passes, the median.
  std::vector<std::pair<int64_t, double>> spread() const;

  /// How it was measured, a line for people.
  std::string describe() const;

private:
  std::vector<int64_t> playOnce(bool byThread);
  std::optional<RowKey> keyOf(size_t step) const;

  /// ns of each step.
  std::vector<double> playFor(double seconds);
  Pass measureInOrder(Rows &rows, double seconds);
  Pass measureOneByOne(Rows &rows, double seconds);

  Bench &bench;
  const core::ExpandedEntry &whole;
  LocalEntry local;
  size_t passesPlayed = 0;
  std::vector<std::vector<int64_t>> byWall; ///< times of the steps of each pass
};

/// The entry that is measured: training, or the first one.
std::string entryToMeasure(const format::Program &program);

} // namespace par::calibrate
