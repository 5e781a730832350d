#include "par/device/Device.h"

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

} // namespace par::core
