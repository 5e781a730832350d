// Whether the library met a NaN where it keeps none (its minima and maxima give the bound for a NaN), or a result that
// was too large.
#pragma once

namespace par::kernels {

/// Flags of the floating-point operations since a begin.
struct FloatFlags {
  bool nan = false;      ///< a minimum, a maximum or a comparison of one, or an operation that makes one (inf - inf)
  bool overflow = false; ///< finite operands with an infinite result
};

/// Begins before a call of the library, on the thread that makes it. The operations raise the processor's flags, which
/// costs nothing to compute and is read afterwards on each of the library's threads. Without either flag, finite
/// operands have given finite results.
class FloatWatch {
public:
  FloatWatch();
  FloatWatch(const FloatWatch &) = delete;
  FloatWatch &operator=(const FloatWatch &) = delete;
  /// The caller's own flags are raised again.
  ~FloatWatch();

  /// Reading lowers the flags. A thread's flag may be an earlier call's.
  FloatFlags read();

private:
  unsigned before; ///< the caller's flags
};

} // namespace par::kernels
