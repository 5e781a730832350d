// The outcome of a search for a plan, as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace par {

struct SearchFacts {
  struct Reason {
    std::string key, value;
    std::string second; ///< the best other value; empty: none is possible or fits
    double slowerPercent = 0;
    std::string others;   ///< in which other keys the plan of that value differs: "dp 4 x tp 2, 8 microbatches"
    bool compiled = true; ///< both plans were, whole; else both are estimated from layers
  };
  struct Alternative {
    std::string plan; ///< "dp 8, zero 1, 8 microbatches of 2"
    int64_t stepNs = 0, peak = 0;
    double slowerPercent = 0;
    bool compiled = false;   ///< whole; else estimated from its layers
    bool recomputes = false; ///< values, to fit
  };
  struct Fewest {
    int64_t ranks = 0;
    std::string plan;
    int64_t stepNs = 0, peak = 0;
    int64_t mayDo = 0; ///< fewer ranks that estimates do not rule out; 0: none
  };

  int64_t ranks = 1;
  size_t candidates = 0, compiled = 0;
  std::string layers;  ///< that were profiled: "h, of which 47 of 48 are equal"; empty: the model was, whole
  int64_t boundNs = 0; ///< by the profiles no candidate's step is below
  double gapPercent = 0;
  std::vector<std::string> settings;     ///< KEY=VALUE, by which it has completed the user's plan
  std::vector<Reason> reasons;           ///< a key each that the search has filled
  std::vector<Alternative> alternatives; ///< the best first, which is the plan
  std::optional<Fewest> fewest;          ///< ranks that the model fits
};

/// The devices of --fit, and the rate of the best plan on them.
struct FitFacts {
  std::string machine; ///< as describeMachine says
  double samplesPerSecond = 0;
  std::optional<double> tokensPerSecond; ///< of a model of tokens
  std::string limitedBy;                 ///< "compute, 88 % of the step; memory is 70 % full"
};

} // namespace par
