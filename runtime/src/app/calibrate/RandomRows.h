// Made-up samples for measurements: ordinary numbers, and indices within their limits.
#pragma once

#include "par/data/Data.h"

namespace par::core {

/// `rows` samples whose values depend on nothing but the input and the row.
class RandomRows : public Dataset {
public:
  explicit RandomRows(uint64_t rows) : count(rows) {}
  uint64_t rows() const override { return count; }
  std::string describe() const override { return "random rows"; }
  bool has(const std::string &) const override { return true; }
  const std::byte *row(const format::Input &input, uint64_t row, std::vector<std::byte> &scratch) const override;
  const std::byte *whole(const format::Input &input) const override;
  std::string feeds() const override { return "every input"; }

private:
  uint64_t count;
  mutable std::map<std::string, std::vector<std::byte>> wholes; ///< by input
};

/// Fills with f32 numbers uniform in [-0.05, 0.05): neither zeros nor denormals, whose arithmetic takes another time.
/// As f64, bf16 or f16 the bytes are ordinary numbers too, but for a few of the latter.
void fillRandomly(std::span<std::byte> bytes, uint64_t seed);

} // namespace par::core
