// Runs par-run's whole flow on a toy bundle in a folder of the test's own, and keeps its output.
#pragma once

#include "../../../runtime/test/TemporaryFolder.h"
#include "../../../runtime/test/TrainingToy.h"
#include "par/app/Job.h"
#include "par/messages/Failure.h"

#include <fstream>
#include <gtest/gtest.h>

namespace par {

/// All bytes of a file; none of one that is not there.
inline std::string fileText(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Tool : public testing::Test {
protected:
  TemporaryFolder folder;
  std::string out, err;

  void SetUp() override { writeText("text", 2000); }

  /// Writes a bundle as `name`.par and returns its path.
  std::string write(const format::Bundle &bundle, const std::string &name = "toy") {
    std::string path = folder / (name + ".par");
    auto written = format::writeBundle(path, bundle);
    EXPECT_TRUE(written) << (written ? "" : written.message());
    return path;
  }

  std::string writeText(const std::string &name, size_t bytes, char last = 'a') {
    std::string path = folder / name, text(bytes, 'b');
    text.back() = last;
    std::ofstream(path) << text;
    return path;
  }

  template <typename T>
  void writeArray(core::SafetensorsWriter &writer, size_t index, const std::vector<T> &values) {
    writer.write(index, 0, std::as_bytes(std::span(values)));
  }

  /// Runs par-run with these arguments; `out` and `err` hold its output.
  int run(std::vector<std::string> arguments) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int code;
    try {
      code = core::runTool(core::parseOptions(arguments));
    } catch (const core::Failure &failure) {
      fprintf(stderr, "%s\n", failure.what());
      code = failure.exitCode();
    }
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return code;
  }

  void expectSays(const std::string &text) { EXPECT_NE(err.find(text), std::string::npos) << err; }
};

} // namespace par
