#include "par/cpu/Device.h"

#include "comm/shared/Memory.h"
#include "par/cpu/Machine.h"
#include "par/cpu/Tuning.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace par::cpu {

void HostDevice::connect(comm::Control &control) {
  deviceModel.name = processorName();
  const format::Arena &arena = options.program().arena;
  link = control.connect(comm::tableOf(*options.bundle), arena.deviceBytes() + options.guardBytes);
  comm::Mapping host = comm::mapPrivate(arena.host);
  hostArena = host.bytes;
  hostOwner = host.owner;
  setLibraryThreads(options.threads); // before matmuls are timed
  local.emplace(options,
                shareMatmulTuning(*options.bundle, options.folder, control, options.threads, options.tuning.times));
}

core::Arenas HostDevice::arenas() const { return {link->arena().data(), hostArena.data()}; }

void HostDevice::write(void *to, std::span<const std::byte> from) {
  mayBeWritten = true;
  std::memcpy(to, from.data(), from.size());
}

void HostDevice::read(std::span<std::byte> to, const void *from) { std::memcpy(to.data(), from, to.size()); }

void HostDevice::fill(void *to, uint64_t bytes, uint32_t word) {
  mayBeWritten = true;
  std::fill_n(static_cast<uint32_t *>(to), bytes / sizeof word, word);
}

bool HostDevice::mapFile(void *at, uint64_t bytes, int descriptor, uint64_t offset) {
  if (options.bundle->manifest.ranks.size() != 1)
    return false;
  mayBeWritten = true;
  return ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, descriptor, static_cast<off_t>(offset)) !=
         MAP_FAILED;
}

std::vector<core::Prepared> HostDevice::prepared() const {
  return mayBeWritten || !local ? std::vector<core::Prepared>() : local->keptFilters();
}

void HostDevice::take(const std::vector<core::Prepared> &given) {
  if (!local)
    return;
  local->forgetFilters();
  local->takeFilters(given);
  mayBeWritten = false;
}

void HostDevice::writeHypers(std::span<const core::HyperValue> hypers) {
  for (const core::HyperValue &hyper : hypers)
    std::memcpy(hyper.to, &hyper.bits, hyper.bytes);
}

uint64_t HostDevice::residentBytes() const {
  auto arena = link->arena();
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((arena.size() + page - 1) / page);
  if (resident.empty() || mincore(arena.data(), arena.size(), resident.data()) != 0)
    return 0;
  uint64_t pages = 0;
  for (unsigned char flags : resident)
    pages += flags & 1;
  return std::min(pages * page, arena.size() - options.guardBytes);
}

/// The queue that the walking thread itself executes.
static uint32_t mainQueueOf(const format::Program &program) {
  for (uint32_t i = 0; i < program.queues.size(); ++i)
    if (program.queues[i] == "compute")
      return i;
  return 0;
}

void Device::connect(comm::Control &control) {
  HostDevice::connect(control);
  const format::Program &program = options.program();
  local->keepFilters(program);
  executor.emplace(mainQueueOf(program), program.queues.size(), *link, control, *local);
}

void Device::run(const core::ExpandedEntry &entry, std::span<const core::HyperValue> hypers, core::EntryHost &host) {
  writeHypers(hypers);
  if (std::exchange(mayBeWritten, false))
    local->forgetFilters();
  executor->run(entry, host);
}

} // namespace par::cpu
