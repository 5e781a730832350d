// A stack of its own for signal handlers.
#include "par/comm/shared/SignalStack.h"
#include "Memory.h"

#include <csignal>
#include <sys/auxv.h>

using namespace par::comm;

namespace {

struct SignalStack {
  SignalStack() {
    // The kernel saves all registers there (those of AVX-512 take 2 KiB) and tells the minimum that it needs.
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
