// Muon's Newton-Schulz iteration (Jordan et al. 2024), as torch.optim.Muon has it.
#pragma once

#include <cmath>
#include <cstdint>

namespace par::muon {

inline constexpr int64_t steps = 5;
/// The factors of x, (x x^T) x and (x x^T)^2 x as f32 has them, like the constants of the ops that an update becomes.
inline constexpr double first = 3.4445F, second = -4.775F, third = 2.0315F;
/// The norm that a smaller one counts as.
inline constexpr double minNorm = 1e-7F;

/// Factor on the rate of a matrix, as f32 has it.
inline double scaleOf(int64_t rows, int64_t columns) {
  return rows > columns ? std::sqrt(static_cast<float>(rows) / static_cast<float>(columns)) : 1;
}

} // namespace par::muon
