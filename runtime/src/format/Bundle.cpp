// The folder, written whole or not at all.
#include "par/format/Bundle.h"
#include "Check.h"
#include "Json.h"
#include "ReplaceBundle.h"
#include "par/format/Family.h"
#include "par/format/PlainFile.h"
#include "par/format/Printable.h"
#include "par/format/Sha256.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

using namespace par::format;

static constexpr Word manifestFile = "manifest.json", provenanceFile = "provenance.json",
                      kernelObject = "kernels-x86.so";

static std::string roleFile(size_t role) { return "role-" + std::to_string(role) + ".json"; }

/// Written and on disk.
static Status writeFile(const std::string &path, std::string_view bytes) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    return systemError(path, "create");
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      Error error = systemError(path, "write");
      ::close(fd);
      return error;
    }
    bytes.remove_prefix(size_t(n));
  }
  bool ok = ::fsync(fd) == 0;
  return ::close(fd) == 0 && ok ? Status() : Status(systemError(path, "write"));
}

static std::string bundleHashOf(const std::vector<File> &files) {
  Sha256 hash;
  for (const File &file : files)
    hash.update(file.name + " " + std::to_string(file.size) + " " + file.sha256 + "\n");
  return hash.finish();
}

static std::string writeProvenance(const std::vector<std::string> &lines) {
  Writer w;
  w.raw("{").key("par_provenance").numbers(std::vector<int64_t>{formatMajor, formatMinor});
  w.raw("\n").key("lines").raw("[");
  for (const std::string &line : lines)
    w.raw("\n").comma().text(printable(line));
  w.raw("]}\n");
  return w.take();
}

static Expected<std::vector<std::string>> parseProvenance(std::string_view text, const std::string &where) {
  Expected<Json> json = parseJson(text, where);
  if (!json)
    return json.error();
  Document document{where, std::move(*json), std::nullopt};
  Node root(document);
  readVersion(root.only({"par_provenance", "lines"}).at("par_provenance"));
  std::vector<std::string> lines;
  for (const Node &line : root.at("lines").list()) {
    lines.push_back(line.text());
    if (std::any_of(lines.back().begin(), lines.back().end(), isControl))
      line.fail("a line holds a control character: '" + lines.back() + "'");
  }
  if (document.error)
    return *document.error;
  return lines;
}

/// The files that are written for a bundle and its members: their names in the folder, and a path by content.
struct Written {
  std::vector<std::string> names, folders;
  std::map<std::string, std::string> bySha;

  /// All that lies in the folder, each folder after its files.
  std::vector<std::string> all() const {
    std::vector<std::string> everything = names;
    everything.insert(everything.end(), folders.begin(), folders.end());
    return everything;
  }
};

/// The bundle's files into `folder` + `below`.
static Status writeFiles(const std::string &folder, const std::string &below, Manifest &manifest, const Bundle &bundle,
                         Written &written) {
  manifest.files.clear();
  manifest.roles = uint32_t(bundle.programs.size());
  auto add = [&](const std::string &name, std::string_view bytes) {
    const File &file = manifest.files.emplace_back(File{name, bytes.size(), sha256(bytes)});
    std::string path = folder + "/" + below + name;
    written.names.push_back(below + name);
    auto [same, isNew] = written.bySha.emplace(file.sha256, path);
    if (!isNew && ::link(same->second.c_str(), path.c_str()) == 0)
      return Status();
    return writeFile(path, bytes);
  };
  for (size_t role = 0; role < bundle.programs.size(); ++role)
    if (Status status = add(roleFile(role), writeProgram(bundle.programs[role])); !status)
      return status;
  if (Status status = add(std::string(provenanceFile), writeProvenance(bundle.provenance)); !status)
    return status;
  for (const Blob &blob : bundle.blobs)
    if (Status status = add(blob.name, blob.bytes); !status)
      return status;
  manifest.bundleHash = bundleHashOf(manifest.files);
  if (Status sound = checkManifest(manifest, std::string(manifestFile)); !sound)
    return sound;
  written.names.push_back(below + std::string(manifestFile));
  return writeFile(folder + "/" + below + std::string(manifestFile), writeManifest(manifest));
}

