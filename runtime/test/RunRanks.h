// Runs something on every rank of a toy bundle, as threads of the test.
#pragma once

#include "par/app/Devices.h"
#include "par/comm/job/Launch.h"
#include "par/messages/Failure.h"
#include "par/session/Session.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

namespace par::toy {

/// Returns the job's exit code; a Failure of a rank is a test failure.
inline int runRanks(const format::Bundle &bundle, const std::function<void(core::Session &)> &body) {
  comm::Launch launch;
  launch.bundle = "toy.par";
  launch.bundleRanks = static_cast<uint32_t>(bundle.manifest.ranks.size());
  launch.n = launch.bundleRanks;
  launch.transport = comm::Transport::inproc;
  return comm::run(launch, [&](comm::Control &control) {
    try {
      core::Session session(bundle, "toy.par", control, core::deviceNamed("cpu"));
      body(session);
      return 0;
    } catch (const core::Failure &failure) {
      ADD_FAILURE() << failure.what();
      control.fail(failure.exitCode(), failure.what());
    }
  });
}

/// Rows of f32 made up from their number: row r, column c holds sin(1 + r * columns + c).
class SineRows : public core::Dataset {
public:
  SineRows(uint64_t rows, uint64_t columns) : count(rows), columns(columns), values(rows * columns) {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = std::sin(1.0f + static_cast<float>(i));
  }
  uint64_t rows() const override { return count; }
  std::string describe() const override { return "sines"; }
  bool has(const std::string &) const override { return true; }
  std::string feeds() const override { return "sines feed all"; }
  const std::byte *row(const format::Input &, uint64_t row, std::vector<std::byte> &) const override {
    return reinterpret_cast<const std::byte *>(values.data() + row * columns);
  }
  const std::byte *whole(const format::Input &) const override {
    return reinterpret_cast<const std::byte *>(values.data());
  }
  float at(uint64_t row, uint64_t column) const { return values[row * columns + column]; }

private:
  uint64_t count, columns;
  std::vector<float> values;
};

} // namespace par::toy
