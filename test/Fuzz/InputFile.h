// The bytes of one fuzz input as a file, for readers that take a path.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace par::test {

/// A file in memory, gone with the object.
class InputFile {
public:
  InputFile(const uint8_t *data, size_t size) : file(::memfd_create("input", MFD_CLOEXEC)) {
    for (size_t done = 0; done < size;) {
      ssize_t count = ::write(file, data + done, size - done);
      if (count <= 0)
        std::abort();
      done += count;
    }
  }
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;
  ~InputFile() { ::close(file); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file); }

private:
  int file;
};

} // namespace par::test
