// Output that may find nobody to read it.
#pragma once

#include <cstdint>
#include <string_view>

namespace par::comm {

/// Nanoseconds of a clock that never goes back, when it was first asked after a signal that the job of this process was
/// to end; 0 where none has come, or no job runs.
int64_t askedToEnd();

/// Writes all of the text, however slowly it is read. After a signal that asked this process's job to end it waits for
/// two seconds only, so that a pipe that nobody reads keeps no job from ending. False: not all was written, errno says
/// why, and is ETIMEDOUT where nobody read it.
bool writeOutput(int descriptor, std::string_view text);

} // namespace par::comm
