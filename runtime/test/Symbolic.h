// Runs a bundle on names of values. An oracle that shares nothing with the verifier: every instruction writes a value
// named by the hash of what it is and what it read, byte ranges hold values, and communication moves them. Two bundles
// whose ranks end with the same names in all state and all outputs compute the same, up to the order of additions.
#pragma once

#include "par/format/Bundle.h"

namespace par::toy {

/// Hash of each rank's state and outputs after every entry has run twice, in order. Empty if ranks got stuck. The
/// bundle must be well-formed (V1).
std::vector<uint64_t> runSymbolically(const format::Bundle &bundle);

} // namespace par::toy
