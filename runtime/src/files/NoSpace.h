// A file for which there is no space: the one fault of a disk that may pass.
#pragma once

#include "par/messages/Failure.h"

#include <cerrno>
#include <cstring>

namespace par::core {

/// Thrown where a disk, a quota or a limit of a file's size has no space left.
struct NoSpace : Failure {
  explicit NoSpace(Failure failure) : Failure(std::move(failure)) {}
};

inline bool isNoSpace(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

/// Throws Failure, NoSpace where that is the reason.
[[noreturn]] inline void failToWrite(const std::string &path, int error) {
  Failure failure = Failure::at(path, Message::cannotWrite, std::strerror(error));
  if (isNoSpace(error))
    throw NoSpace(std::move(failure));
  throw failure;
}

} // namespace par::core
