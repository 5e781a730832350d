// The facts that one host's board tells the other hosts' boards of its ranks.
#pragma once

#include "comm/shared/SharedState.h"

#include <string>
#include <vector>

namespace par::comm {

/// One direction of a link between boards. It sends of each rank only what has changed since the last digest.
class BoardDigest {
public:
  explicit BoardDigest(std::vector<uint32_t> ranks) : ranks(std::move(ranks)), last(this->ranks.size()) {}

  /// The changes on `board`, and its newest save and results.
  std::string changes(SharedState &board);
  /// Writes a digest of the other side to `board`: only ranks of other hosts. Throws std::runtime_error on bytes that
  /// no host writes.
  static void apply(SharedState &board, std::string_view bytes);

private:
  std::vector<uint32_t> ranks;
  std::vector<std::string> last; ///< by place in `ranks`, as sent
};

} // namespace par::comm
