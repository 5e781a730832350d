// Multi-device annotations from protobuf and to it.
#include "ConvertDevices.h"

namespace par::onnx {
namespace {

SimpleSharding convertPart(const ::onnx::SimpleShardedDimProto &proto) {
  SimpleSharding part;
  if (proto.has_dim_value())
    part.size = proto.dim_value();
  if (proto.has_dim_param())
    part.symbol = proto.dim_param();
  if (proto.has_num_shards())
    part.shards = proto.num_shards();
  return part;
}

void convertPart(const SimpleSharding &part, ::onnx::SimpleShardedDimProto &proto) {
  if (part.size)
    proto.set_dim_value(*part.size);
  if (part.symbol)
    proto.set_dim_param(*part.symbol);
  if (part.shards)
    proto.set_num_shards(*part.shards);
}

TensorSharding convertSharding(const ::onnx::ShardingSpecProto &proto) {
  TensorSharding sharding{proto.tensor_name(), {proto.device().begin(), proto.device().end()}, {}, {}};
  for (const auto &entry : proto.index_to_device_group_map())
    sharding.groups.push_back({entry.key(), {entry.value().begin(), entry.value().end()}});
  for (const auto &dim : proto.sharded_dim()) {
    ShardedAxis &axis = sharding.axes.emplace_back();
    if (dim.has_axis())
      axis.axis = dim.axis();
    for (const auto &part : dim.simple_sharding())
      axis.parts.push_back(convertPart(part));
  }
  return sharding;
}

void convertSharding(const TensorSharding &sharding, ::onnx::ShardingSpecProto &proto) {
  proto.set_tensor_name(sharding.tensor);
  for (int64_t device : sharding.devices)
    proto.add_device(device);
  for (const DeviceGroup &group : sharding.groups) {
    auto *entry = proto.add_index_to_device_group_map();
    entry->set_key(group.key);
    for (int64_t device : group.devices)
      entry->add_value(device);
  }
  for (const ShardedAxis &axis : sharding.axes) {
    auto *dim = proto.add_sharded_dim();
    if (axis.axis)
      dim->set_axis(*axis.axis);
    for (const SimpleSharding &part : axis.parts)
      convertPart(part, *dim->add_simple_sharding());
  }
}

} // namespace

NodeDevices convertDevices(const ::onnx::NodeDeviceConfigurationProto &proto) {
  NodeDevices devices;
  devices.configuration = proto.configuration_id();
  for (const auto &sharding : proto.sharding_spec())
    devices.shardings.push_back(convertSharding(sharding));
  if (proto.has_pipeline_stage())
    devices.stage = proto.pipeline_stage();
  return devices;
}

void convertDevices(const NodeDevices &devices, ::onnx::NodeDeviceConfigurationProto &proto) {
  proto.set_configuration_id(devices.configuration);
  for (const TensorSharding &sharding : devices.shardings)
    convertSharding(sharding, *proto.add_sharding_spec());
  if (devices.stage)
    proto.set_pipeline_stage(int32_t(*devices.stage));
}

DeviceConfiguration convertConfiguration(const ::onnx::DeviceConfigurationProto &proto) {
  DeviceConfiguration configuration{proto.name(), {}, {proto.device().begin(), proto.device().end()}};
  if (proto.has_num_devices())
    configuration.devices = proto.num_devices();
  return configuration;
}

void convertConfiguration(const DeviceConfiguration &configuration, ::onnx::DeviceConfigurationProto &proto) {
  proto.set_name(configuration.name);
  if (configuration.devices)
    proto.set_num_devices(int32_t(*configuration.devices));
  for (const std::string &name : configuration.names)
    proto.add_device(name);
}

} // namespace par::onnx
