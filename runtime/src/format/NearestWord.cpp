#include "par/format/NearestWord.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace par::format {

/// Levenshtein's distance, by one row of his table at a time.
static size_t distanceOf(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string didYouMean(std::string_view text, std::span<const std::string_view> words) {
  std::string_view nearest;
  size_t best = std::max<size_t>(2, text.size() / 3) + 1;
  for (std::string_view word : words)
    if (size_t distance = distanceOf(text, word); distance < best) {
      best = distance;
      nearest = word;
    }
  return nearest.empty() ? "" : "; did you mean \"" + std::string(nearest) + "\"?";
}

} // namespace par::format
