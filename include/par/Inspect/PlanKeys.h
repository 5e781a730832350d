// The completed plan, key by key.
#pragma once

#include "par/Phases/Annotate/Passes.h"

namespace par {

/// A key with its value as a plan has them, and where it was said.
struct KeyFact {
  std::string key, value; ///< "zero.level", "1"
  std::string origin;     ///< "plan.yaml:4", "--set"; "default" or "auto": not said
  std::string reason{};   ///< of a search that has chosen it, as the plan's file keeps it: "--auto: second dp 8, ..."
  bool isSaid() const { return origin != "default" && origin != "auto"; }
};

/// `use`, and then all keys in the order of --print-plan but for the rules of `shard` that recipes bring.
std::vector<KeyFact> listKeys(const ModelPlan &model);

} // namespace par
