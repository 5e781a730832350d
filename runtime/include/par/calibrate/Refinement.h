// A hardware file that a run's trace makes better.
#pragma once

#include "par/format/Bundle.h"

#include <string>

namespace par::calibrate {

/// The text of the file that --calibrate wrote, with rows of the times in a trace of this bundle in place of those of
/// the same work, and beside all others. Throws core::Failure.
struct Refined {
  std::string text;
  size_t rows = 0, steps = 0; ///< of the trace, and those that counted
};
Refined refine(const format::Bundle &bundle, const std::string &bundleName, const std::string &hardware,
               const std::string &trace);

} // namespace par::calibrate
