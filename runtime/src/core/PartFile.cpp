#include "par/core/PartFile.h"

#include "par/core/Failure.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace par::core {

PartFile::~PartFile() {
  if (owns)
    unlink(path.c_str());
}

void PartFile::giveName() {
  if (!owns)
    return;
  if (rename(path.c_str(), whole.c_str()) != 0)
    throw Failure::at(whole, Message::cannotWrite, std::strerror(errno));
  owns = false;
}

} // namespace par::core
