// Allocations that fail say how large they were. The standard library's exception knows no size, so that `new` itself
// is replaced, for the whole program that calls a function of this file. The forms for arrays and without exceptions
// come back to these two.
#include "par/format/OutOfMemory.h"

#include <algorithm>
#include <cstdlib>

using namespace par::format;

void par::format::nameFailedAllocations() {}

/// A handler that the program has set is called first, as by the standard's own `new`.
[[noreturn]] static void refuseMemory(size_t bytes) {
  if (std::new_handler handler = std::get_new_handler())
    handler();
  throw OutOfMemory(bytes);
}

void *operator new(size_t bytes) {
  if (void *memory = std::malloc(std::max<size_t>(bytes, 1)))
    return memory;
  refuseMemory(bytes);
}

void *operator new(size_t bytes, std::align_val_t alignment) {
  auto align = static_cast<size_t>(alignment);
  size_t whole = (bytes + align - 1) / align * align;
  if (void *memory = whole < bytes ? nullptr : std::aligned_alloc(align, std::max(whole, align)))
    return memory;
  refuseMemory(bytes);
}

void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, size_t, std::align_val_t) noexcept { std::free(memory); }
