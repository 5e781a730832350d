// Numbers of layouts, of which a manifest has few: a parameter, its states and its like in other layers have equal
// ones.
#pragma once

#include "par/format/Manifest.h"

#include <unordered_map>

namespace par::format {

class LayoutNumbers {
public:
  /// Equal layouts have one number. They are not moved meanwhile.
  uint32_t of(const Layout &layout);

private:
  std::unordered_map<const Layout *, uint32_t> known;
  std::unordered_multimap<uint64_t, const Layout *> firsts; ///< of each number, by hash
};

} // namespace par::format
