#pragma once

#include "par/Inspect/Facts.h"

#include "llvm/Support/JSON.h"

namespace par {

/// The keys `timeline` and `memory_over_time`: many numbers, in arrays on one line.
void writePictures(llvm::json::OStream &json, const Facts &facts);

} // namespace par
