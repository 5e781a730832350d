// A stack of its own for signal handlers.
#pragma once

namespace par::comm {

/// Gives this thread a stack of its own for signal handlers, until it ends. Products of oneDNN keep values far
/// below their stack pointer, where a handler on the thread's own stack would write over them: the sums would be
/// wrong, or the heap broken. To be called by every thread that computes; calls after the first do nothing.
void useSignalStack();

} // namespace par::comm
