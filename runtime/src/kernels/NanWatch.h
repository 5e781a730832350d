// Whether the library met a NaN where it keeps none: its minima and maxima give the bound for a NaN.
#pragma once

namespace par::kernels {

/// Begins before a call of the library, on the thread that makes it. Minima, maxima and comparisons of a NaN, and
/// operations that make one (inf - inf), raise the processor's flag of invalid operations, which costs nothing to
/// compute and is read afterwards on each of the library's threads.
class NanWatch {
public:
  NanWatch();
  NanWatch(const NanWatch &) = delete;
  NanWatch &operator=(const NanWatch &) = delete;
  /// The caller's own flag is raised again.
  ~NanWatch();

  /// Whether there may have been a NaN. Reading lowers the flags.
  bool mayHaveMetOne();

private:
  bool wasRaised;
};

} // namespace par::kernels
