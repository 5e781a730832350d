// The device `cpu`: arenas that peers read directly, oneDNN and compiled kernels, one thread that walks.
#pragma once

#include "par/cpu/Executor.h"

#include <optional>

namespace par::cpu {

/// Arenas and bindings of ranks whose memory is this process's: all but the walk.
class HostDevice : public core::Device {
public:
  explicit HostDevice(const core::DeviceOptions &options) : options(options) {}

  std::string libraries() const override { return libraryVersion(); }
  void connect(comm::Control &control) override;
  core::Arenas arenas() const override;
  void write(void *to, std::span<const std::byte> from) override;
  void read(std::span<std::byte> to, const void *from) override;
  void fill(void *to, uint64_t bytes, uint32_t word) override;
  /// The caller may write there.
  std::byte *hostAddress(void *at) const override {
    mayBeWritten = true;
    return static_cast<std::byte *>(at);
  }
  bool mapFile(void *at, uint64_t bytes, int descriptor, uint64_t offset) override;
  std::vector<core::Prepared> prepared() const override;
  void take(const std::vector<core::Prepared> &given) override;
  uint64_t scratchBytes() const override { return local ? local->keptBytes() : 0; }
  uint64_t sentBytes() const override { return link->sentBytes(); }
  uint64_t residentBytes() const override;

protected:
  void writeHypers(std::span<const core::HyperValue> hypers);

  core::DeviceOptions options;
  std::unique_ptr<comm::Endpoint> link;
  std::span<std::byte> hostArena;
  std::shared_ptr<void> hostOwner;
  std::optional<LocalSteps> local;
  /// Whether the host may have written state since the last run.
  mutable bool mayBeWritten = true;
};

class Device final : public HostDevice {
public:
  using HostDevice::HostDevice;

  void connect(comm::Control &control) override;
  void run(const core::ExpandedEntry &entry, std::span<const core::HyperValue> hypers, core::EntryHost &host) override;
  std::optional<uint64_t> stateWrites() const override { return executor->stateWrites(); }
  void stampThreadTime(bool only) override { executor->stampThreadTime(only); }
  const std::vector<core::Stamp> &stamps() const override { return executor->stamps(); }

private:
  std::optional<Executor> executor;
};

} // namespace par::cpu
