// Output that may have no reader.
#pragma once

#include <cstdint>
#include <string_view>

namespace par::comm {

/// Nanoseconds of a clock that never goes back, when it was first asked after a signal that the job of this process was
/// to end; 0 where none has come, or no job runs.
int64_t askedToEnd();

/// Writes all of the text, however slowly it is read. After a signal that asked the job to end it waits for two seconds
/// only, so an unread pipe does not keep the job from ending. False: not all was written; errno says why, ETIMEDOUT if
/// it was not read.
bool writeOutput(int descriptor, std::string_view text);
/// The same in `nanoseconds` at most.
bool writeOutput(int descriptor, std::string_view text, int64_t nanoseconds);

} // namespace par::comm
