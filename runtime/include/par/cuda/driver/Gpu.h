// One GPU as a rank uses it, and owners of its resources.
#pragma once

#include "par/cuda/driver/Driver.h"

#include <span>
#include <utility>

namespace par::cuda {

/// A device with its primary context, which ranks that are threads of one process share.
class Gpu {
public:
  /// Opens the driver and device `ordinal`. Throws core::Failure.
  explicit Gpu(int ordinal);
  ~Gpu();
  Gpu(const Gpu &) = delete;

  const Driver *operator->() const { return &driver; }
  /// Makes the context the calling thread's.
  void use() const;
  int ordinal() const { return device; }
  const std::string &name() const { return deviceName; }
  /// In hex: what tells it from all other GPUs, of this machine and others.
  std::string uuid() const;
  /// 90 for compute capability 9.0.
  int sm() const { return capability; }
  static int count(const Driver &driver);

private:
  Driver driver;
  int device = 0, capability = 0;
  Context context = nullptr;
  std::string deviceName;
};

/// Memory of the GPU, or of the host but pinned (the GPU reaches it at the same address).
class DeviceBuffer {
public:
  enum class Place { Device, Host };
  DeviceBuffer() = default;
  /// No bytes: no memory. Throws core::Failure, with the free bytes, if there is not enough.
  DeviceBuffer(const Gpu &gpu, uint64_t bytes, Place place);
  DeviceBuffer(DeviceBuffer &&other) noexcept { *this = std::move(other); }
  DeviceBuffer &operator=(DeviceBuffer &&other) noexcept {
    std::swap(gpu, other.gpu);
    std::swap(at, other.at);
    std::swap(size, other.size);
    std::swap(place, other.place);
    return *this;
  }
  ~DeviceBuffer();

  std::byte *data() const { return reinterpret_cast<std::byte *>(at); }
  Address address() const { return at; }
  uint64_t bytes() const { return size; }

private:
  const Gpu *gpu = nullptr;
  Address at = 0;
  uint64_t size = 0;
  Place place = Place::Device;
};

/// A stream or an event: made by its constructor, destroyed with it.
template <typename Handle>
class Owned {
public:
  Owned() = default;
  Owned(const Gpu &gpu, Handle handle) : gpu(&gpu), handle(handle) {}
  Owned(Owned &&other) noexcept { *this = std::move(other); }
  Owned &operator=(Owned &&other) noexcept {
    std::swap(gpu, other.gpu);
    std::swap(handle, other.handle);
    return *this;
  }
  ~Owned() {
    if (handle)
      destroy(*gpu, handle);
  }
  operator Handle() const { return handle; }

private:
  const Gpu *gpu = nullptr;
  Handle handle = nullptr;
};

void destroy(const Gpu &gpu, Stream stream);
void destroy(const Gpu &gpu, Event event);
void destroy(const Gpu &gpu, GraphExec graph);
void destroy(const Gpu &gpu, Module module);

/// `urgent`: of the greatest priority, for communication.
Owned<Stream> makeStream(const Gpu &gpu, bool urgent);
/// `timed`: it can be asked when it was reached.
Owned<Event> makeEvent(const Gpu &gpu, bool timed = false);

/// `to` comes after all that `from` has been given so far.
void order(const Gpu &gpu, Stream from, Stream to, Event event);

} // namespace par::cuda
