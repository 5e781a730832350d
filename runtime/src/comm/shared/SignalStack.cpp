// A stack of its own for signal handlers.
#include "par/comm/shared/SignalStack.h"
#include "Memory.h"

#include <csignal>
#include <sys/auxv.h>

using namespace par::comm;

namespace {

struct SignalStack {
  SignalStack() {
    // The kernel puts all registers there, of which AVX-512 alone has 2 KiB; what it needs at least it says itself.
    memory = mapPrivate(16 * 4096 + getauxval(AT_MINSIGSTKSZ));
    stack_t own{};
    own.ss_sp = memory.bytes.data();
    own.ss_size = memory.bytes.size();
    sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  Mapping memory;
};

} // namespace

void par::comm::useSignalStack() { static thread_local SignalStack stack; }
