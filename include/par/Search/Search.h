// The plan with the shortest predicted step, of all that a user's plan leaves open.
#pragma once

#include "par/Compiler/Compiler.h"
#include "par/Search/Estimate.h"
#include "par/Simulator/Simulator.h"

namespace par {

struct SearchOptions {
  int64_t ranks = 1;
  bool findsFewest = false; ///< also finds the fewest ranks
  int64_t tolerance = 10;   ///< degrees and samples are not profiled where they can gain at most so many 1/1000
  size_t compiles = 3;      ///< candidates that are compiled and played at the end
  size_t smallest = 200;    ///< of at most so many candidates each is compiled, if the model is small too:
  size_t nodes = 24000;     ///< nodes of all that are compiled then
};

/// A candidate's figures.
struct SearchedPlan {
  Candidate candidate;
  Estimate estimate;
  std::optional<Estimate> played; ///< of its own bundle, played
  int64_t boundNs = 0;            ///< its step is not below
  const Estimate &known() const { return played ? *played : estimate; }
};

/// The fewest ranks that some candidate fits: of the asked-for number, its divisors and powers of two below, or, if it
/// does not fit, its multiples by powers of two and powers of two above.
struct FewestRanks {
  int64_t ranks = 0;
  SearchedPlan plan;
  int64_t mayDo = 0; ///< fewer ranks that may do, but were not compiled since the model is large; 0: none
};

/// The value of an open key, which came second, and by how much.
struct KeyReason {
  std::string key, value;
  std::string second;       ///< the best candidate with another value; empty: no other value fits
  std::string others;       ///< in which other keys that candidate differs: "dp 4 x tp 2, 8 microbatches"
  bool played = true;       ///< both were; else both steps are estimates from layers
  double slowerPercent = 0; ///< by which the second is slower
};

struct SearchResult {
  Space space;
  size_t candidates = 0;
  size_t profiles = 0;             ///< compilations of the model with few layers
  size_t compiled = 0;             ///< of whole candidates
  size_t left = 0;                 ///< that were not profiled: they could gain as little as the tolerance
  std::string layers;              ///< "h, 47 of 48 equal"; empty: the whole model was profiled
  std::string reason;              ///< why the first candidate that does not compile does not
  int64_t boundNs = 0;             ///< no candidate's step is below
  std::optional<uint64_t> limit;   ///< bytes of a rank
  std::vector<SearchedPlan> plans; ///< that fit: those that were played by their steps, then the others by estimates
  std::optional<SearchedPlan> leanest; ///< where none fits: the one that needs fewest bytes
  std::optional<FewestRanks> fewest;
  std::optional<Compiled> best;         ///< the first plan's, without code; its findings begin with those of planning
  std::optional<Simulation> simulation; ///< of it, each rank on a core of its own

  /// The settings that make the first plan of the user's.
  std::vector<std::string> settings() const;
};

/// Searches for the model under the user's plan. Nothing after an error, which says what to do.
std::optional<SearchResult> searchPlans(const std::shared_ptr<const Model> &model, const PlanText &text,
                                        const SearchOptions &options, DiagnosticSink sink);

} // namespace par
