// The ways of mirrors: one connection with each neighbour, used by the thread of the way that is under way.
#include "Mirroring.h"

#include "comm/carrier/HostCarrier.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <unistd.h>

namespace par::core {

namespace {

constexpr uint32_t tag = 1;
constexpr uint64_t maxMessage = 4 << 20;
/// Microseconds between two looks for what has come.
constexpr useconds_t pauseTime = 200, finishTime = 1000;

/// `bytes` in the messages in which they travel: sender and receiver find the same ones.
template <typename Byte>
std::vector<std::span<Byte>> messagesOf(const std::vector<MirrorRange> &ranges, std::span<Byte> bytes, bool dense) {
  std::vector<std::span<Byte>> messages;
  uint64_t place = 0;
  for (const MirrorRange &range : ranges) {
    for (uint64_t done = 0; done < range.bytes; done += maxMessage)
      messages.push_back(bytes.subspan((dense ? place : range.at) + done, std::min(maxMessage, range.bytes - done)));
    place += range.bytes;
  }
  return messages;
}

std::vector<bool> linkedWith(uint32_t world, std::initializer_list<uint32_t> ranks) {
  std::vector<bool> linked(world);
  for (uint32_t rank : ranks)
    linked[rank] = true;
  return linked;
}

double msSince(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
}

double threadMs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

} // namespace

Mirroring::Mirroring(comm::Control &control, const format::Bundle &bundle, std::string place)
    : control(control), bundle(bundle), place(std::move(place)), chosen(bundle, control.placing().hostOf),
      memories(bundle, control.placing().mirrors), to(chosen.neighbourOf(control.rank())),
      from(chosen.mirroredBy(control.rank())),
      carrier(control.placing().connectPeers(control, linkedWith(control.world(), {to, from}))) {}

void Mirroring::begin(uint64_t step, std::span<const std::byte> copy, const std::vector<bool> &has) {
  check();
  uint32_t rank = control.rank();
  auto sends = [&](uint32_t one) {
    return (has.empty() || !has[one]) && bytesOf(mirrorRanges(bundle, one, chosen.whole(one))) > 0;
  };
  std::vector<std::span<const std::byte>> sent;
  std::vector<std::span<std::byte>> room;
  if (sends(rank))
    sent = messagesOf(mirrorRanges(bundle, rank, chosen.whole(rank)), copy, /*dense=*/false);
  if (sends(from)) {
    std::vector<MirrorRange> ranges = mirrorRanges(bundle, from, chosen.whole(from));
    try {
      room = messagesOf(ranges, memories.begin(of(from, step), has.empty() ? last : step), /*dense=*/true);
    } catch (const std::runtime_error &error) {
      throw Failure::at(place, Message::cannotMirror, rank, grouped(CopyMemory::sizeFor(bytesOf(ranges), 1)), from,
                        error.what());
    }
  }
  last = step;
  if (sent.empty() && room.empty())
    return;
  costs.sent += !sent.empty();
  task.start([this, sent, room](const std::atomic<bool> &stop) { exchange(sent, room, stop); });
}

void Mirroring::exchange(const std::vector<std::span<const std::byte>> &sent,
                         const std::vector<std::span<std::byte>> &room, const std::atomic<bool> &stop) {
  auto began = std::chrono::steady_clock::now();
  double before = threadMs();
  std::deque<comm::HostCarrier::Ticket> open;
  for (std::span<std::byte> message : room)
    open.push_back(carrier->receive(from, tag, message));
  for (std::span<const std::byte> message : sent)
    open.push_back(carrier->send(to, tag, message));
  while (!open.empty() && !stop) {
    bool moved = carrier->poll();
    while (!open.empty() && *open.front())
      open.pop_front();
    if (!moved)
      usleep(pauseTime);
  }
  if (!open.empty())
    return;
  if (!room.empty())
    memories.end();
  costs.sendMs += msSince(began);
  costs.cpuMs += threadMs() - before;
}

void Mirroring::check() {
  if (!busy())
    task.wait();
}

void Mirroring::finish() {
  auto began = std::chrono::steady_clock::now();
  for (;;) {
    std::vector<std::string> all = control.allGather("mirrors", busy() ? "1" : "0");
    if (std::count(all.begin(), all.end(), "1") == 0)
      break;
    usleep(finishTime);
  }
  check();
  costs.waitMs += msSince(began);
}

} // namespace par::core