/// As readBundle will: an unreadable bundle does not get the name.
static Status readBack(const std::string &folder, const std::string &called) {
  Expected<Bundle> read = readBundle(folder);
  return read ? Status() : Error{called + ": is not written, since it cannot be read back: " + read.message()};
}

static Status checkPrograms(const Bundle &bundle) {
  for (size_t role = 0; role < bundle.programs.size(); ++role)
    if (Status sound = checkProgram(bundle.programs[role], roleFile(role)); !sound)
      return sound;
  return {};
}

/// A member's folder in that of the new bundle, and read back.
static Status writeMember(const std::string &folder, const std::string &called, const NamedBundle &member,
                          Written &written) {
  std::string parent(membersFolder), below = parent + "/" + member.name;
  for (const std::string &name : {below, parent})
    if (std::find(written.folders.begin(), written.folders.end(), name) == written.folders.end())
      written.folders.insert(written.folders.end() - (written.folders.empty() ? 0 : 1), name);
  for (const std::string &name : {parent, below})
    if (::mkdir((folder + "/" + name).c_str(), 0777) != 0 && errno != EEXIST)
      return systemError(called + "/" + name, "create");
  Manifest manifest = member.bundle->manifest;
  if (Status status = writeFiles(folder, below + "/", manifest, *member.bundle, written); !status)
    return status;
  return readBack(folder + "/" + below, called + "/" + below);
}

Expected<Manifest> par::format::writeFamily(const std::string &path, const Bundle &main,
                                            const std::vector<NamedBundle> &members) {
  if (Status free = checkReplaceable(path); !free)
    return free.error();
  Expected<std::string> folder = resolveFolder(path);
  if (!folder)
    return folder.error();
  if (Status sound = checkPrograms(main); !sound)
    return sound.error();
  for (const NamedBundle &member : members)
    if (Status sound = checkPrograms(*member.bundle); !sound)
      return sound.error();
  Expected<std::string> temporary = makeFolderBeside(*folder);
  if (!temporary)
    return temporary.error();
  Manifest manifest = main.manifest;
  Written written;
  Status status = writeFiles(*temporary, "", manifest, main, written);
  if (status)
    status = readBack(*temporary, *folder);
  for (const NamedBundle &member : members)
    if (status)
      status = writeMember(*temporary, *folder, member, written);
  if (status)
    status = replaceFolder(*temporary, *folder, written.all());
  else
    removeFiles(*temporary, written.all());
  return status ? Expected<Manifest>(std::move(manifest)) : status.error();
}

Expected<Manifest> par::format::writeBundle(const std::string &path, const Bundle &bundle) {
  return writeFamily(path, bundle, {});
}

/// Reads a file piece by piece, if its size and hash are the manifest's; errors are reasons without the name.
template <typename Take>
static Status readChecked(const std::string &folder, const File &file, Take take) {
  Expected<PlainFile> opened = PlainFile::open(folder + "/" + file.name);
  if (!opened)
    return Error{"cannot open: " + opened.message()};
  if (opened->size() != file.size)
    return Error{std::to_string(opened->size()) + " bytes, the manifest says " + std::to_string(file.size)};
  Sha256 hash;
  std::string piece(std::min<uint64_t>(file.size, 1 << 20), '\0');
  for (uint64_t at = 0; at < file.size; at += piece.size()) {
    piece.resize(std::min<uint64_t>(piece.size(), file.size - at));
    if (Status status = opened->read(at, piece.data(), piece.size()); !status)
      return status;
    hash.update(piece);
    take(piece);
  }
  if (hash.finish() != file.sha256)
    return Error{"its SHA-256 is not that of the manifest"};
  return {};
}

bool par::format::isAsListed(const std::string &folder, const File &file) {
  return bool(readChecked(folder, file, [](std::string_view) {}));
}

static Status checkFile(const std::string &folder, const File &file) {
  Status status = readChecked(folder, file, [](std::string_view) {});
  return status ? status : Error{file.name + ": " + status.message()};
}

