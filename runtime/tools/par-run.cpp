// par-run BUNDLE: trains or evaluates a bundle. The work is in core/Job.h.
#include "par/app/Job.h"
#include "par/format/Colors.h"
#include "par/format/Manifest.h"
#include "par/format/OutOfMemory.h"
#include "par/format/Printable.h"
#include "par/format/Process.h"
#include "par/messages/Failure.h"
#include "par/serve/Serve.h"

#include <cstdlib>
#include <iostream>

static int failWith(const std::string &sentence, int code) {
  std::cerr << par::format::colored("par-run: error: " + par::format::printable(sentence)) << std::endl;
  return code;
}

/// Ends after a requested text (help, version) was printed.
static int endOutput() {
  if (auto status = par::format::flushOutput(); !status)
    return failWith("standard output: " + status.message(), par::core::exitError);
  return 0;
}

int main(int argc, char **argv) {
  par::format::nameFailedAllocations();
  if (auto status = par::format::prepareProcess(); !status)
    return failWith(status.message(), par::core::exitError);
  try {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    par::core::RunOptions options = par::core::parseOptions(arguments);
    if (!options.color.empty())
      par::format::setColors(options.color);
    if (options.help) {
      std::cout << par::core::usage();
      return endOutput();
    }
    if (options.version) {
      std::cout << "par 0.1, bundle format " << par::format::formatMajor << "." << par::format::formatMinor << "\n";
      return endOutput();
    }
    if (!options.serve.empty())
      return par::serve::serve(options, arguments);
    if (const char *device = std::getenv("PAR_DEVICE"))
      par::core::takeDevice(options, device);
    return par::core::runTool(options);
  } catch (const par::core::Failure &failure) {
    std::cerr << par::format::colored(failure.what()) << std::endl;
    return failure.exitCode();
  } catch (const std::exception &error) { // no memory before the bundle's name is known
    return failWith(error.what(), par::core::exitError);
  }
}
