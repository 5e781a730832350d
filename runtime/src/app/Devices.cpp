#include "par/app/Devices.h"

#include "par/cpu/Device.h"
#include "par/cuda/run/Device.h"
#include "par/messages/Failure.h"
#include "par/sim/Device.h"

namespace par::core {

std::unique_ptr<Device> makeDevice(const std::string &name, const DeviceOptions &options) {
  if (name == "cpu")
    return std::make_unique<cpu::Device>(options);
  if (name == "sim")
    return std::make_unique<sim::Device>(options);
  if (name == "cuda")
    return cuda::makeDevice(options);
  throw Failure::at(options.folder, Message::unknownDevice, name);
}

MakeDevice deviceNamed(const std::string &name) {
  return [name](const DeviceOptions &options) { return makeDevice(name, options); };
}

} // namespace par::core
