// Plans with layers that are in no file.
#pragma once

#include "par/Plan/Model/Plan.h"

namespace par {

/// As readPlan of files and settings (Plan.h). `texts`, by name and text, are laid over the files and below the
/// settings.
std::optional<Plan> readPlan(llvm::ArrayRef<std::string> files,
                             llvm::ArrayRef<std::pair<std::string, std::string>> texts,
                             llvm::ArrayRef<std::string> settings, PlanErrors &errors);

} // namespace par