static const File *findFile(const Manifest &manifest, std::string_view name) {
  auto found =
      std::find_if(manifest.files.begin(), manifest.files.end(), [&](const File &file) { return file.name == name; });
  return found == manifest.files.end() ? nullptr : &*found;
}

bool par::format::lists(const Manifest &manifest, std::string_view name) { return findFile(manifest, name) != nullptr; }

Expected<std::string> par::format::readListed(const std::string &folder, const Manifest &manifest,
                                              std::string_view name) {
  const File *file = findFile(manifest, name);
  if (!file)
    return Error{"is not in the manifest's list of files, so its content is not known"};
  if (file->size > maxText)
    return Error{std::to_string(file->size) + " bytes, at most " + std::to_string(maxText) + " are read"};
  std::string bytes;
  if (Status status = readChecked(folder, *file, [&](std::string_view piece) { bytes += piece; }); !status)
    return status.error();
  return bytes;
}

/// A text of the bundle as it is listed.
static Expected<std::string> readText(const std::string &folder, const Manifest &manifest, const std::string &name) {
  if (!lists(manifest, name))
    return Error{std::string(manifestFile) + ": files: " + name + " is missing"};
  Expected<std::string> text = readListed(folder, manifest, name);
  return text ? text : Error{name + ": " + text.message()};
}

/// The manifest lists, and so gives the hashes of, the kernels that the programs call.
static Status checkListed(const Bundle &bundle) {
  const std::vector<File> &files = bundle.manifest.files;
  bool cuda = bundle.manifest.device == "cuda";
  Word file = cuda ? "kernels.ptx" : kernelObject;
  bool listed =
      lists(bundle.manifest, file) || (cuda && std::any_of(files.begin(), files.end(), [](const File &file) {
                                         return file.name.starts_with("kernels-sm") && file.name.ends_with(".cubin");
                                       }));
  for (const Program &program : bundle.programs)
    for (const Kernel &kernel : program.kernels)
      if (!kernel.builtin && !listed)
        return Error{std::string(manifestFile) + ": files: " + std::string(file) + ", which holds kernel '" +
                     kernel.name + "', is missing"};
  return {};
}

Expected<Bundle> par::format::readPrograms(const std::string &folder) {
  std::string manifestName(manifestFile);
  Expected<std::string> text = readPlainFile(folder + "/" + manifestName);
  if (!text)
    return Error{folder + "/" + manifestName + ": cannot open: " + text.message()};
  Expected<Manifest> manifest = parseManifest(*text, manifestName);
  if (!manifest)
    return manifest.error();
  if (bundleHashOf(manifest->files) != manifest->bundleHash)
    return Error{manifestName + ": bundle: the hash of its files is not " + manifest->bundleHash};
  if (manifest->files.empty())
    return Error{manifestName + ": files: none is listed, so nothing is hashed"};
  Bundle bundle;
  bundle.manifest = std::move(*manifest);
  for (uint32_t role = 0; role < bundle.manifest.roles; ++role) {
    Expected<std::string> source = readText(folder, bundle.manifest, roleFile(role));
    if (!source)
      return source.error();
    Expected<Program> program = parseProgram(*source, roleFile(role));
    if (!program)
      return program.error();
    bundle.programs.push_back(std::move(*program));
  }
  Expected<std::string> lines = readText(folder, bundle.manifest, std::string(provenanceFile));
  if (!lines)
    return lines.error();
  Expected<std::vector<std::string>> provenance = parseProvenance(*lines, std::string(provenanceFile));
  if (!provenance)
    return provenance.error();
  bundle.provenance = std::move(*provenance);
  if (Status listed = checkListed(bundle); !listed)
    return listed.error();
  return bundle;
}

Expected<Bundle> par::format::readBundle(const std::string &folder) {
  Expected<Bundle> bundle = readPrograms(folder);
  if (!bundle)
    return bundle;
  for (const File &file : bundle->manifest.files)
    if (Status status = checkFile(folder, file); !status)
      return status.error();
  return bundle;
}
