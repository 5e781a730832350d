#include "par/cpu/Machine.h"

#include <algorithm>
#include <fstream>
#include <thread>

namespace par::cpu {

bool hasFeature(std::string_view name) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (name == "x86-64" || name == "x86-64-v1")
    return true;
  if (name == "x86-64-v2" || name == "sse4.2")
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  if (name == "x86-64-v3")
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (name == "x86-64-v4")
    return hasFeature("x86-64-v3") && hasFeature("avx512f") && hasFeature("avx512bw") && hasFeature("avx512dq") &&
           hasFeature("avx512vl") && hasFeature("avx512cd");
// __builtin_cpu_supports takes literals only.
#define FEATURE(NAME)                                                                                                  \
  if (name == NAME)                                                                                                    \
    return __builtin_cpu_supports(NAME);
  FEATURE("avx")
  FEATURE("avx2")
  FEATURE("fma")
  FEATURE("bmi2")
  FEATURE("avx512f")
  FEATURE("avx512bw")
  FEATURE("avx512cd")
  FEATURE("avx512dq")
  FEATURE("avx512vl")
  FEATURE("avx512vnni")
#undef FEATURE
#endif
  return false;
}

int maxThreads() { return threadsOfCore * static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

std::string isaLevel() {
  for (const char *level : {"x86-64-v4", "x86-64-v3", "x86-64-v2"})
    if (hasFeature(level))
      return level;
  return "x86-64";
}

std::string processorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      return line.substr(line.find(':') + 2);
  return "unknown";
}

} // namespace par::cpu
