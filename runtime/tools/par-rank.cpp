// par-rank: the ranks of a session. Only libpar-runtime.so starts it, with a socket and memory to share.
#include "api/Serve.h"
#include "par/format/Colors.h"
#include "par/format/OutOfMemory.h"
#include "par/format/Process.h"
#include "par/messages/Failure.h"

#include <iostream>

int main(int argc, char **argv) {
  par::format::nameFailedAllocations();
  par::format::setColors("never"); // the session's process reads what is said here
  try {
    if (auto status = par::format::prepareProcess(); !status)
      throw par::core::Failure("par-rank", status.message());
    return par::api::serve({argv + 1, argv + argc});
  } catch (const par::core::Failure &failure) {
    std::cerr << failure.what() << std::endl;
    return failure.exitCode();
  } catch (const std::exception &error) {
    std::cerr << par::core::Failure("par-rank", error.what()).what() << std::endl;
    return par::core::exitError;
  }
}
