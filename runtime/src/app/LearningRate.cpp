#include "par/app/LearningRate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace par::core {

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
  default:
    return schedule.peak;
  }
}

} // namespace par::core
