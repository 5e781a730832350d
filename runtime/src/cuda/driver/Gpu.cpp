#include "par/cuda/driver/Gpu.h"

#include "par/format/Sha256.h"
#include "par/messages/Failure.h"

namespace par::cuda {

using core::Failure;
using core::Message;

int Gpu::count(const Driver &driver) {
  int devices = 0;
  driver.check(driver.deviceCount(&devices), "cuDeviceGetCount");
  return devices;
}

Gpu::Gpu(int ordinal) {
  driver.check(driver.deviceGet(&device, ordinal), "cuDeviceGet");
  char text[256] = "";
  driver.check(driver.deviceName(text, sizeof text - 1, device), "cuDeviceGetName");
  deviceName = text;
  int major = 0, minor = 0;
  driver.check(driver.deviceAttribute(&major, attributeMajor, device), "cuDeviceGetAttribute");
  driver.check(driver.deviceAttribute(&minor, attributeMinor, device), "cuDeviceGetAttribute");
  capability = major * 10 + minor;
  driver.check(driver.contextRetain(&context, device), "cuDevicePrimaryCtxRetain");
  use();
}

std::string Gpu::uuid() const {
  char bytes[16] = "";
  driver.check(driver.deviceUuid(bytes, device), "cuDeviceGetUuid");
  return format::toHex({bytes, sizeof bytes});
}

Gpu::~Gpu() { driver.contextRelease(device); }

void Gpu::use() const { driver.check(driver.contextSet(context), "cuCtxSetCurrent"); }

DeviceBuffer::DeviceBuffer(const Gpu &gpu, uint64_t bytes, Place place) : gpu(&gpu), place(place) {
  if (bytes == 0)
    return;
  if (place == Place::Host) {
    void *memory = nullptr;
    gpu->check(gpu->allocateHost(&memory, bytes, 0), "cuMemHostAlloc of " + core::grouped(bytes) + " bytes");
    at = reinterpret_cast<Address>(memory);
  } else if (gpu->allocate(&at, bytes) != success) {
    size_t free = 0, total = 0;
    gpu->memoryInfo(&free, &total);
    throw Failure::at("", Message::cudaMemory, core::grouped(bytes), core::grouped(free), core::grouped(total),
                      gpu.name());
  }
  size = bytes;
}

DeviceBuffer::~DeviceBuffer() {
  if (size == 0)
    return;
  if (place == Place::Host)
    (*gpu)->releaseHost(data());
  else
    (*gpu)->release(at);
}

void destroy(const Gpu &gpu, Stream stream) { gpu->streamDestroy(stream); }
void destroy(const Gpu &gpu, Event event) { gpu->eventDestroy(event); }
void destroy(const Gpu &gpu, GraphExec graph) { gpu->graphExecDestroy(graph); }
void destroy(const Gpu &gpu, Module module) { gpu->moduleUnload(module); }

Owned<Stream> makeStream(const Gpu &gpu, bool urgent) {
  int least = 0, greatest = 0;
  gpu->check(gpu->streamPriorities(&least, &greatest), "cuCtxGetStreamPriorityRange");
  Stream stream = nullptr;
  gpu->check(gpu->streamCreate(&stream, streamNonBlocking, urgent ? greatest : least), "cuStreamCreateWithPriority");
  return {gpu, stream};
}

Owned<Event> makeEvent(const Gpu &gpu, bool timed) {
  Event event = nullptr;
  gpu->check(gpu->eventCreate(&event, timed ? 0 : eventWithoutTiming), "cuEventCreate");
  return {gpu, event};
}

void order(const Gpu &gpu, Stream from, Stream to, Event event) {
  gpu->check(gpu->eventRecord(event, from), "cuEventRecord");
  gpu->check(gpu->streamWait(to, event, 0), "cuStreamWaitEvent");
}

} // namespace par::cuda
