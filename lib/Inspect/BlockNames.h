#pragma once

#include "par/Solver/Order/OrderTable.h"

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace par {

/// The kind of a block's fragment, from the block's name by Schedule: "train.backward.last".
inline std::optional<SlotKind> slotKindOf(llvm::StringRef block) {
  llvm::StringRef name = block.split('.').second;
  for (auto [prefix, kind] :
       {std::pair("forward", SlotKind::Forward), {"backward", SlotKind::Backward}, {"weight", SlotKind::Weight}})
    if (name.starts_with(prefix))
      return kind;
  return std::nullopt;
}

} // namespace par
