// Keeps the folder of saves: lists them, removes the oldest and the remnants of killed runs, and replaces a save
// through renames, so that a complete one exists at any moment.
#include "par/save/SaveFolder.h"

#include "SaveIndex.h"

#include "comm/job/Secret.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <unistd.h>

namespace par::core {

namespace fs = std::filesystem;

namespace {

/// STEP.RUN.ENDING, or STEP.tmp of an earlier par-run: a folder that no save is. Nothing for other names.
struct Remnant {
  uint64_t step = 0;
  std::string ending;
};

std::optional<Remnant> remnantOf(const std::string &name) {
  size_t first = name.find('.'), last = name.rfind('.');
  if (first == std::string::npos)
    return std::nullopt;
  auto step = stepOfName(name.substr(0, first));
  std::string ending = name.substr(last + 1), run = name.substr(first, last - first);
  bool ours = (run.size() == 17 && run.find_first_not_of("0123456789abcdef", 1) == std::string::npos) ||
              (run.empty() && ending == "tmp");
  if (!step || !ours || (ending != "tmp" && ending != "old" && ending != "gone"))
    return std::nullopt;
  return Remnant{*step, ending};
}

/// Names in a folder; none where nothing is there. Throws Failure where it cannot be read.
std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    throw Failure::at(folder, Message::cannotOpen, error.message());
  return names;
}

bool isOfSave(const std::string &name) {
  return name == "index.json" || (name.starts_with("rank") && name.ends_with(".safetensors"));
}

/// Whether the folder is a save, or was one: files of one without an index that can be read, or a folder that cannot be
/// looked into, are not passed over.
bool looksSaved(const std::string &path) {
  try {
    if (isCheckpoint(path))
      return true;
    std::vector<std::string> names = namesIn(path);
    return !names.empty() && std::all_of(names.begin(), names.end(), isOfSave);
  } catch (const Failure &) {
    return true;
  }
}

ListedSave listed(const std::string &folder, const std::string &name, uint64_t step) {
  ListedSave save{name, step, std::nullopt};
  try {
    SaveIndex index = readIndexBegin(folder + "/" + name);
    if (index.position.step == step)
      save.serial = index.serial;
  } catch (const Failure &) {
    // opening it says why
  }
  return save;
}

void move(const std::string &from, const std::string &to) {
  if (rename(from.c_str(), to.c_str()) != 0)
    throw Failure::at(from, Message::cannotWrite, std::strerror(errno));
}

/// Removes a save's own files; a folder that holds other files (notes, for example) stays with these.
void removeSave(const std::string &path) {
  std::error_code error;
  for (const std::string &name : namesIn(path))
    if (!error && isOfSave(name) && !fs::is_directory(fs::symlink_status(path + "/" + name, error)))
      fs::remove(path + "/" + name, error);
  if (!error)
    fs::remove(path, error);
  if (error && error != std::errc::directory_not_empty)
    throw Failure::at(path, Message::cannotWrite, error.message());
}

} // namespace

std::optional<uint64_t> stepOfName(const std::string &name) {
  uint64_t step = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  bool good = error == std::errc() && end == name.data() + name.size() && name == std::to_string(step);
  return good ? std::optional(step) : std::nullopt;
}

std::vector<ListedSave> listSaves(const std::string &folder) {
  std::vector<ListedSave> saves, unread;
  std::set<uint64_t> named;
  auto add = [&](const std::string &name, uint64_t step) {
    if (!looksSaved(folder + "/" + name))
      return;
    ListedSave save = listed(folder, name, step);
    named.insert(step);
    (save.serial ? saves : unread).push_back(std::move(save));
  };
  std::vector<std::string> names = namesIn(folder);
  for (const std::string &name : names)
    if (auto step = stepOfName(name))
      add(name, *step);
  for (const std::string &name : names)
    if (auto remnant = remnantOf(name); remnant && remnant->ending == "old" && !named.count(remnant->step))
      add(name, remnant->step);
  std::sort(saves.begin(), saves.end(), [](const ListedSave &a, const ListedSave &b) {
    return std::pair(*a.serial, a.step) < std::pair(*b.serial, b.step);
  });
  // Broken ones that are further than the newest must be seen; others must not hide it.
  uint64_t newest = saves.empty() ? 0 : saves.back().step;
  std::sort(unread.begin(), unread.end(), [](const ListedSave &a, const ListedSave &b) { return a.step < b.step; });
  auto further = std::find_if(unread.begin(), unread.end(), [&](const ListedSave &save) { return save.step > newest; });
  saves.insert(saves.begin(), unread.begin(), further);
  saves.insert(saves.end(), further, unread.end());
  return saves;
}

