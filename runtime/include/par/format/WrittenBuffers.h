// The buffers that a program changes.
#pragma once

#include "par/format/Program.h"

#include <vector>

namespace par::format {

/// For each buffer that lies in memory of its own, whether an instruction writes it or an alias of it.
std::vector<bool> writtenBuffers(const Program &program);

} // namespace par::format
