// Made-up values for measurements: ordinary numbers, and indices within their limits.
#pragma once

#include "par/device/Device.h"

#include <random>

namespace par::calibrate {

/// Fills with f32 numbers uniform in [-0.05, 0.05): neither zeros nor denormals, whose arithmetic takes another time.
/// As f64, bf16 or f16 the bytes are ordinary numbers too, but for a few of the latter.
void fillRandomly(std::span<std::byte> bytes, std::mt19937_64 &random);

/// Feeds each input with random values, and drops results.
class RandomHost : public core::EntryHost {
public:
  void feed(const format::Input &input, int64_t microbatch, std::span<std::byte> to) override;
  void fetch(const format::Output &, int64_t, format::DType, std::span<const std::byte>) override {}

private:
  std::mt19937_64 random{1};
};

} // namespace par::calibrate
