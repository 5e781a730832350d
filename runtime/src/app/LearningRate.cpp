#include "par/app/LearningRate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace par::core {

static double rateInCycle(const format::LrSchedule &schedule, double step) {
  double start = 0;
  if (!schedule.phases.empty())
    step = std::min(step, schedule.phases.back().end); // then the rate stays
  for (const format::LrPhase &phase : schedule.phases) {
    if (step <= phase.end || &phase == &schedule.phases.back()) {
      double length = phase.end - start, passed = length > 0 ? std::min(1.0, (step - start) / length) : 1;
      if (schedule.isLinear)
        return (phase.to - phase.from) * passed + phase.from;
      return phase.to + (phase.from - phase.to) / 2 * (std::cos(std::numbers::pi * passed) + 1);
    }
    start = phase.end;
  }
  return schedule.peak;
}

/// How often the rate has been multiplied by gamma.
static double countFalls(const format::LrSchedule &schedule, uint64_t step) {
  if (schedule.stepSize)
    return static_cast<double>((step - schedule.warmup) / schedule.stepSize);
  return static_cast<double>(std::count_if(schedule.milestones.begin(), schedule.milestones.end(),
                                           [&](uint64_t milestone) { return milestone <= step; }));
}

double learningRate(const format::LrSchedule &schedule, uint64_t step) {
  double s = static_cast<double>(step), warmup = static_cast<double>(schedule.warmup);
  if (step < schedule.warmup)
    return schedule.peak * (s + 1) / warmup;
  double length = std::max(1.0, static_cast<double>(schedule.steps) - warmup);
  double passed = std::min(1.0, (s - warmup) / length);
  double range = schedule.peak - schedule.floor;
  switch (schedule.decay) {
  case format::LrSchedule::Linear:
    return schedule.floor + range * (1 - passed);
  case format::LrSchedule::Cosine:
    return schedule.floor + range * 0.5 * (1 + std::cos(std::numbers::pi * passed));
  case format::LrSchedule::Rsqrt:
    return std::max(schedule.floor, schedule.peak * std::sqrt(std::max(warmup, 1.0) / (s + 1)));
  case format::LrSchedule::Step:
    return std::max(schedule.floor, schedule.peak * std::pow(schedule.gamma, countFalls(schedule, step)));
  case format::LrSchedule::OneCycle:
    return rateInCycle(schedule, s);
  default:
    return schedule.peak;
  }
}

} // namespace par::core
