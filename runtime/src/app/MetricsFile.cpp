#include "MetricsFile.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace par::core {

using nlohmann::ordered_json;

namespace {

/// The size of a file; nothing for a pipe, a device, or what is not there.
std::optional<uint64_t> bytesOf(const std::string &path) {
  std::error_code error;
  bool file = std::filesystem::is_regular_file(path, error);
  return file ? std::optional(std::filesystem::file_size(path, error)) : std::nullopt;
}

std::string quoted(const std::string &field) {
  if (field.find_first_of(",\"\n\r") == std::string::npos)
    return field;
  std::string text = "\"";
  for (char c : field)
    text += c == '"' ? "\"\"" : std::string(1, c);
  return text + '"';
}

} // namespace

std::vector<std::string> metricsColumns(const format::Manifest &manifest) {
  std::vector<std::string> columns{"step"}, evals;
  auto isCount = [&](const std::string &name) {
    return std::any_of(manifest.outputs.begin(), manifest.outputs.end(),
                       [&](const format::Output &output) { return output.mean == name; });
  };
  for (const format::Output &output : manifest.outputs) {
    if (!output.metric || isCount(output.name) || output.name.starts_with("term("))
      continue;
    columns.push_back(output.name);
    if (output.name == "loss")
      columns.push_back("lr");
    if (output.name == "loss" || !output.mean.empty())
      evals.push_back("eval_" + output.name);
  }
  for (const char *name : {"ms", "tokens", "sent_bytes", "peak_bytes"})
    columns.push_back(name);
  columns.insert(columns.end(), evals.begin(), evals.end());
  columns.insert(columns.end(), {"samples", "left_out"});
  return columns;
}

MetricsFile::MetricsFile(std::string path, std::vector<std::string> columns)
    : path(std::move(path)), columns(std::move(columns)) {}

/// The first line of a table; "" of lines.
std::string MetricsFile::headOf() const {
  std::string head;
  for (const std::string &column : columns)
    head += (head.empty() ? "" : ",") + quoted(column);
  return head.empty() ? "" : head + "\n";
}

uint64_t MetricsFile::begin(bool append) {
  std::string head = headOf(), line;
  uint64_t before = append ? bytesOf(path).value_or(0) : 0;
  if (before > 0 && !head.empty()) {
    std::ifstream in(path, std::ios::binary);
    std::getline(in, line);
    if (line + "\n" != head)
      throw Failure::at(path, Message::cannotWrite, "it is there, and its columns are not this bundle's");
  }
  out = std::make_unique<StreamWriter>(path, append);
  if (before == 0)
    out->write(head);
  return bytesOf(path).value_or(0);
}

void MetricsFile::goOn(uint64_t before, uint64_t step) {
  rewrites = bytesOf(path).has_value();
  if (rewrites)
    cut(before, step);
  out = std::make_unique<StreamWriter>(path, /*append=*/true);
}

/// The file then is as it was when the step was over. A line that a process wrote as it ended may be half there.
void MetricsFile::cut(uint64_t before, uint64_t step) const {
  const char *form = columns.empty() ? "{\"step\":%llu" : "%llu,";
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(before));
  uint64_t keep = before;
  for (std::string line; std::getline(in, line) && !in.eof(); keep += line.size() + 1)
    if (unsigned long long of = 0; sscanf(line.c_str(), form, &of) != 1 || of > step)
      break;
  if (keep < bytesOf(path).value_or(0))
    FileWriter(path).resize(keep);
}

std::string MetricsFile::rowOf(const ordered_json &values) const {
  std::string row;
  for (size_t i = 0; i < columns.size(); ++i) {
    auto found = values.find(columns[i]);
    row += i ? "," : "";
    if (found != values.end())
      row += found->dump() == "null" ? "nan" : found->dump();
  }
  return row + "\n";
}

void MetricsFile::write(const ordered_json &values, bool isNew) {
  if (out && (rewrites || isNew))
    out->write(columns.empty() ? values.dump() + "\n" : rowOf(values));
}

} // namespace par::core
