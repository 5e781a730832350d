// All devices by name, for callers that run bundles. The rooms below know only the interface.
#pragma once

#include "par/device/Device.h"

namespace par::core {

/// The device called `name`: "cpu", "sim", "cuda". Throws Failure where this machine or this build has none.
std::unique_ptr<Device> makeDevice(const std::string &name, const DeviceOptions &options);

/// makeDevice() with this name.
MakeDevice deviceNamed(const std::string &name);

} // namespace par::core
