// The hardware file that a measurement gives (docs/plan.md, hardware files).
#pragma once

#include "Rows.h"

namespace par::calibrate {

/// Facts of a measurement beside its rows.
struct Measured {
  std::string name;                ///< of the hardware
  std::string isa;                 ///< of its devices; "": not of the file
  std::vector<std::string> remark; ///< comment lines: machine, date, bundle, repetitions
  Rows rows;
  double launchNs = 0;
  bool isGpu = false;
  int64_t ranksOfHost = 0; ///< 0: all are on one
};

/// YAML that par-compile reads: the rows, and the keys that they give. A key for which no row was measured is an
/// estimate from others, and its comment says so.
inline constexpr const char *calibrationSource = "measured by par-run --calibrate";
std::string hardwareText(const Measured &measured);

/// Its last part, `measured`.
std::string tableText(const Rows &rows);
/// Whether `measured` has lists of this name.
bool isList(const std::string &name);

} // namespace par::calibrate
