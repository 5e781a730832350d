// Holds par-verify and the device `sim` against each other.
#pragma once

#include "Mutations.h"
#include "Simulate.h"

namespace par::toy {

/// How mutants of one bundle were judged.
struct Judgement {
  struct Row {
    uint64_t total = 0;
    std::map<std::string, uint64_t> rejected; ///< by property: "V1" ... "V6"
    uint64_t accepted = 0;                    ///< by par-verify; sim found nothing, and the results are the original's
    /// Of what V4 and V5 rejected and sim played: it found a race or a deadlock; other bits than the
    /// original's; nothing (it need not: V5 is about values that may be equal by chance).
    uint64_t races = 0, differ = 0, nothing = 0;
  };
  std::map<std::string, Row> rows; ///< by mutation
  /// Accepted by par-verify, and yet sim found trouble or other results: one of them is wrong.
  std::vector<std::string> disagreements;
  /// Rejected as a race (V4), and sim found none: V4 is more careful than it must be.
  std::vector<std::string> careful;
  uint64_t total = 0, simulated = 0;
};

/// `count` mutations of the memory and the queues of random ranks. Mutants that par-verify accepts run on `sim`, and,
/// with `both`, also those that V4 and V5 reject. `folder` holds the bundle's kernels.
Judgement judgeMany(const format::Bundle &bundle, const std::string &folder, uint64_t count, uint64_t seed,
                    const sim::Options &options, bool both);
/// The table of a judgement.
std::string format(const Judgement &judgement);

} // namespace par::toy
