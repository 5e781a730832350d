// A new bundle in the place of an old one. A bundle's folder may hold saves, exports and notes of its user, and nothing
// of theirs is ever removed: a file is a bundle's if its manifest lists it with its size and hash, and a folder that
// holds anything else is not replaced. No call here removes a folder that is not empty. A process that is killed leaves
// the old bundle or the new one under the name, each whole, and perhaps the other one under a name beside it.
#include "ReplaceBundle.h"
#include "Json.h"
#include "par/format/Family.h"
#include "par/format/PlainFile.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace par::format {

namespace fs = std::filesystem;

static constexpr Word manifestName = "manifest.json";

Error systemError(const std::string &path, const char *what) {
  return Error{path + ": cannot " + what + ": " + std::strerror(errno)};
}

Expected<std::string> resolveFolder(const std::string &path) {
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  std::error_code error;
  if (!fs::is_symlink(fs::symlink_status(folder, error)))
    return folder;
  fs::path target = fs::canonical(folder, error);
  if (error == std::errc::no_such_file_or_directory)
    return Error{folder + ": is a link that leads to nothing; remove it, or write to another folder"};
  if (error) // e.g. a link that leads to itself
    return Error{folder + ": cannot open: " + error.message()};
  return target.string();
}

Expected<std::string> makeFolderBeside(const std::string &folder) {
  std::error_code error;
  if (fs::path parent = fs::path(folder).parent_path(); !parent.empty())
    fs::create_directories(parent, error);
  if (error)
    return Error{folder + ": cannot create: " + error.message()};
  for (unsigned attempt = 0;; ++attempt) {
    std::string made = folder + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    if (::mkdir(made.c_str(), 0777) == 0)
      return made;
    if (errno != EEXIST)
      return systemError(folder, "create");
  }
}

/// The files that the manifest lists, whichever version wrote it; nothing where it is none of a bundle.
static std::optional<std::vector<File>> listedIn(const std::string &folder) {
  Expected<std::string> text = readPlainFile(folder + "/" + std::string(manifestName));
  if (!text)
    return std::nullopt;
  Expected<Json> json = parseJson(*text, std::string(manifestName));
  if (!json)
    return std::nullopt;
  Document document{std::string(manifestName), std::move(*json), std::nullopt};
  Node root(document);
  if (!root.isObject() || !root.has("par_manifest"))
    return std::nullopt;
  std::vector<File> files;
  for (const Node &file : root.at("files").list())
    files.push_back({file.at("name").text(), uint64_t(file.at("size").integer()), file.at("sha256").text()});
  if (document.error)
    return std::nullopt;
  return files;
}

/// Names in the folder.
static std::vector<std::string> namesIn(const std::string &folder, std::error_code &error) {
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

static bool isListed(const std::vector<File> &files, std::string_view name) {
  return std::any_of(files.begin(), files.end(), [&](const File &file) { return file.name == name; });
}

/// Whether the entry is the folder of members of a bundle that has a family.
static bool isOfMembers(const std::string &folder, const std::string &name, const std::vector<File> &files) {
  std::error_code error;
  return name == membersFolder && isListed(files, familyFile) &&
         fs::is_directory(fs::symlink_status(folder + "/" + name, error));
}

/// Entries of the folder that are not listed, or not as listed.
static std::vector<std::string> foreignAmong(const std::string &folder, const std::vector<std::string> &names,
                                             const std::vector<File> &files) {
  std::vector<std::string> foreign;
  for (const std::string &name : names) {
    if (name == manifestName || isOfMembers(folder, name, files))
      continue;
    auto listed = std::find_if(files.begin(), files.end(), [&](const File &file) { return file.name == name; });
    if (listed == files.end())
      foreign.push_back(name);
    else if (!isAsListed(folder, *listed))
      foreign.push_back(name + " (changed)");
  }
  return foreign;
}

static std::string shortList(const std::vector<std::string> &names) {
  constexpr size_t shown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), shown); ++i)
    text += (i ? ", " : "") + names[i];
  return names.size() > shown ? text + " and " + std::to_string(names.size() - shown) + " more" : text;
}

static Expected<std::vector<std::string>> replaceableNames(const std::string &folder, const std::string &called);

static Error holdsForeign(const std::string &called, const std::vector<std::string> &foreign) {
  return Error{called + ": is not replaced, since it holds what is not of the bundle: " + shortList(foreign) +
               "; move that away, or write to another folder"};
}

