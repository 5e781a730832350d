#include "par/sim/Device.h"

#include "comm/engine/Engine.h"
#include "comm/shared/Memory.h"
#include "par/cpu/Tuning.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cstring>
#include <exception>

namespace par::sim {

std::string Device::libraries() const { return cpu::libraryVersion(); }

void Device::connect(comm::Control &newControl) {
  control = &newControl;
  const format::Arena &arena = options.program().arena;
  for (auto [span, bytes] : {std::pair(&dev, arena.deviceBytes() + options.guardBytes), std::pair(&host, arena.host)}) {
    comm::Mapping mapping = comm::mapPrivate(bytes);
    *span = mapping.bytes;
    memory.push_back(mapping.owner);
  }
  table = comm::tableOf(*options.bundle);
  shares.resize(table.size());
  cpu::setLibraryThreads(options.threads);
  local.emplace(options, cpu::shareMatmulTuning(*options.bundle, options.folder, *control, options.threads,
                                                options.tuning.times));
  (*options.world)[options.rank] = {&options, &*local, dev.first(arena.deviceBytes()), host, &times, nullptr,
                                    {},       nullptr};
  control->barrier("sim");
}

void Device::write(void *to, std::span<const std::byte> from) { std::memcpy(to, from.data(), from.size()); }

void Device::read(std::span<std::byte> to, const void *from) { std::memcpy(to.data(), from, to.size()); }

void Device::fill(void *to, uint64_t bytes, uint32_t word) {
  std::fill_n(static_cast<uint32_t *>(to), bytes / sizeof word, word);
}

/// All ranks meet; the first one's thread plays for all, and calls their hosts while they wait.
void Device::run(const core::ExpandedEntry &entry, std::span<const core::HyperValue> hypers, core::EntryHost &results) {
  Part &part = (*options.world)[options.rank];
  part.entry = &entry;
  part.hypers = hypers;
  part.results = &results;
  control->entry(entry.name);
  control->barrier("entry " + entry.name);
  std::exception_ptr trouble;
  if (options.rank == 0) {
    try {
      options.world->play();
    } catch (...) {
      trouble = std::current_exception(); // thrown when no rank waits for this one
    }
    options.world->failed = trouble != nullptr;
  }
  control->barrier("end of entry " + entry.name);
  if (trouble)
    std::rethrow_exception(trouble);
  if (options.world->failed)
    throw comm::Aborted("rank 0 says why");
  for (const comm::Communication &c : entry.communications) {
    const std::vector<uint32_t> &ranks = table[c.communicator].ranks;
    auto own = std::find(ranks.begin(), ranks.end(), options.rank) - ranks.begin();
    shares[c.communicator] += comm::sharesOf(c, ranks.size(), static_cast<uint64_t>(own));
  }
}

uint64_t Device::sentBytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < table.size(); ++i)
    bytes += shares[i] / table[i].ranks.size();
  return bytes;
}

std::string Device::report() const {
  const Played &played = options.world->played();
  return core::format("sim     {} runs in {} interleavings (seed {}): {} steps, {} meetings, no race, bits alike",
                      core::grouped(played.runs), core::grouped(played.interleavings), options.world->options().seed,
                      core::grouped(played.steps), core::grouped(played.meetings));
}

} // namespace par::sim
