// The memory in which communications meet.
#include "Exchange.h"

using namespace par::comm;

namespace {

constexpr size_t pageBytes = 4096;

size_t pages(size_t bytes) { return (bytes + pageBytes - 1) / pageBytes * pageBytes; }

/// Byte offsets inside one communicator's part.
struct Offsets {
  size_t members, payload, channels, end;

  explicit Offsets(size_t n) {
    members = 64;
    payload = pages(members + n * sizeof(MemberArea));
    channels = payload + 2 * n * smallPayload;
    end = pages(channels + n * n * sizeof(Channel));
  }
};

} // namespace

size_t par::comm::exchangeBytes(std::span<const Members> table) {
  size_t bytes = 0;
  for (const Members &members : table)
    bytes += members.used ? Offsets(members.ranks.size()).end : 0;
  return bytes;
}

std::vector<CommunicatorArea> par::comm::exchangeAreas(std::span<const Members> table, std::byte *memory) {
  std::vector<CommunicatorArea> areas;
  for (const Members &members : table) {
    if (!members.used) {
      areas.emplace_back();
      continue;
    }
    Offsets at(members.ranks.size());
    areas.push_back({reinterpret_cast<std::atomic<uint64_t> *>(memory),
                     reinterpret_cast<MemberArea *>(memory + at.members), memory + at.payload,
                     reinterpret_cast<Channel *>(memory + at.channels), uint32_t(members.ranks.size())});
    memory += at.end;
  }
  return areas;
}