/// Adds to `names` those of the members in the bundle's folder, each folder after what it holds.
static Status addMembers(const std::string &folder, const std::string &called, std::vector<std::string> &names) {
  Expected<std::string> text = readPlainFile(folder + "/" + std::string(familyFile));
  Expected<Family> family = text ? parseFamily(*text, std::string(familyFile)) : text.error();
  if (!family)
    return Error{called + ": is not replaced: its members are not known: " + family.message()};
  std::string below(membersFolder);
  std::error_code error;
  std::vector<std::string> added, foreign;
  for (const std::string &name : namesIn(folder + "/" + below, error)) {
    std::string member = below + "/" + name;
    bool known = std::any_of(family->members.begin(), family->members.end(),
                             [&](const FamilyMember &of) { return of.name == name; });
    if (!known || !fs::is_directory(fs::symlink_status(folder + "/" + member, error))) {
      foreign.push_back(member);
      continue;
    }
    Expected<std::vector<std::string>> files = replaceableNames(folder + "/" + member, called + "/" + member);
    if (!files)
      return files.error();
    for (const std::string &file : *files)
      added.push_back(member + "/" + file);
    added.push_back(member);
  }
  if (error)
    return Error{called + "/" + below + ": cannot open: " + error.message()};
  if (!foreign.empty())
    return holdsForeign(called, foreign);
  names.insert(std::find(names.begin(), names.end(), below), added.begin(), added.end());
  return {};
}

/// The names of the bundle that lies in `folder`, with its members, all of which may be removed, in this order;
/// `called` is the user's name for it.
static Expected<std::vector<std::string>> replaceableNames(const std::string &folder, const std::string &called) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return Error{called + ": exists and is not a bundle, so it is not replaced"};
  std::vector<std::string> names = namesIn(folder, error);
  if (error)
    return Error{called + ": cannot open: " + error.message()};
  if (names.empty())
    return names;
  if (!std::binary_search(names.begin(), names.end(), manifestName))
    return Error{called + ": exists and is not a bundle, so it is not replaced"};
  std::optional<std::vector<File>> files = listedIn(folder);
  if (!files)
    return Error{called +
                 ": is not replaced: its manifest.json does not tell which files are a bundle's; remove the folder, or "
                 "write to another one"};
  if (std::vector<std::string> foreign = foreignAmong(folder, names, *files); !foreign.empty())
    return holdsForeign(called, foreign);
  if (std::binary_search(names.begin(), names.end(), membersFolder))
    if (Status members = addMembers(folder, called, names); !members)
      return members.error();
  return names;
}

Status checkReplaceable(const std::string &path) {
  Expected<std::string> folder = resolveFolder(path);
  if (!folder)
    return folder.error();
  std::error_code error;
  if (!fs::exists(fs::symlink_status(*folder, error)))
    return {};
  Expected<std::vector<std::string>> names = replaceableNames(*folder, path);
  return names ? Status() : Status(names.error());
}

void removeFiles(const std::string &folder, const std::vector<std::string> &names) {
  for (const std::string &name : names)
    ::remove((folder + "/" + name).c_str()); // a folder only if it is empty
  ::rmdir(folder.c_str());
}

/// Exchanges the two. If the file system cannot, `folder` is missing for a moment, but never half written.
static Status exchange(const std::string &made, const std::string &folder) {
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0)
    return {};
  std::string aside = made + ".old";
  if (::rename(folder.c_str(), aside.c_str()) != 0)
    return systemError(folder, "replace");
  if (::rename(made.c_str(), folder.c_str()) != 0) {
    Error failure = systemError(folder, "create");
    (void)::rename(aside.c_str(), folder.c_str());
    return failure;
  }
  return ::rename(aside.c_str(), made.c_str()) == 0 ? Status() : Status(systemError(aside, "rename"));
}

Status replaceFolder(const std::string &made, const std::string &folder, const std::vector<std::string> &names) {
  auto refuse = [&](Error why) {
    removeFiles(made, names);
    return Status(std::move(why));
  };
  std::error_code error;
  if (!fs::exists(folder, error))
    return ::rename(made.c_str(), folder.c_str()) == 0 ? Status() : refuse(systemError(folder, "create"));
  if (Status exchanged = exchange(made, folder); !exchanged)
    return refuse(exchanged.error());
  // Checked under a name that no other process uses: files added to the folder until now are seen.
  Expected<std::vector<std::string>> old = replaceableNames(made, folder);
  if (old) {
    removeFiles(made, *old);
    return {};
  }
  if (!exchange(made, folder))
    return Error{folder + ": is written; what was there before is now " + made};
  return refuse(old.error());
}

} // namespace par::format
