#pragma once

#include "onnx-ml.pb.h"
#include "par/Onnx/Devices.h"

namespace par::onnx {

NodeDevices convertDevices(const ::onnx::NodeDeviceConfigurationProto &proto);
DeviceConfiguration convertConfiguration(const ::onnx::DeviceConfigurationProto &proto);

/// The other way.
void convertDevices(const NodeDevices &devices, ::onnx::NodeDeviceConfigurationProto &proto);
void convertConfiguration(const DeviceConfiguration &configuration, ::onnx::DeviceConfigurationProto &proto);

} // namespace par::onnx
