#include "par/calibrate/Refinement.h"

#include "HardwareText.h"
#include "TraceRows.h"
#include "par/format/PlainFile.h"
#include "par/messages/Failure.h"

#include <filesystem>

namespace par::calibrate {

using core::Failure;
using core::Message;

/// After the comments that begin the file, and instead of the same remark about this bundle.
static void addRemark(std::string &head, const std::string &bundle, size_t steps) {
  std::string begin = core::format("# Refined by par-run --trace of {}: ", bundle);
  if (size_t old = head.find(begin); old != std::string::npos)
    head.erase(old, head.find('\n', old) + 1 - old);
  size_t at = 0;
  while (at < head.size() && head[at] == '#')
    at = head.find('\n', at) + 1;
  head.insert(at, core::format("{}means of {} steps.\n", begin, steps));
}

Refined refine(const format::Bundle &bundle, const std::string &bundleName, const std::string &hardware,
               const std::string &trace) {
  auto text = format::readPlainFile(hardware);
  if (!text)
    throw Failure(hardware, text.message());
  auto [file, wrongLine] = readWritten(*text);
  if (!file)
    throw Failure::at(hardware, Message::calibrationForeign, wrongLine);
  uint64_t ranks = file->ranksOfHost(bundle.manifest.ranks.size()), cores = file->cores();
  if (cores > 0 && ranks > cores)
    throw Failure::at(trace, Message::traceShares, ranks, cores);
  std::vector<TracedStep> steps = middleHalf(readTrace(bundle, trace));
  Rows measured = rowsOfSteps(bundle, steps, *file);
  for (const auto &[key, value] : measured.all())
    file->rows.put(key, static_cast<double>(value.ns()));
  addRemark(file->head, std::filesystem::path(bundleName).filename().string(), steps.size());
  return {file->head + tableText(file->rows), measured.all().size(), steps.size()};
}

} // namespace par::calibrate
