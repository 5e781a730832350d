// Writes each key with the comment that says where its figure is from. Rates are the largest of the rows: a link's, of
// communication with the volume of rings; latencies the smallest.
#include "HardwareText.h"

#include <algorithm>
#include <cmath>

namespace par::calibrate {
namespace {

using Row = std::pair<const RowKey, Rows::Value>;

std::vector<const Row *> rowsOf(const Rows &rows, const std::string &list) {
  std::vector<const Row *> found;
  for (const Row &row : rows.all())
    if (row.first.list == list)
      found.push_back(&row);
  return found;
}

/// Amounts of work a microsecond.
int64_t rate(double amount, int64_t ns) {
  return std::max<int64_t>(1, std::llround(amount * 1000 / static_cast<double>(ns)));
}

/// The lists of `measured`, and what a row of each holds.
constexpr std::pair<const char *, const char *> lists[] = {
    {"matmuls", "format, transposes, batch, m, n, k, ns"},
    {"attentions", "format, direction, batch, heads, groups, queries, keys, dim, causal, ns"},
    {"convolutions", "format, direction, images, groups, channels, outputs, window's elements, positions, ns"},
    {"kernels", "bytes, flops, ns"},
    {"collectives", "kind, bytes, members, hosts, ns"},
    {"copies", "memory, bytes (read and written in device), ns"},
    {"sends", "bytes, hosts, ns"},
    {"feeds", "feed or fetch, bytes, ns"},
    {"wakeups", "ns waited, ns until the other's arrival is seen"},
    {"spread", "ns of compute, ns by which the last rank is late"},
    {"together", "kind, processes, 1/1000 of the time of one"},
    {"launch", "ns"}};

class Text {
public:
  explicit Text(const Measured &measured) : measured(measured) {}

  std::string write() {
    for (const std::string &line : measured.remark)
      out += "# " + line + "\n";
    out += "name: " + measured.name + "\n";
    out += std::string("source: ") + calibrationSource + "\n";
    if (!measured.isa.empty())
      line("isa", measured.isa, "of generated code, where the plan does not say");
    peaks();
    memory();
    links();
    key("launch", std::max<int64_t>(1, std::llround(measured.launchNs)), "ns of an instruction without work");
    line("overlap", measured.isGpu ? "true" : "false", "communication runs beside compute");
    line("cores", measured.isGpu ? "0" : "host",
         "that the ranks of a host share; 0: each rank has a device of its own");
    line("ranks", std::to_string(measured.ranksOfHost), "of a host; 0: all are on one");
    table();
    return std::move(out);
  }

private:
  void line(const std::string &name, const std::string &value, const std::string &comment) {
    std::string text = name + ": " + value;
    text.resize(std::max<size_t>(text.size() + 1, 24), ' ');
    out += text + "# " + comment + "\n";
  }
  void key(const std::string &name, int64_t value, const std::string &comment) {
    line(name, std::to_string(value), comment);
  }

  int64_t peakOf(const std::string &type) const {
    int64_t most = 0;
    for (const Row *row : rowsOf(measured.rows, "matmuls"))
      if (row->first.words.front() == type)
        most = std::max(most, rate(static_cast<double>(flopsOfMatmul(row->first)), row->second.ns()));
    return most;
  }

  /// f32 is measured always.
  void peaks() {
    out += "peak:                   # FLOP per microsecond: the fastest matmul\n";
    int64_t f32 = peakOf("f32"), f64 = peakOf("f64");
    key("  f32", std::max<int64_t>(1, f32), "measured");
    key("  f64", f64 ? f64 : std::max<int64_t>(1, f32 / 2), f64 ? "measured" : "not measured: half of f32");
    for (const char *type : {"bf16", "f16"})
      if (int64_t peak = peakOf(type))
        key("  " + std::string(type), peak, "measured");
  }

  /// The largest rate of copies between spaces (`host`) or within a device's memory.
  int64_t copyRate(const std::string &kind) const {
    int64_t most = 0;
    for (const Row *row : rowsOf(measured.rows, "copies"))
      if (row->first.words.front() == kind && row->first.sizes.front() >= beyondCaches())
        most = std::max(most, rate(static_cast<double>(row->first.sizes.front()), row->second.ns()));
    return most;
  }

  void memory() {
    bytesPerMicrosecond = copyRate("device");
    key("memory", bytesPerMicrosecond, "bytes per microsecond, read and written: the fastest large copy");
    if (int64_t host = copyRate("host"))
      key("host", host, "bytes per microsecond between device and host");
  }

  /// Bytes that one member of a collective moves; the volume of rings.
  static double volumeOf(const RowKey &key) {
    double bytes = static_cast<double>(key.sizes[0]), members = static_cast<double>(key.sizes[1]);
    const std::string &kind = key.words.front();
    if (kind == "all_reduce")
      return 2 * bytes * (members - 1) / members;
    return kind == "broadcast" || kind == "reduce" ? bytes : bytes * (members - 1);
  }

  /// Within a host, or between hosts where no two ranks share one.
  void links() {
    int64_t fastest = 0, shortest = 0;
    auto take = [&](double volume, double messages, int64_t ns) {
      fastest = std::max(fastest, rate(volume, ns));
      int64_t one = std::max<int64_t>(1, std::llround(static_cast<double>(ns) / messages));
      shortest = shortest ? std::min(shortest, one) : one;
    };
    for (const Row *row : rowsOf(measured.rows, "sends"))
      take(static_cast<double>(row->first.sizes[0]), 1, row->second.ns());
    for (const Row *row : rowsOf(measured.rows, "collectives"))
      if (row->first.sizes[1] > 1)
        take(volumeOf(row->first),
             std::ceil(std::log2(static_cast<double>(row->first.sizes[1]))) *
                 (row->first.words.front() == "all_reduce" ? 2 : 1),
             row->second.ns());
    if (fastest == 0) {
      key("link", std::max<int64_t>(1, bytesPerMicrosecond / 2), "not measured, no rank sends: a copy's rate");
      key("latency", 10 * std::max<int64_t>(1, std::llround(measured.launchNs)), "not measured: ten launches");
      return;
    }
    key("link", fastest, "bytes per microsecond between two ranks: the fastest communication");
    key("latency", shortest, "ns of one message: the shortest communication");
  }

  void table() {
    Rows rows = measured.rows;
    rows.put({"launch", {}, {}}, measured.launchNs);
    out += tableText(rows);
  }

  /// Bytes of a copy that a core's or a GPU's own caches do not hold.
  int64_t beyondCaches() const { return measured.isGpu ? 128 << 20 : 8 << 20; }

  const Measured &measured;
  std::string out;
  int64_t bytesPerMicrosecond = 1;
};

} // namespace

std::string tableText(const Rows &rows) {
  std::string text = "measured:\n";
  for (auto [list, columns] : lists) {
    std::vector<const Row *> ofList = rowsOf(rows, list);
    if (ofList.empty())
      continue;
    text += "  " + std::string(list) + ": # " + columns + "\n";
    for (const Row *row : ofList) {
      std::string key = row->first.text();
      text += "    - [" + key + (key.empty() ? "" : ", ") + std::to_string(row->second.ns()) + "]\n";
    }
  }
  return text;
}

bool isList(const std::string &name) {
  return std::any_of(std::begin(lists), std::end(lists), [&](const auto &list) { return name == list.first; });
}

std::string hardwareText(const Measured &measured) { return Text(measured).write(); }

} // namespace par::calibrate
