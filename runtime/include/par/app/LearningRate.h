// The schedules of train.optimizer.lr.
#pragma once

#include "par/format/Manifest.h"

namespace par::core {

/// The rate of step `step`, which counts from 0: a linear warm-up that reaches the peak at its last step, then from
/// the peak to the floor by the decay.
double learningRate(const format::LrSchedule &schedule, uint64_t step);

} // namespace par::core
