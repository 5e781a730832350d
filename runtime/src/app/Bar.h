// The line of a terminal that says how far a run is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace par::core {

/// The last line on standard error, drawn again and again, at most ten times a second. It has the terminal's width at
/// that time, and no colour. There is none where standard error is no terminal, or a dumb one: lines are printed then.
class Bar {
public:
  explicit Bar(bool wanted);
  ~Bar() { clear(); }
  Bar(const Bar &) = delete;
  Bar &operator=(const Bar &) = delete;

  bool isShown() const { return shown; }
  /// Step `step` of `steps` is done; `text` is what it says beside the rate and the time left.
  void draw(uint64_t step, uint64_t steps, const std::string &text);
  /// Before something else is printed.
  void clear();

private:
  using Clock = std::chrono::steady_clock;
  bool shown, drawn = false;
  uint64_t firstStep = 0; ///< from which the rate counts: the first step takes longer
  Clock::time_point began, last;
};

/// "12 s", "3:07", "2:05:09".
std::string clockTime(double seconds);
/// A bar of the share of `whole` that is done, before texts, cut to `width` columns.
std::string barOf(uint64_t done, uint64_t whole, const std::string &text, size_t width);

} // namespace par::core
