// Rows of a hardware file's table `measured`: what was measured, and the time it took.
#pragma once

#include "par/format/Program.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace par::calibrate {

/// The work of a row: its list of the table, and the row's words and sizes up to the time.
struct RowKey {
  std::string list; ///< "matmuls", "kernels", ...
  std::vector<std::string> words;
  std::vector<int64_t> sizes;

  auto operator<=>(const RowKey &) const = default;
  /// "bf16, nt, 1, 64, 128, 256".
  std::string text() const;
};

/// The mean over the instructions of a key.
class Rows {
public:
  void add(const RowKey &key, double ns, double count = 1);
  /// Instead of what the key has.
  void put(const RowKey &key, double ns) { rows[key] = {ns, 1}; }
  /// As one line each, for another rank, and back.
  std::string encode() const;
  void addEncoded(const std::string &text);

  struct Value {
    double sum = 0, count = 0;
    int64_t ns() const;
  };
  const std::map<RowKey, Value> &all() const { return rows; }

private:
  std::map<RowKey, Value> rows;
};

/// A copy of so many bytes: between device and host, or within the device's memory, where bytes that are read and
/// bytes that are written count.
RowKey copyRow(bool crosses, uint64_t bytes);

/// The row of a kernel, call, copy or fill; none for other instructions. A fill only writes.
std::optional<RowKey> rowOf(const format::Program &program, const format::Instruction &instruction);

/// 2 batch m n k, of a row of `matmuls`.
int64_t flopsOfMatmul(const RowKey &key);

} // namespace par::calibrate
