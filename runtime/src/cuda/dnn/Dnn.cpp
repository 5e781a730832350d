#include "par/cuda/dnn/Dnn.h"

#include "par/messages/Failure.h"

namespace par::cuda {

using core::Failure;
using core::Message;

namespace {

constexpr LibraryName dnnName{"cuDNN", "libcudnn.so.9", "PAR_CUDNN_LIBRARY"};
constexpr size_t minDnn = 90000;

/// Until 9.0 the number was 1000 times the major version, and 100 times the minor one.
std::string dnnVersionText(size_t number) {
  size_t major = number < minDnn ? 1000 : 10000;
  return std::to_string(number / major) + "." + std::to_string(number % major / 100) + "." +
         std::to_string(number % 100);
}

} // namespace

Dnn::Dnn(Library &&opened) : library(std::move(opened)) {
#define PAR_DNN_BIND(NAME, RESULT, SYMBOL, PARAMETERS) cuda::bind(library, NAME, SYMBOL);
  PAR_DNN_ENTRIES(PAR_DNN_BIND)
#undef PAR_DNN_BIND
  library.requireVersion(version() >= minDnn, dnnVersionText(version()), dnnVersionText(minDnn));
}

Dnn::Dnn() : Dnn(Library(dnnName)) {
  if (int status = create(&handle))
    throw Failure::at("", Message::cudaFailed, "cudnnCreate", words(status));
}

Dnn::Dnn(const std::string &properties) : Dnn(Library(dnnName)) {
  auto make = [&] {
    if (int status = descriptorCreate(static_cast<int>(dnn::Kind::Device), &device))
      return status;
    auto count = static_cast<int64_t>(properties.size() + 1); // with the zero at its end
    int status = descriptorSet(device, static_cast<int>(dnn::Attribute::DeviceProperties),
                               static_cast<int>(dnn::Type::Character), count, properties.c_str());
    return status ? status : descriptorFinalize(device);
  };
  if (int status = make())
    throw Failure::at("", Message::cudaFailed, "a GPU by its description", words(status));
}

Dnn::~Dnn() {
  if (device)
    descriptorDestroy(device);
  if (handle)
    destroy(handle);
}

std::string Dnn::installed() { return Dnn(Library(dnnName)).describe(); }

std::string Dnn::describe() const { return "cuDNN " + dnnVersionText(version()); }

std::string Dnn::words(int status) const {
  char text[512] = "";
  lastError(text, sizeof text);
  std::string said = errorText(status);
  return *text ? said + ": " + text : said;
}

void Dnn::check(int status, const std::string &whose, const std::string &what) const {
  if (status != 0)
    throw Failure::at("", Message::dnnFailed, whose, what, words(status));
}

} // namespace par::cuda
