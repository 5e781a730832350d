#include "api/SharedParts.h"

#include <array>
#include <cstring>
#include <utility>

namespace par::api {

using Head = std::array<uint64_t, 2>;

void SharedParts::put(std::byte *to, std::span<const std::byte> from) {
  std::memcpy(to, from.data(), from.size());
  if (!apart)
    return;
  Head head{static_cast<uint64_t>(to - exchange.begin()), from.size()};
  parts.append(reinterpret_cast<const char *>(head.data()), sizeof head);
  parts.append(reinterpret_cast<const char *>(from.data()), from.size());
}

void SharedParts::share() {
  if (!apart)
    return;
  for (const std::string &given : control.allGather("parts", std::exchange(parts, "")))
    for (size_t at = 0; at < given.size();) {
      Head head;
      std::memcpy(head.data(), given.data() + at, sizeof head);
      std::memcpy(exchange.begin() + head[0], given.data() + at + sizeof head, head[1]);
      at += sizeof head + head[1];
    }
}

} // namespace par::api
