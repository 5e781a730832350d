#include "FreeMemory.h"

#include <fstream>
#include <string>

namespace par::core {

uint64_t freeMemory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  uint64_t kib;
  for (std::string line; file >> name >> kib; std::getline(file, line))
    if (name == "MemAvailable:")
      return kib << 10;
  return ~uint64_t(0);
}

} // namespace par::core
