#include "NcclMatch.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace par::stub {

size_t sizeOf(int type) { return type <= 1 ? 1 : type <= 3 || type == 7 ? 4 : type == 6 || type == 9 ? 2 : 8; }

namespace {

template <typename T>
void combine(T *to, const T *from, size_t n, int op) {
  for (size_t i = 0; i < n; ++i)
    to[i] = op == 0   ? to[i] + from[i]
            : op == 1 ? to[i] * from[i]
            : op == 2 ? std::max(to[i], from[i])
                      : std::min(to[i], from[i]);
}

void combine(char *to, const char *from, size_t n, int type, int op) {
  if (type == 7)
    combine(reinterpret_cast<float *>(to), reinterpret_cast<const float *>(from), n, op);
  else if (type == 8)
    combine(reinterpret_cast<double *>(to), reinterpret_cast<const double *>(from), n, op);
  else if (type == 4)
    combine(reinterpret_cast<int64_t *>(to), reinterpret_cast<const int64_t *>(from), n, op);
  else if (type == 2)
    combine(reinterpret_cast<int32_t *>(to), reinterpret_cast<const int32_t *>(from), n, op);
}

/// The members' operands, in their order, added up.
std::string sum(const Match &match, size_t bytes) {
  std::string total;
  for (const auto &[member, side] : match.sides)
    if (total.empty())
      total.assign(side.in, bytes);
    else
      combine(total.data(), side.in, bytes / sizeOf(side.type), side.type, side.op);
  return total;
}

} // namespace

void perform(Match &match) {
  const Part &any = match.sides.begin()->second;
  size_t bytes = any.n * sizeOf(any.type), members = match.sides.size();
  if (any.kind == "send" || any.kind == "recv") {
    const Part *from = nullptr, *to = nullptr;
    for (auto &[member, side] : match.sides)
      (side.kind == "send" ? from : to) = &side;
    std::memcpy(to->out, from->in, bytes);
  } else if (any.kind == "ncclAllReduce" || any.kind == "ncclReduce") {
    std::string total = sum(match, bytes);
    for (auto &[member, side] : match.sides)
      if (any.kind == "ncclAllReduce" || member == side.peer)
        std::memcpy(side.out, total.data(), bytes);
  } else if (any.kind == "ncclReduceScatter") {
    std::string total = sum(match, bytes * members);
    for (auto &[member, side] : match.sides)
      std::memcpy(side.out, total.data() + static_cast<size_t>(member) * bytes, bytes);
  } else if (any.kind == "ncclAllGather") {
    std::string all;
    for (auto &[member, side] : match.sides)
      all.append(side.in, bytes);
    for (auto &[member, side] : match.sides)
      std::memcpy(side.out, all.data(), all.size());
  } else if (any.kind == "ncclBroadcast") {
    std::string value(match.sides.at(any.peer).in, bytes);
    for (auto &[member, side] : match.sides)
      std::memcpy(side.out, value.data(), bytes);
  }
  match.done = true;
}

} // namespace par::stub
