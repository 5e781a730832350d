// Set-up and end of a tool's process.
#pragma once

#include "par/format/Error.h"

namespace par::format {

/// For a program's main, before all else: openStandardStreams(), a limit of files' sizes is an error and no signal, and
/// a stack that is limited (ulimit -s) is raised as far as the process may, also that of threads. If that is too little
/// for any work, this says so: an overflow would be a fault without a message.
Status prepareProcess();

/// After the work: all that was printed to stdout has been written, or why not.
Status flushOutput();

} // namespace par::format
