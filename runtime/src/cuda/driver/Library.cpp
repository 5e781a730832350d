#include "par/cuda/driver/Library.h"

#include "par/messages/Failure.h"

#include <cstdlib>
#include <dlfcn.h>

namespace par::cuda {

using core::Failure;
using core::Message;

Library::Library(const LibraryName &name) : name(name) {
  const char *elsewhere = std::getenv(name.environment);
  path = elsewhere && *elsewhere ? elsewhere : name.file;
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw Failure::at("", Message::cudaNoLibrary, name.word, path, dlerror());
}

// Left open: these libraries start threads and register handlers that outlive their last user.
Library::~Library() = default;

void *Library::symbol(const char *entry) const {
  void *found = dlsym(handle, entry);
  if (!found)
    throw Failure::at("", Message::cudaNoEntry, path, entry, name.word);
  return found;
}

void Library::requireVersion(bool enough, const std::string &version, const std::string &least) const {
  if (!enough)
    throw Failure::at("", Message::cudaOldLibrary, path, name.word, version, least);
}

} // namespace par::cuda
