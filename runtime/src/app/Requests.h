// The requests of par-run --generate, a line of JSON each.
#pragma once

#include "Sampling.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace par::core {

/// Prompts to be continued.
struct Request {
  std::vector<std::vector<int64_t>> prompts;
  uint64_t newTokens = 16;    ///< of each prompt at most
  std::vector<int64_t> stops; ///< a sequence ends with the first of these, which is given out
  Sampling sampling;
};

/// Whether lists and objects lie in more than 70 others: writing such a value takes stack for each.
bool isDeepJson(std::string_view text);

/// {"prompts": [[1, 2]], "max_new_tokens": 16, "stop": [0], "temperature": 0.8, "top_k": 50, "top_p": 0.95, "seed": 1}.
/// Throws Failure at `place` where a line is no request, or not one for a cache of `slots` and these tokens.
Request readRequest(const std::string &line, const std::string &place, uint64_t slots, int64_t vocabulary);
Request requestOf(const nlohmann::json &values, const std::string &place, uint64_t slots, int64_t vocabulary);

} // namespace par::core
