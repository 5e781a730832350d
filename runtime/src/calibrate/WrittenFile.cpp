// Reads lines as HardwareText writes them: keys, then lists of rows. Any other line is refused, so that writing
// the file again loses nothing.
#include "WrittenFile.h"

#include "HardwareText.h"
#include "par/format/Curve.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <thread>

namespace par::calibrate {

namespace {

std::optional<int64_t> numberOf(const std::string &text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

/// "key: value   # comment" into both; false of another line.
bool readKey(const std::string &line, std::map<std::string, std::string> &keys) {
  size_t colon = line.find(": ");
  if (colon == std::string::npos)
    return false;
  size_t first = line.find_first_not_of(' '), begin = line.find_first_not_of(' ', colon + 1);
  size_t end = std::min(line.find(" #", begin == std::string::npos ? colon : begin - 1), line.size());
  std::string value = begin >= end ? "" : line.substr(begin, end - begin);
  value.resize(value.find_last_not_of(' ') + 1);
  keys[line.substr(first, colon - first)] = value;
  return true;
}

/// "    - [bf16, nn, 1, 2, 3, 4, 567]" into the rows of a list; false of another line.
bool readRow(const std::string &line, const std::string &list, Rows &rows) {
  constexpr std::string_view begin = "    - [";
  if (list.empty() || !line.starts_with(begin) || !line.ends_with("]"))
    return false;
  RowKey key{list, {}, {}};
  std::istringstream words(line.substr(begin.size(), line.size() - begin.size() - 1));
  for (std::string word; std::getline(words >> std::ws, word, ',');) {
    if (std::optional<int64_t> number = numberOf(word))
      key.sizes.push_back(*number);
    else if (key.sizes.empty())
      key.words.push_back(word);
    else
      return false;
  }
  if (key.sizes.empty() || key.sizes.back() == 0)
    return false;
  auto ns = static_cast<double>(key.sizes.back());
  key.sizes.pop_back();
  rows.put(key, ns);
  return true;
}

/// "  kernels: # bytes, flops, ns"; "" of another line.
std::string listOf(const std::string &line) {
  size_t colon = line.find(':');
  if (colon == std::string::npos || !line.starts_with("  ") || line.starts_with("   "))
    return "";
  std::string name = line.substr(2, colon - 2);
  return isList(name) ? name : "";
}

} // namespace

ReadFile readWritten(const std::string &text) {
  ReadFile read;
  WrittenFile file;
  std::istringstream lines(text);
  std::string line, list;
  size_t number = 0;
  bool inTable = false;
  while (std::getline(lines, line)) {
    ++number;
    bool known = true;
    if (inTable) {
      std::string next = listOf(line);
      known = !next.empty() || readRow(line, list, file.rows);
      list = next.empty() ? list : next;
    } else if (line == "measured:") {
      inTable = true;
    } else {
      known = line.starts_with("#") || readKey(line, file.keys);
      file.head += line + "\n";
    }
    if (!known) {
      read.wrongLine = number;
      return read;
    }
  }
  if (inTable && file.keys["source"] == calibrationSource)
    read.file = std::move(file);
  else
    read.wrongLine = 1;
  return read;
}

int64_t WrittenFile::number(const std::string &key, int64_t otherwise) const {
  auto found = keys.find(key);
  return found == keys.end() ? otherwise : numberOf(found->second).value_or(otherwise);
}

uint64_t WrittenFile::ranksOfHost(uint64_t world) const {
  auto ranks = static_cast<uint64_t>(number("ranks", 0));
  return ranks == 0 ? world : std::min(ranks, world);
}

uint64_t WrittenFile::cores() const {
  auto found = keys.find("cores");
  if (found != keys.end() && found->second == "host")
    return std::thread::hardware_concurrency();
  return static_cast<uint64_t>(number("cores", 0));
}

uint64_t WrittenFile::processes(uint64_t world) const {
  uint64_t ranks = ranksOfHost(world), shared = cores();
  return shared == 0 ? ranks : std::min(ranks, shared);
}

int64_t WrittenFile::together(bool matmul, uint64_t processes) const {
  std::vector<format::Point> points{{1, 1000}};
  for (const auto &[key, value] : rows.all())
    if (key.list == "together" && key.words.front() == (matmul ? "matmul" : "kernel") && key.sizes.front() > 1)
      points.push_back({key.sizes.front(), value.ns()});
  return format::alongLine(std::move(points), static_cast<int64_t>(processes));
}

int64_t WrittenFile::wakeup(int64_t waited) const {
  std::vector<format::Point> points;
  for (const auto &[key, value] : rows.all())
    if (key.list == "wakeups")
      points.push_back({key.sizes.front(), value.ns()});
  if (points.empty())
    return 0;
  points.push_back({0, 0});
  return format::alongLine(std::move(points), std::max<int64_t>(waited, 0));
}

} // namespace par::calibrate
