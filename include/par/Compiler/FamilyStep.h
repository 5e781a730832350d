// Bundles of one family compute the same step: the same microbatches, dealt to other numbers of ranks.
#pragma once

#include "par/Compiler/Compiler.h"

#include <optional>
#include <string>

namespace par {

/// A setting of --also, "mesh.dp=3,zero.level=1", taken apart.
struct AlsoSettings {
  std::string text;
  std::vector<std::string> settings; ///< KEY=VALUE each
  std::string name;                  ///< of the member's folder: dp3-level1
};

/// Takes the text apart at commas outside of brackets and quotes. Nothing if a part is no KEY=VALUE.
std::optional<AlsoSettings> readAlso(llvm::StringRef text);

/// The settings of a member before its own: the main plan's batch and samples of a microbatch, whose number, as that of
/// the ranks, follows from the member's mesh.
std::vector<std::string> settingsOfStep(const Plan &main);

/// Says in what the member's plan computes another step than the main one; empty: in nothing.
std::string describeOtherStep(const PlannedModel &main, const PlannedModel &member);
/// Says in what the state of the member's bundle is another one; empty: in nothing.
std::string describeOtherState(const format::Manifest &main, const format::Manifest &member);
/// Says of which parameter the stage is another one, where bits depend on that: of the norm of gradients under
/// `collectives.sums: microbatches`. Empty: of none.
std::string describeOtherStages(const Compiled &main, const Compiled &member);

} // namespace par
