#include "LoadedCode.h"

#include "EmulatedGpu.h"

#include <cerrno>
#include <dlfcn.h>
#include <sys/mman.h>

namespace par::kernel_check {

LoadedCode::LoadedCode(llvm::StringRef object, std::string &error) {
  file = memfd_create("par-kernels", MFD_CLOEXEC);
  if (file < 0) {
    error = std::strerror(errno);
    return;
  }
  while (!object.empty()) {
    ssize_t written = write(file, object.data(), object.size());
    if (written < 0 && errno != EINTR)
      break;
    object = object.drop_front(std::max<ssize_t>(written, 0));
  }
  if (object.empty())
    handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    error = object.empty() ? dlerror() : std::strerror(errno);
}

LoadedCode::~LoadedCode() {
  if (handle)
    dlclose(handle);
  if (file >= 0)
    close(file);
}

LoadedCode::Tiles LoadedCode::find(const KernelInfo &info) const {
  void *symbol = dlsym(handle, info.symbol.c_str());
  if (!symbol)
    return {};
  if (!info.launch) {
    using Code = void (*)(void *const *, const uint64_t *, uint32_t, uint32_t);
    return [code = reinterpret_cast<Code>(symbol)](void *const *pointers, const uint64_t *immediates, uint32_t first,
                                                   uint32_t last) {
      code(pointers, immediates, first, last);
      return true;
    };
  }
  *static_cast<EmulatedCalls *>(dlsym(handle, (info.symbol + ".calls").c_str())) = emulated_gpu::Block::calls();
  void *shared = dlsym(handle, (info.symbol + ".shared").c_str());
  const auto *bytes = static_cast<const uint64_t *>(dlsym(handle, (info.symbol + ".shared.bytes").c_str()));
  return [=, launch = *info.launch, body = reinterpret_cast<emulated_gpu::Block::Body>(symbol)](
             void *const *pointers, const uint64_t *immediates, uint32_t, uint32_t) {
    return emulated_gpu::run(body, pointers, immediates, launch.grid, launch.threads, shared, bytes ? *bytes : 0);
  };
}

} // namespace par::kernel_check
