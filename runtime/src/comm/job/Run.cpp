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

/// Lost ranks can be replaced only if the job's own connections join them.
void checkRestarts(const Launch &launch) {
  if (!launch.restarts)
    return;
  if (launch.transport == Transport::inproc)
    throw LaunchError(2, say(Sentence::restartNeeds, "--comm inproc", "ranks are threads, which are lost together"));
  if (launch.transport == Transport::mpi)
    throw LaunchError(2, say(Sentence::restartNeeds, "--comm mpi",
                             "Open MPI 4 cannot replace a rank; give --comm tcp, which works under mpirun, too"));
}

/// Spares come to a job whose ranks are started again, at the port where these meet.
void checkSpares(const Launch &launch, bool launched) {
  if (launch.spares && !launch.restarts)
    throw LaunchError(2, say(Sentence::flagNeedsFlag, "--spares", "--restart"));
  if (launch.spares && !launched)
    throw LaunchError(2, say(Sentence::flagNeedsFlag, "--spares", "a launcher, or --rank and --world"));
}

/// The memory of a rank is lost only with its supervisor, of which -n has one for all.
void checkMirror(const Launch &launch, bool launched) {
  if (launch.mirror && !launched)
    throw LaunchError(2, say(Sentence::flagNeedsFlag, "--mirror", "a launcher, or --rank and --world"));
}

/// A process beyond the ranks: once a place is free it is a rank like the others.
int runSpare(const Launch &launch, LaunchEnvironment place, const std::function<int(Control &)> &rankMain) {
  std::optional<uint32_t> rank = waitAsSpare(launch, place);
  if (!rank)
    return 0;
  place.rank = *rank;
  place.spare = false;
  return runSupervised(launch, {place}, Listener::none(), rankMain);
}

/// -n under --restart: the ranks find each other as a launcher's do, at a port that only this host reaches.
int runAgain(const Launch &launch, uint32_t world, const std::function<int(Control &)> &rankMain) {
  LaunchEnvironment place;
  place.world = world;
  place.rankSource = place.worldSource = "-n";
  Listener listener = Listener::rendezvous(place);
  place.port = listener.port();
  std::vector<LaunchEnvironment> places(world, place);
  for (uint32_t rank = 0; rank < world; ++rank)
    places[rank].rank = places[rank].localRank = rank;
  return runSupervised(launch, std::move(places), std::move(listener), rankMain);
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
  if (place.spare)
    return runSpare(launch, place, rankMain);
  if (launch.restarts)
    return runSupervised(launch, {place}, place.rank == 0 ? Listener::rendezvous(place) : Listener::none(), rankMain);
  if (place.world == 1)
    return runThreads(launch, 1, rankMain);
  if (launch.transport == Transport::inproc)
    throw LaunchError(2, say(Sentence::threadsUnderLauncher, place.worldSource));
  return runUnderLauncher(launch, place, rankMain).code;
}

} // namespace

std::optional<LaunchEnvironment> par::comm::placeOfProcess(const Launch &launch) {
  return findPlace(launch, environmentOfProcess());
}

int par::comm::run(const Launch &launch, const std::function<int(Control &)> &rankMain) {
  try {
    std::optional<LaunchEnvironment> place = placeOfProcess(launch);
    endOnSignals(launch.bundle, describeProcess(place));
    checkRestarts(launch);
    checkSpares(launch, place.has_value());
    checkMirror(launch, place.has_value());
    if (place)
      return runPlaced(launch, *place, rankMain);
    uint32_t world = launch.n.value_or(launch.bundleRanks);
    checkWorld(launch, world, "-n asks for " + std::to_string(world));
    if (launch.restarts)
      return runAgain(launch, world, rankMain);
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
