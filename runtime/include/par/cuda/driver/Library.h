// A library that is opened when it is needed, never linked: its place, its version, its entry points.
#pragma once

#include <string>

namespace par::cuda {

/// A library's names and where it is looked for.
struct LibraryName {
  const char *word;        ///< for messages: "the CUDA driver"
  const char *file;        ///< "libcuda.so.1"
  const char *environment; ///< a variable that holds another path; tests put their stubs there
};

/// An open shared library. Throws core::Failure where it or an entry point is missing.
class Library {
public:
  explicit Library(const LibraryName &name);
  Library(Library &&other) noexcept : name(other.name), path(std::move(other.path)), handle(other.handle) {
    other.handle = nullptr;
  }
  ~Library();

  /// Address of a symbol.
  void *symbol(const char *entry) const;
  /// The opened file: "libcuda.so.1", or the path that the environment gave.
  const std::string &file() const { return path; }

  /// Throws unless `version` is at least `least`; both as people write them, for the message.
  void requireVersion(bool enough, const std::string &version, const std::string &least) const;

private:
  LibraryName name;
  std::string path;
  void *handle = nullptr;
};

/// Fills a member of a table of entry points.
template <typename Function>
void bind(const Library &library, Function *&function, const char *entry) {
  function = reinterpret_cast<Function *>(library.symbol(entry));
}

} // namespace par::cuda