void refuseForeign(const std::string &folder, uint64_t last) {
  for (const std::string &name : namesIn(folder)) {
    std::string path = folder + "/" + name;
    auto step = stepOfName(name);
    std::error_code error;
    if (!step || *step > last)
      continue;
    std::vector<std::string> inside = namesIn(path);
    if (!fs::is_directory(path, error) || !std::all_of(inside.begin(), inside.end(), isOfSave))
      throw Failure::at(folder, Message::noSaveHere, name);
  }
}

void refuseOthersSaves(const std::string &folder, const std::string &from) {
  std::vector<ListedSave> saves = listSaves(folder);
  auto goesOn = [&](const ListedSave &save) {
    std::error_code error;
    return !from.empty() && fs::equivalent(folder + "/" + save.name, from, error);
  };
  if (!saves.empty() && std::none_of(saves.begin(), saves.end(), goesOn))
    throw Failure::at(folder, Message::savesHere, saves.back().step);
}

void syncFolder(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool good = descriptor >= 0 && fsync(descriptor) == 0;
  int error = errno;
  if (descriptor >= 0)
    close(descriptor);
  if (!good)
    throw Failure::at(path, Message::cannotWrite, std::strerror(error));
}

void replaceFolder(const std::string &from, const std::string &to, const std::string &aside, bool exchanges) {
  std::string parent = fs::path(to).parent_path().string();
  if (rename(from.c_str(), to.c_str()) == 0)
    return syncFolder(parent); // nothing had the name
  if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
    throw Failure::at(to, Message::cannotWrite, std::strerror(errno));
  if (exchanges && renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    move(from, aside);
  } else {
    // A kill between the two leaves the old one under a name that listSaves() knows.
    move(to, aside);
    move(from, to);
  }
  syncFolder(parent);
  removeSave(aside);
}

SaveFolder::SaveFolder(std::string where) : folder(std::move(where)), lock(folder), runName(comm::randomHex(8)) {
  takeUp();
}

void SaveFolder::takeUp() {
  cleanUp();
  saves.clear();
  for (ListedSave &save : listSaves(folder))
    if (save.serial)
      saves.push_back(std::move(save));
}

std::string SaveFolder::newest(uint64_t before) const {
  auto save = std::find_if(saves.rbegin(), saves.rend(), [&](const ListedSave &one) { return one.step < before; });
  return save == saves.rend() ? "" : folder + "/" + save->name;
}

void SaveFolder::cleanUp() {
  for (const std::string &name : namesIn(folder)) {
    auto remnant = remnantOf(name);
    std::string path = folder + "/" + name;
    if (!remnant || !fs::is_directory(fs::symlink_status(path)))
      continue;
    std::string whole = folder + "/" + std::to_string(remnant->step);
    if (remnant->ending == "old" && isCheckpoint(path) && !fs::exists(whole))
      move(path, whole); // nothing took its name
    else
      removeSave(path);
  }
}

std::string SaveFolder::named(uint64_t step, const std::string &ending) const {
  return folder + "/" + std::to_string(step) + "." + runName + "." + ending;
}

uint64_t SaveFolder::nextSerial() const {
  uint64_t last = 0;
  for (const ListedSave &save : saves)
    last = std::max(last, *save.serial);
  return last + 1;
}

void SaveFolder::add(const std::string &part, uint64_t step, uint64_t keep) {
  std::string name = std::to_string(step);
  uint64_t serial = nextSerial();
  replaceFolder(part, folder + "/" + name, named(step, "old"));
  std::erase_if(saves, [&](const ListedSave &save) { return save.step == step; });
  saves.push_back({name, step, serial});
  while (saves.size() > keep) {
    // Under another name first: a kill leaves nothing that looks like a save.
    std::string gone = named(saves.front().step, "gone"), path = folder + "/" + saves.front().name;
    if (rename(path.c_str(), gone.c_str()) == 0)
      removeSave(gone);
    else if (errno != ENOENT) // someone else has deleted it
      throw Failure::at(path, Message::cannotWrite, std::strerror(errno));
    saves.erase(saves.begin());
  }
}

} // namespace par::core
