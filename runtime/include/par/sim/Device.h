// The device `sim` of one rank: its arenas and kernels; the world plays them.
#pragma once

#include "par/sim/World.h"

namespace par::sim {

/// Its arenas are memory of this process, but the session accesses it only through write() and read(), as on a device
/// whose memory the host cannot reach.
class Device final : public core::Device {
public:
  explicit Device(const core::DeviceOptions &options) : options(options) {}

  std::string libraries() const override;
  void connect(comm::Control &control) override;
  core::Arenas arenas() const override { return {dev.data(), host.data()}; }
  void write(void *to, std::span<const std::byte> from) override;
  void read(std::span<std::byte> to, const void *from) override;
  void fill(void *to, uint64_t bytes, uint32_t word) override;
  void run(const core::ExpandedEntry &entry, std::span<const core::HyperValue> hypers, core::EntryHost &host) override;
  const std::vector<core::Stamp> &stamps() const override { return times; }
  uint64_t sentBytes() const override;
  uint64_t residentBytes() const override { return dev.size() - options.guardBytes; }
  std::string report() const override;

private:
  core::DeviceOptions options;
  comm::Control *control = nullptr;
  std::span<std::byte> dev, host;
  std::vector<std::shared_ptr<void>> memory;
  std::optional<cpu::LocalSteps> local;
  std::vector<core::Stamp> times;
  std::vector<comm::Members> table;
  std::vector<uint64_t> shares; ///< by communicator: bytes sent, times members
};

} // namespace par::sim
