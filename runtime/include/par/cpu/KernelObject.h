// The compiled kernels of a bundle. The object is checked before it is loaded: it must be a shared object for this
// machine that depends on nothing, leaves no symbol undefined and runs nothing when loaded. A copy in memory of the
// checked bytes is loaded, so a file that changes or shrinks meanwhile does no harm. (Running a bundle still is running
// its author's code.)
#pragma once

#include "par/kernels/Builtins.h"

#include <string>

namespace par::cpu {

class KernelObject {
public:
  KernelObject() = default;
  /// Checks and loads the bytes of a file; throws core::Failure. `path` is its name, for messages.
  KernelObject(const std::string &path, const std::string &content);
  KernelObject(KernelObject &&other) noexcept { *this = std::move(other); }
  KernelObject &operator=(KernelObject &&other) noexcept {
    std::swap(handle, other.handle);
    std::swap(path, other.path);
    std::swap(copy, other.copy);
    return *this;
  }
  ~KernelObject();
  /// Throws core::Failure if there is no such symbol; `kernel` is the name for the message.
  kernels::KernelFunction function(const std::string &symbol, const std::string &kernel) const;

private:
  void *handle = nullptr;
  std::string path;
  int copy = -1; ///< the file in memory; open as long as the object is loaded, for dlopen knows objects by their names
};

/// Throws core::Failure unless the bytes are a kernel object as described above.
void checkKernelObject(const std::string &path, const std::string &content);

} // namespace par::cpu
