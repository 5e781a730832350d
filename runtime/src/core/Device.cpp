#include "par/core/Device.h"

#include "par/core/Failure.h"
#include "par/cpu/Device.h"
#include "par/cuda/Device.h"
#include "par/sim/Device.h"

namespace par::core {

HostBytes::HostBytes(Device &device, void *at, uint64_t bytes) {
  if (const std::byte *here = device.hostAddress(at)) {
    seen = {here, bytes};
    return;
  }
  copy.resize(bytes);
  device.read(copy, at);
  seen = copy;
}

std::unique_ptr<Device> makeDevice(const std::string &name, const DeviceOptions &options) {
  if (name == "cpu")
    return std::make_unique<cpu::Device>(options);
  if (name == "sim")
    return std::make_unique<sim::Device>(options);
  if (name == "cuda")
    return cuda::makeDevice(options);
  throw Failure::at(options.folder, Message::unknownDevice, name);
}

} // namespace par::core
