#include "Scratch.h"

#include <cstdlib>
#include <memory>
#include <new>

namespace par::kernels {

std::byte *threadScratch(size_t bytes) {
  constexpr size_t alignment = 64;
  struct Free {
    void operator()(std::byte *memory) const { std::free(memory); }
  };
  thread_local std::unique_ptr<std::byte, Free> memory;
  thread_local size_t size = 0;
  if (bytes > size) {
    size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    memory.reset();
    memory.reset(static_cast<std::byte *>(std::aligned_alloc(alignment, rounded)));
    size = memory ? rounded : 0;
    if (!memory)
      throw std::bad_alloc();
  }
  return memory.get();
}

} // namespace par::kernels
