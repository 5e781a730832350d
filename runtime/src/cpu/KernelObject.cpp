#include "par/cpu/KernelObject.h"

#include "par/format/KernelCode.h"
#include "par/messages/Failure.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace par::cpu {

using core::Failure;
using core::Message;

namespace {

/// A file in memory with these bytes.
int copyOf(const std::string &path, const std::string &content) {
  int file = memfd_create("par-kernels", MFD_CLOEXEC);
  for (size_t done = 0; file >= 0 && done < content.size();) {
    ssize_t count = write(file, content.data() + done, content.size() - done);
    if (count < 0 && errno != EINTR) {
      close(file);
      file = -1;
    }
    done += count > 0 ? static_cast<size_t>(count) : 0;
  }
  if (file < 0)
    throw Failure::at(path, Message::cannotOpen,
                      core::format("a copy in memory of {} bytes: {}", content.size(), std::strerror(errno)));
  return file;
}

} // namespace

void checkKernelObject(const std::string &path, const std::string &content) {
  if (auto status = format::checkKernelObject(content); !status)
    throw Failure(path, status.message());
}

KernelObject::KernelObject(const std::string &path, const std::string &content) : path(path) {
  checkKernelObject(path, content);
  copy = copyOf(path, content);
  handle = dlopen(("/proc/self/fd/" + std::to_string(copy)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle)
    return;
  std::string reason = dlerror();
  close(copy);
  throw Failure::at(path, Message::cannotOpen, reason);
}

KernelObject::~KernelObject() {
  if (handle)
    dlclose(handle);
  if (copy >= 0)
    close(copy);
}

kernels::KernelFunction KernelObject::function(const std::string &symbol, const std::string &kernel) const {
  void *found = handle ? dlsym(handle, symbol.c_str()) : nullptr;
  if (!found)
    throw Failure::at(path, Message::noKernel, kernel, handle ? "no symbol " + symbol : "there is no kernel object");
  return reinterpret_cast<kernels::KernelFunction>(found);
}

} // namespace par::cpu
