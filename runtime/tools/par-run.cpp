// par-run BUNDLE: trains or evaluates a bundle. The work is in core/Job.h.
#include "par/core/Failure.h"
#include "par/core/Job.h"
#include "par/format/Manifest.h"
#include "par/format/PlainFile.h"

#include <cstdlib>
#include <iostream>

int main(int argc, char **argv) {
  par::format::openStandardStreams();
  try {
    par::core::RunOptions options = par::core::parseOptions({argv + 1, argv + argc});
    if (options.help) {
      std::cout << par::core::usage();
      return 0;
    }
    if (options.version) {
      std::cout << "par 0.1, bundle format " << par::format::kFormatMajor << "." << par::format::kFormatMinor << "\n";
      return 0;
    }
    if (const char *device = std::getenv("PAR_DEVICE"))
      par::core::takeDevice(options, device);
    return par::core::runTool(options);
  } catch (const par::core::Failure &failure) {
    std::cerr << failure.what() << std::endl;
    return failure.exitCode();
  }
}
