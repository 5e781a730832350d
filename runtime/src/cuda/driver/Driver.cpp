#include "par/cuda/driver/Driver.h"

#include "par/messages/Failure.h"

namespace par::cuda {

using core::Failure;
using core::Message;

namespace {

constexpr LibraryName driverName{"the CUDA driver", "libcuda.so.1", "PAR_CUDA_LIBRARY"};

/// 12040: "12.4".
std::string driverVersionText(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

} // namespace

bool hasDriver() {
  try {
    Library library(driverName);
    return true;
  } catch (const Failure &) {
    return false;
  }
}

Driver::Driver() : library(driverName) {
#define PAR_CUDA_BIND(NAME, SYMBOL, PARAMETERS) cuda::bind(library, NAME, SYMBOL);
  PAR_CUDA_ENTRIES(PAR_CUDA_BIND)
#undef PAR_CUDA_BIND
  check(driverVersion(&number), "cuDriverGetVersion");
  library.requireVersion(number >= minDriver, driverVersionText(number), driverVersionText(minDriver));
  check(init(0), "cuInit");
  int count = 0;
  check(deviceCount(&count), "cuDeviceGetCount");
  if (count == 0)
    throw Failure::at("", Message::cudaNoDevice, version());
}

std::string Driver::describe(Result result) const {
  const char *name = nullptr, *text = nullptr;
  if (errorName(result, &name) != success || !name)
    return "error " + std::to_string(result);
  errorText(result, &text);
  return std::string(name) + (text ? " (" + std::string(text) + ")" : "");
}

void Driver::check(Result result, const std::string &what) const {
  if (result != success)
    throw Failure::at("", Message::cudaFailed, what, describe(result));
}

std::string Driver::version() const { return "CUDA driver " + driverVersionText(number); }

} // namespace par::cuda
