// A hardware file that --calibrate wrote, read again so that rows can be added.
#pragma once

#include "Rows.h"

namespace par::calibrate {

struct WrittenFile {
  std::string head; ///< the lines before `measured`
  Rows rows;        ///< `launch` is one of them
  /// Values of the head's keys as they are written.
  std::map<std::string, std::string> keys;

  /// A key's number; `otherwise` if it has none.
  int64_t number(const std::string &key, int64_t otherwise) const;
  /// Ranks of the world that one host has, of so many.
  uint64_t ranksOfHost(uint64_t world) const;
  /// The cores that ranks of a host share; 0: each rank has its own. `host` is this machine's.
  uint64_t cores() const;
  /// Processes of a host that compute at once.
  uint64_t processes(uint64_t world) const;
  /// 1/1000 of the time of one, that work of so many processes at once takes.
  int64_t together(bool matmul, uint64_t processes) const;
  /// ns until a rank that has waited so long sees that the other has come.
  int64_t wakeup(int64_t waited) const;
};

/// Reads the text; of one that --calibrate did not write, or that was changed so that rows would get lost, a line's
/// number instead, from 1.
struct ReadFile {
  std::optional<WrittenFile> file;
  size_t wrongLine = 0;
};
ReadFile readWritten(const std::string &text);

} // namespace par::calibrate
