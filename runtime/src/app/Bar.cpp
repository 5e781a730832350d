#include "Bar.h"

#include "par/comm/shared/Output.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

namespace par::core {

namespace {

constexpr const char *eraseLine = "\r\x1b[K";
constexpr std::chrono::milliseconds pause{100};
constexpr int64_t patience = 50'000'000; ///< nanoseconds for a terminal that does not read

bool isCleverTerminal() {
  const char *kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) && kind && *kind && std::strcmp(kind, "dumb") != 0;
}

/// The terminal's width as it is now; it may have been resized.
size_t columnsNow() {
  winsize size{};
  bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

} // namespace

std::string clockTime(double seconds) {
  auto whole = static_cast<uint64_t>(std::max(0.0, std::ceil(seconds)));
  char text[32];
  if (whole < 60)
    snprintf(text, sizeof text, "%llu s", static_cast<unsigned long long>(whole));
  else if (whole < 3600)
    snprintf(text, sizeof text, "%llu:%02llu", static_cast<unsigned long long>(whole / 60),
             static_cast<unsigned long long>(whole % 60));
  else
    snprintf(text, sizeof text, "%llu:%02llu:%02llu", static_cast<unsigned long long>(whole / 3600),
             static_cast<unsigned long long>(whole / 60 % 60), static_cast<unsigned long long>(whole % 60));
  return text;
}

std::string barOf(uint64_t done, uint64_t whole, const std::string &text, size_t width) {
  constexpr size_t cells = 20;
  std::string line;
  if (width >= 3 * cells) {
    size_t full = whole ? static_cast<size_t>(cells * std::min(done, whole) / whole) : 0;
    line = "[" + std::string(full, '#') + std::string(cells - full, '.') + "] ";
  }
  return (line + text).substr(0, width);
}

Bar::Bar(bool wanted) : shown(wanted && isCleverTerminal()), began(Clock::now()), last(began - pause) {}

void Bar::draw(uint64_t step, uint64_t steps, const std::string &text) {
  Clock::time_point now = Clock::now();
  if (firstStep == 0) {
    firstStep = step;
    began = now;
  }
  if (!shown || (now - last < pause && step < steps))
    return;
  last = now;
  std::string line = "step " + std::to_string(step) + "/" + std::to_string(steps) + text;
  double took = std::chrono::duration<double>(now - began).count();
  if (step > firstStep && took > 0) {
    double rate = static_cast<double>(step - firstStep) / took;
    char number[32];
    snprintf(number, sizeof number, rate < 10 ? "  %.2f steps/s" : "  %.0f steps/s", rate);
    line += number;
    if (step < steps)
      line += "  " + clockTime(static_cast<double>(steps - step) / rate) + " left";
  }
  // The last column is left free: a cursor after it would be on the next line.
  comm::writeOutput(STDERR_FILENO, eraseLine + barOf(step, steps, line, columnsNow() - 1), patience);
  drawn = true;
}

void Bar::clear() {
  if (drawn)
    comm::writeOutput(STDERR_FILENO, eraseLine, patience);
  drawn = false;
}

} // namespace par::core
