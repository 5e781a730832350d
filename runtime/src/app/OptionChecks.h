// Flags that exclude or need each other.
#pragma once

#include "par/app/Options.h"
#include "par/messages/Failure.h"

#include <map>

namespace par::core {

template <typename... Values>
[[noreturn]] void refuse(Message message, const Values &...values) {
  throw Failure::at("par-run", message, values...).exitsWith(exitUsage);
}

/// Throws a Failure for flags that cannot be given together. `given`: the flags with their values.
void checkTogether(const RunOptions &options, const std::map<std::string, std::string> &given);

} // namespace par::core
