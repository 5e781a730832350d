// The report as one page of HTML that needs no network.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>

namespace par {

/// The page that shows a report (docs/report.md), with the report in it.
std::string reportAsPage(llvm::StringRef reportJson);

} // namespace par
