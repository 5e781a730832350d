// Capabilities of this machine.
#pragma once

#include <string>
#include <string_view>

namespace par::cpu {

/// True if the processor has the feature ("avx512f", "avx2", "x86-64-v3", ...); false for unknown names too.
bool hasFeature(std::string_view name);
/// The best level of this machine: "x86-64-v4", "x86-64-v3", "x86-64-v2" or "x86-64".
std::string isaLevel();
/// The processor's model, as /proc/cpuinfo has it.
std::string processorName();
/// The most threads that a rank may have: more than a few for each core are a mistake, and ten thousand stop a machine.
inline constexpr int threadsOfCore = 4;
int maxThreads();

} // namespace par::cpu
