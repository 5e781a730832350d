// Loads plugins. The versions that one is compiled against stand in a section of its own, which is read before any of
// its code runs: a library for another LLVM would bring that into the process.
#include "par/Plugin/Plugin.h"

#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/DynamicLibrary.h"

using namespace llvm;

namespace par {

static Error refuse(const std::string &file, const Twine &reason) {
  return createStringError("plugin \"" + file + "\" " + reason);
}

/// The text of the section with the versions; empty if the file is a library without it.
static Expected<std::string> readVersions(const std::string &file) {
  Expected<object::OwningBinary<object::ObjectFile>> library = object::ObjectFile::createObjectFile(file);
  if (!library)
    return library.takeError();
  for (const object::SectionRef &section : library->getBinary()->sections()) {
    Expected<StringRef> name = section.getName();
    if (!name) {
      consumeError(name.takeError());
      continue;
    }
    if (*name != PAR_PLUGIN_SECTION)
      continue;
    Expected<StringRef> text = section.getContents();
    return text ? Expected<std::string>(text->rtrim('\0').str()) : text.takeError();
  }
  return std::string();
}

Expected<std::shared_ptr<const Plugin>> loadPlugin(const std::string &file) {
  Expected<std::string> versions = readVersions(file);
  if (!versions)
    return refuse(file, "cannot be read: " + toString(versions.takeError()));
  if (versions->empty())
    return refuse(file, "is no plugin of Par: it has no function PAR_PLUGIN (docs/plugins.md)");
  if (*versions != PAR_PLUGIN_VERSIONS)
    return refuse(file, "is built for " + *versions + ", this is " PAR_PLUGIN_VERSIONS "; build it against this Par");
  // A name without a slash would be searched among the system's libraries.
  std::string path = StringRef(file).contains('/') ? file : "./" + file;
  std::string reason;
  sys::DynamicLibrary library = sys::DynamicLibrary::getPermanentLibrary(path.c_str(), &reason);
  if (!library.isValid())
    return refuse(file, "cannot be loaded: " + reason);
  auto describe = reinterpret_cast<void (*)(Plugin &)>(library.getAddressOfSymbol("parDescribePlugin"));
  if (!describe)
    return refuse(file, "has no function parDescribePlugin; PAR_PLUGIN makes it");
  auto plugin = std::make_shared<Plugin>();
  plugin->file = file;
  describe(*plugin);
  return plugin;
}

} // namespace par
