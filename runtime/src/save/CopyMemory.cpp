// Memory with two copies of a state.
#include "CopyMemory.h"

#include "FreeMemory.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>

namespace par::core {

namespace {

constexpr uint64_t page = 4096;
constexpr size_t identityBytes = 160;

uint64_t wholePages(uint64_t bytes) { return (bytes + page - 1) / page * page; }

comm::Mapping mapDescriptor(int descriptor, uint64_t size) {
  return comm::SharedFile(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)).map(size);
}

} // namespace

std::string Boundary::encode() const {
  char text[192];
  snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %a %" PRIu64 " %d;", step, rows, skipped, lastLoss,
           resident, saidIgnored ? 1 : 0);
  return text;
}

Boundary Boundary::decode(std::string &text) {
  Boundary boundary;
  char *at = text.data();
  for (uint64_t *value : {&boundary.step, &boundary.rows, &boundary.skipped})
    *value = strtoull(at, &at, 10);
  boundary.lastLoss = strtod(at, &at);
  boundary.resident = strtoull(at, &at, 10);
  boundary.saidIgnored = strtoull(at, &at, 10) != 0;
  text.erase(0, static_cast<size_t>(at - text.data()) + 1);
  return boundary;
}

/// A copy is whole while both numbers are the same and not 0: one is written before its bytes, the other one after
/// them. A process ends between two of its instructions, so that memory then is as it has written it.
struct CopyMemory::Copy {
  std::atomic<uint64_t> begun, whole;
  Boundary boundary;

  bool isWhole() const { return begun != 0 && begun == whole; }
};

struct CopyMemory::Header {
  char identity[identityBytes];
  bool begun;
  Copy copies[CopyMemory::copies + 1];
  alignas(16) std::byte notes[notesBytes];
};

CopyMemory::CopyMemory(int descriptor, uint64_t bytes, const std::string &identity, bool goesOn, size_t count)
    : bytes(bytes), descriptor(descriptor) {
  static_assert(sizeof(Header) <= page);
  uint64_t taken = sizeFor(bytes, count), size = count == copies ? sizeFor(bytes, spare + 1) : taken;
  struct stat file{};
  bool sized = fstat(descriptor, &file) == 0 && static_cast<uint64_t>(file.st_size) == size;
  bool keepsIt = goesOn && sized;
  // The memory is taken now: a page that is lacking later would end the process.
  if (!keepsIt && (ftruncate(descriptor, 0) != 0 || ftruncate(descriptor, static_cast<off_t>(size)) != 0 ||
                   fallocate(descriptor, 0, 0, static_cast<off_t>(taken)) != 0))
    throw std::runtime_error(std::strerror(errno));
  memory = mapDescriptor(descriptor, size);
  if (keepsIt && identity.compare(0, identityBytes - 1, header().identity) == 0)
    return;
  std::memset(memory.bytes.data(), 0, page);
  identity.copy(header().identity, identityBytes - 1);
  header().begun = !goesOn;
}

CopyMemory::CopyMemory(int descriptor, uint64_t bytes, size_t count)
    : bytes(bytes), memory(mapDescriptor(descriptor, sizeFor(bytes, count))) {}

uint64_t CopyMemory::sizeFor(uint64_t bytes, size_t count) { return page + count * wholePages(bytes); }

std::string CopyMemory::identityIn(int descriptor) {
  struct stat file{};
  if (fstat(descriptor, &file) != 0 || static_cast<uint64_t>(file.st_size) < page)
    return "";
  comm::Mapping first = mapDescriptor(descriptor, page);
  const char *text = reinterpret_cast<const Header *>(first.bytes.data())->identity;
  return std::string(text, strnlen(text, identityBytes));
}

CopyMemory::Header &CopyMemory::header() const { return *reinterpret_cast<Header *>(memory.bytes.data()); }

bool CopyMemory::begun() const { return header().begun; }

void CopyMemory::begin() { header().begun = true; }

std::byte *CopyMemory::notes() const { return header().notes; }

std::span<std::byte> CopyMemory::bytesAt(size_t index) const {
  return memory.bytes.subspan(page + index * wholePages(bytes), bytes);
}

std::vector<Boundary> CopyMemory::boundaries() const {
  std::vector<Boundary> found;
  for (size_t index = 0; index < copies; ++index)
    if (const Copy &copy = header().copies[index]; copy.isWhole())
      found.push_back(copy.boundary);
  std::sort(found.begin(), found.end(), [](const Boundary &a, const Boundary &b) { return a.step < b.step; });
  return found;
}

std::optional<Boundary> CopyMemory::spareBoundary() const {
  const Copy &copy = header().copies[spare];
  return copy.isWhole() ? std::optional(copy.boundary) : std::nullopt;
}

std::span<std::byte> CopyMemory::beginSpare() {
  dropSpare();
  // The ranks of a host take theirs at once, and short memory ends processes: it is no error of fallocate.
  constexpr uint64_t share = 16;
  if (freeMemory() / share < bytes)
    return {};
  auto begin = static_cast<off_t>(sizeFor(bytes, spare)), end = static_cast<off_t>(sizeFor(bytes, spare + 1));
  if (fallocate(descriptor, 0, begin, end - begin) != 0)
    return {};
  beginCopy(spare);
  return bytesAt(spare);
}

void CopyMemory::dropSpare() { header().copies[spare].whole = 0; }

size_t CopyMemory::find(uint64_t step) const {
  size_t index = 0;
  for (const Copy *all = header().copies; index <= spare; ++index)
    if (all[index].isWhole() && all[index].boundary.step == step)
      break;
  return index;
}

void CopyMemory::beginCopy(size_t index) {
  Copy *all = header().copies;
  all[index].begun = std::max({all[0].begun.load(), all[1].begun.load(), all[spare].begun.load()}) + 1;
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void CopyMemory::endCopy(size_t index, const Boundary &boundary) {
  Copy &copy = header().copies[index];
  copy.boundary = boundary;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  copy.whole = copy.begun.load();
}

} // namespace par::core
