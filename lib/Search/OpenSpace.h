// The keys that a user's plan leaves open, for a model and a number of ranks.
#pragma once

#include "par/Search/Candidate.h"

namespace par {

struct OpenSpace {
  Space space;
  Hardware hardware;
  std::optional<uint64_t> limit; ///< bytes of a rank
};

/// Nothing after an error. `text` leaves out `ranks`.
std::optional<OpenSpace> openSpace(const std::shared_ptr<const Model> &model, const PlanText &text, int64_t ranks,
                                   DiagnosticSink sink);

} // namespace par
