#include "NcclFacts.h"

#include "comm/job/Serialization.h"

#include <cstdlib>
#include <fstream>
#include <unistd.h>

namespace par::cuda {

using comm::Reader;
using comm::Writer;

namespace {

/// "NCCL_SOCKET_IFNAME==eth0" a line; '#' begins a comment.
void readFile(const std::string &path, std::map<std::string, std::string> &settings) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (size_t equals = line.find('='); line.starts_with("NCCL_") && equals != std::string::npos)
      settings.emplace(line.substr(0, equals), line.substr(equals + 1));
}

} // namespace

std::map<std::string, std::string> ncclSettings() {
  std::map<std::string, std::string> settings;
  for (char **it = environ; it && *it; ++it)
    if (std::string entry = *it; entry.starts_with("NCCL_"))
      settings.emplace(entry.substr(0, entry.find('=')), entry.substr(entry.find('=') + 1));
  const char *file = std::getenv("NCCL_CONF_FILE"), *home = std::getenv("HOME");
  readFile(file ? file : std::string(home ? home : "") + "/.nccl.conf", settings);
  readFile("/etc/nccl.conf", settings);
  return settings;
}

std::string NcclFacts::setting(const std::string &name) const {
  auto it = settings.find(name);
  return it == settings.end() ? "" : it->second;
}

std::string NcclFacts::write() const {
  Writer writer;
  writer.text(rank).text(host).text(version).text(gpu).text(visible).text(byRendezvous).number(settings.size());
  for (const auto &[name, value] : settings)
    writer.text(name).text(value);
  writer.number(interfaces.size());
  for (const Interface &interface : interfaces)
    writer.text(interface.name).text(interface.address);
  return writer.take();
}

NcclFacts NcclFacts::read(const std::string &bytes) {
  Reader reader(bytes);
  NcclFacts facts;
  for (std::string *text : {&facts.rank, &facts.host, &facts.version, &facts.gpu, &facts.visible, &facts.byRendezvous})
    *text = reader.text();
  for (uint64_t left = reader.number(); left > 0; --left) {
    std::string name = reader.text();
    facts.settings[name] = reader.text();
  }
  for (uint64_t left = reader.number(); left > 0; --left) {
    Interface interface;
    interface.name = reader.text();
    interface.address = reader.text();
    facts.interfaces.push_back(interface);
  }
  return facts;
}

} // namespace par::cuda
