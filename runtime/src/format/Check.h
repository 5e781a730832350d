// Conditions that a program and a manifest meet by themselves.
#pragma once

#include "par/format/Manifest.h"

#include <concepts>
#include <string>

namespace par::format {

class Node;

/// A number in the text of an error.
std::string number(std::integral auto n) { return std::to_string(n); }

/// Every index is in its table, every offset in its arena, every operand as its instruction takes it. After this
/// slotOf, addressOf and describe are safe on the program. Part of V1.
Status checkProgram(const Program &program, const std::string &where);
/// Ranks, groups and layouts agree with each other. After this the look-ups of Manifest.h are safe.
Status checkManifest(const Manifest &manifest, const std::string &where);
/// The minor version; refuses another major one than ours.
int64_t readVersion(const Node &node);

} // namespace par::format
