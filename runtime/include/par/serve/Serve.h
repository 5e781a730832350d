// par-run --serve: answers requests until a signal comes.
#pragma once

#include "par/app/Options.h"

namespace par::serve {

/// Opens the bundle, on all its ranks, and answers. `arguments`: those of par-run. Returns the exit code; throws
/// Failure.
int serve(const core::RunOptions &options, const std::vector<std::string> &arguments);

} // namespace par::serve
