// Every way of starting ends in rankMain.
#include "Local.h"
#include "Processes.h"
#include "comm/shared/Diagnosis.h"
#include "par/comm/job/Ending.h"
#include "par/messages/CommMessages.h"

#include <unistd.h>

using namespace par::comm;

namespace {

std::map<std::string, std::string> environmentOfProcess() {
  std::map<std::string, std::string> result;
  for (char **entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    size_t equals = text.find('=');
    if (equals != text.npos)
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

/// Error 13.
void checkWorld(const Launch &launch, uint32_t world, const std::string &who) {
  if (world == launch.bundleRanks)
    return;
  std::string mesh = launch.mesh.empty() ? "" : " (" + launch.mesh + ")";
  throw LaunchError(2, say(Sentence::wrongWorld, launch.bundleRanks, launch.bundleRanks == 1 ? "" : "s", mesh, who));
}

int runPlaced(const Launch &launch, const LaunchEnvironment &place, const std::function<int(Control &)> &rankMain) {
  try {
    checkWorld(launch, place.world,
               "the launcher started " + std::to_string(place.world) + " (" + place.worldSource + ")");
  } catch (const LaunchError &wrong) {
    std::string line = errorLine(launch.bundle, wrong.what());
    printLine(line);
    tellOthers(launch, place, line);
    return wrong.code;
  }
  if (place.world == 1)
    return runThreads(launch, 1, rankMain);
  if (launch.transport == Transport::inproc)
    throw LaunchError(2, say(Sentence::threadsUnderLauncher, place.worldSource));
  return runUnderLauncher(launch, place, rankMain);
}

} // namespace

std::optional<LaunchEnvironment> par::comm::placeOfProcess(const Launch &launch) {
  return findPlace(launch, environmentOfProcess());
}

int par::comm::run(const Launch &launch, const std::function<int(Control &)> &rankMain) {
  try {
    std::optional<LaunchEnvironment> place = placeOfProcess(launch);
    endOnSignals(launch.bundle, describeProcess(place));
    if (place)
      return runPlaced(launch, *place, rankMain);
    uint32_t world = launch.n.value_or(launch.bundleRanks);
    checkWorld(launch, world, "-n asks for " + std::to_string(world));
    if (world == 1 || launch.transport == Transport::inproc)
      return runThreads(launch, world, rankMain);
    return runProcesses(launch, world, rankMain);
  } catch (const LaunchError &error) {
    printLine(errorLine(launch.bundle, error.what()));
    return error.code;
  } catch (const std::exception &error) {
    printLine(errorLine(launch.bundle, error.what()));
    return exitRankLost;
  }
}
