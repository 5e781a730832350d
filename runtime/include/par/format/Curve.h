// A line through measured points, in integers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace par::format {

struct Point {
  int64_t x = 0, y = 0;
};

/// The y at x of the straight lines between the points, which may be in any order; beyond the first and the last point
/// it is theirs. 0 without points.
inline int64_t alongLine(std::vector<Point> points, int64_t x) {
  std::sort(points.begin(), points.end(), [](const Point &a, const Point &b) { return a.x < b.x; });
  if (points.empty())
    return 0;
  auto above = std::find_if(points.begin(), points.end(), [&](const Point &point) { return point.x > x; });
  if (above == points.begin() || above == points.end())
    return above == points.end() ? points.back().y : above->y;
  const Point &below = above[-1];
  return below.y +
         static_cast<int64_t>(static_cast<__int128>(above->y - below.y) * (x - below.x) / (above->x - below.x));
}

} // namespace par::format
