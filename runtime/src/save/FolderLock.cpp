#include "comm/job/Hosts.h"
#include "par/format/Printable.h"
#include "par/messages/Failure.h"
#include "par/save/SaveFolder.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace par::core {

namespace {

/// Ranks of a job whose parent was killed end soon after it.
constexpr int patienceMs = 5000, pauseMs = 20;

/// An owner's description of itself: "pid 4711 on node17, since 2026-11-22 21:40:01".
struct Owner {
  long pid = 0;
  std::string host;

  explicit Owner(const std::string &text) {
    char name[256] = "";
    if (sscanf(text.c_str(), "pid %ld on %255[^,\n]", &pid, name) == 2)
      host = name;
  }
  bool isHere() const { return host == comm::hostName(); }
  bool isAlive() const { return pid > 0 && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM); }
};

} // namespace

FolderLock::FolderLock(const std::string &folder, bool locks) : folder(folder), path(folder + "/.lock") {
  // A pipe of that name must not be waited for, nor a link lead elsewhere, nor a file be emptied that has another name.
  descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0644);
  struct stat info;
  if (descriptor < 0 || fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink > 1) {
    std::string reason = descriptor < 0           ? std::strerror(errno)
                         : !S_ISREG(info.st_mode) ? "not a plain file"
                                                  : "it is a link to another file";
    if (descriptor >= 0)
      close(descriptor);
    throw Failure::at(path, Message::cannotWrite, reason);
  }
  try {
    if (!locks || !tryLock())
      takeByName();
    sign();
  } catch (...) {
    close(descriptor);
    throw;
  }
}

FolderLock::~FolderLock() {
  // A forked rank leaves the name of its parent.
  if (holder == getpid() && ftruncate(descriptor, 0) != 0)
    holder = 0;
  close(descriptor);
}

/// True where the lock is held now, false where the file system has none.
bool FolderLock::tryLock() {
  for (int waited = 0;; waited += pauseMs) {
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
      return true;
    if (errno == EINTR)
      continue;
    if (errno != EWOULDBLOCK)
      return false;
    std::string text = owner();
    Owner other(text);
    // An empty file is one that its owner has not signed yet; ranks of a killed job hold its lock a little longer.
    bool ending = text.empty() || (other.isHere() && !other.isAlive());
    if (!ending || waited >= patienceMs)
      throw Failure::at(folder, Message::saveLocked, text.empty() ? "another job" : text);
    std::this_thread::sleep_for(std::chrono::milliseconds(pauseMs));
  }
}

void FolderLock::takeByName() {
  std::string text = owner();
  Owner other(text);
  if (other.host.empty() || (other.isHere() && !other.isAlive()))
    return;
  if (other.isHere())
    throw Failure::at(folder, Message::saveLocked, text);
  throw Failure::at(folder, Message::saveLockedElsewhere, text, path);
}

/// The first line of the file, as far as it can be printed.
std::string FolderLock::owner() const {
  char bytes[200];
  ssize_t count = pread(descriptor, bytes, sizeof bytes, 0);
  std::string text(bytes, static_cast<size_t>(std::max<ssize_t>(count, 0)));
  text.resize(std::min(text.find('\n'), text.size()));
  return format::printable(std::move(text));
}

void FolderLock::sign() {
  std::time_t now = std::time(nullptr);
  std::tm local = {};
  char since[32];
  std::strftime(since, sizeof since, "%F %T", localtime_r(&now, &local));
  std::string text = core::format("pid {} on {}, since {}\n", getpid(), comm::hostName(), since);
  if (ftruncate(descriptor, 0) != 0 ||
      pwrite(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw Failure::at(path, Message::cannotWrite, std::strerror(errno));
  holder = getpid();
}

} // namespace par::core
