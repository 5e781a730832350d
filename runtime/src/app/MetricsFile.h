// Files of metrics: JSON objects a line (--metrics), or a table (--log csv:F).
#pragma once

#include "par/files/FileWriter.h"
#include "par/format/Manifest.h"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace par::core {

/// One object a step and one an evaluation, in their order. A job that resumes appends to its file. Lost ranks that are
/// started again cut it back to where they go on from.
class MetricsFile {
public:
  /// `columns`: of a table; empty: lines of JSON.
  MetricsFile(std::string path, std::vector<std::string> columns);

  /// The first start. Returns the bytes that are there before this job's. Throws Failure.
  uint64_t begin(bool append);
  /// Another start: keeps the first `before` bytes and what follows them up to `step`.
  void goOn(uint64_t before, uint64_t step);
  /// `isNew`: no earlier start of the ranks has written it.
  void write(const nlohmann::ordered_json &values, bool isNew);

private:
  std::string headOf() const;
  void cut(uint64_t before, uint64_t step) const;
  std::string rowOf(const nlohmann::ordered_json &values) const;

  std::string path;
  std::vector<std::string> columns;
  std::unique_ptr<StreamWriter> out;
  bool rewrites = true; ///< what follows a boundary can be cut from the file: it is no pipe
};

/// The columns of a table of a bundle's metrics.
std::vector<std::string> metricsColumns(const format::Manifest &manifest);

} // namespace par::core
