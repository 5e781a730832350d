// Names of values.
#pragma once

#include "Model.h"

namespace par::verify {

/// Appends to a hash; order counts.
uint64_t mix(uint64_t hash, uint64_t n);
uint64_t mix(uint64_t hash, std::string_view text);

/// Name of an instruction, apart from its operands: kernel and immediates, call, communication by tag, input, value.
uint64_t nameOf(const format::Program &program, const format::Instruction &it, const format::Run &run);

} // namespace par::verify
