// Reads the flags of data: files, and how their arrays are called.
#include "par/data/Data.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <filesystem>

namespace par::core {

static bool isThere(const std::string &path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

DataSpec readDataSpec(const std::string &spec) {
  auto cut = [&](size_t end) { return DataSpec{spec.substr(0, end), spec.substr(end)}; };
  if (isThere(spec))
    return cut(spec.size());
  size_t first = spec.size();
  for (size_t at = spec.find(':'); at != std::string::npos; at = spec.find(':', at + 1)) {
    if (!isArrayFile(spec.substr(0, at)))
      continue;
    if (isThere(spec.substr(0, at)))
      return cut(at);
    first = std::min(first, at);
  }
  // A file that is not there, or of another format.
  size_t colon = spec.rfind(':');
  if (first == spec.size() && colon != std::string::npos && spec.find('=', colon) != std::string::npos)
    return cut(colon);
  return cut(first);
}

DataSpec readEvalSpec(const std::string &spec, bool ofTokens) {
  return ofTokens ? DataSpec{readTokenSpec(spec).path, ""} : readDataSpec(spec);
}

InputSpec readInputSpec(const std::string &spec) {
  size_t equals = spec.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == spec.size())
    throw Failure::at("par-run", Message::flagBad, "--input", "INPUT=F or INPUT=F:ARRAY", spec).exitsWith(exitUsage);
  DataSpec file = readDataSpec(spec.substr(equals + 1));
  return {spec.substr(0, equals), file.path, file.renamings.empty() ? "" : file.renamings.substr(1)};
}

TokenSpec readTokenSpec(const std::string &spec) {
  size_t colon = spec.rfind(':');
  if (isThere(spec) || colon == std::string::npos)
    return {spec, ""};
  return {spec.substr(0, colon), spec.substr(colon + 1)};
}

} // namespace par::core
