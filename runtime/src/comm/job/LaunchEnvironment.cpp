// Reads rank and world from the environment of a launcher.
#include "par/comm/job/Launch.h"
#include "par/messages/CommMessages.h"

#include <charconv>

using namespace par::comm;

namespace {

using Environment = std::map<std::string, std::string>;

/// The variables of one launcher.
struct Launcher {
  const char *rank, *world, *localRank;
  const char *jobs[2];   ///< where it names the job
  const char *localSize; ///< where it says how many ranks run on this host
};
constexpr Launcher launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", {"TORCHELASTIC_RUN_ID", nullptr}, nullptr},
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", {"PMI_JOBID", nullptr}, "MPI_LOCALNRANKS"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", {"SLURM_JOB_ID", nullptr}, nullptr},
};

const std::string *find(const Environment &environment, const char *name) {
  auto it = name ? environment.find(name) : environment.end();
  return it == environment.end() || it->second.empty() ? nullptr : &it->second;
}

uint32_t numberOf(const std::string &name, const std::string &text, uint32_t least, uint32_t limit) {
  uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > limit)
    throw LaunchError(2, say(Sentence::notANumber, name, text, least, limit));
  return value;
}

constexpr uint32_t maxWorld = 1 << 20;

/// The last processes are spares, and no ranks.
void setSparesApart(LaunchEnvironment &place, uint32_t spares) {
  if (spares >= place.world)
    throw LaunchError(2, say(Sentence::onlySpares, spares, place.worldSource, place.world));
  place.world -= spares;
  place.spare = place.rank >= place.world;
}

void check(const LaunchEnvironment &place) {
  if (place.world == 0 || place.rank >= place.world)
    throw LaunchError(2,
                      say(Sentence::rankNotBelowWorld, place.rankSource, place.rank, place.worldSource, place.world));
}

std::optional<LaunchEnvironment> fromFlags(const Launch &launch) {
  if (!launch.rank && !launch.world)
    return std::nullopt;
  if (!launch.rank || !launch.world)
    throw LaunchError(
        2, say(Sentence::flagNeedsFlag, launch.rank ? "--rank" : "--world", launch.rank ? "--world" : "--rank"));
  if (*launch.world > maxWorld)
    throw LaunchError(2, say(Sentence::notANumber, "--world", std::to_string(*launch.world), 1, maxWorld));
  LaunchEnvironment place;
  place.rank = place.localRank = *launch.rank;
  place.world = *launch.world;
  place.rankSource = "--rank";
  place.worldSource = "--world";
  return place;
}

std::optional<LaunchEnvironment> fromLauncher(const Launcher &launcher, const Environment &environment) {
  const std::string *rank = find(environment, launcher.rank), *world = find(environment, launcher.world);
  // Slurm's batch step has the number of tasks and is none of them.
  if (!rank)
    return std::nullopt;
  if (!world)
    throw LaunchError(2, say(Sentence::setAndNotSet, launcher.rank, launcher.world));
  LaunchEnvironment place;
  place.rank = place.localRank = numberOf(launcher.rank, *rank, 0, maxWorld);
  place.world = numberOf(launcher.world, *world, 0, maxWorld);
  place.rankSource = launcher.rank;
  place.worldSource = launcher.world;
  if (const std::string *local = find(environment, launcher.localRank)) {
    place.localRank = numberOf(launcher.localRank, *local, 0, maxWorld);
    place.localGiven = true;
  }
  for (const char *job : launcher.jobs)
    if (const std::string *name = find(environment, job); name && place.job.empty())
      place.job = *name;
  return place;
}

/// The first host of "node[03-05,9],login": "node03".
std::string firstHost(const std::string &list) {
  size_t end = list.find_first_of(",[");
  std::string host = list.substr(0, end);
  if (end != std::string::npos && list[end] == '[')
    host += list.substr(end + 1, list.find_first_of("-,]", end) - end - 1);
  return host;
}

/// Whether srun has started this rank: by its own variables, or by those of PMI besides.
bool bySrun(const LaunchEnvironment &place, const Environment &environment) {
  return place.rankSource == "SLURM_PROCID" || (place.rankSource == "PMI_RANK" && find(environment, "SLURM_PROCID"));
}

/// Ranks on other hosts would look for rank 0 on their own.
void checkOneHost(const LaunchEnvironment &place, const Environment &environment) {
  for (const Launcher &launcher : launchers) {
    if (place.rankSource != launcher.rank)
      continue;
    const std::string *here = find(environment, launcher.localSize);
    uint32_t count = here ? numberOf(launcher.localSize, *here, 0, maxWorld) : place.world;
    if (count < place.world)
      throw LaunchError(2, say(Sentence::needsMasterAddress, launcher.localSize, count, place.world));
  }
}

void readMaster(LaunchEnvironment &place, const Launch &launch, const Environment &environment) {
  if (!launch.master.empty()) {
    size_t colon = launch.master.rfind(':');
    if (colon == std::string::npos || colon == 0)
      throw LaunchError(2, say(Sentence::badMaster, launch.master));
    place.host = launch.master.substr(0, colon);
    place.port = uint16_t(numberOf("the port of --master", launch.master.substr(colon + 1), 1, 65535));
    return;
  }
  const std::string *address = find(environment, "MASTER_ADDR"), *port = find(environment, "MASTER_PORT");
  if (address && port) {
    place.host = *address;
    place.port = uint16_t(numberOf("MASTER_PORT", *port, 1, 65535));
    const std::string *agent = find(environment, "TORCHELASTIC_USE_AGENT_STORE");
    place.agentStore = agent && *agent == "True";
    return;
  }
  if (place.rankSource == "--rank")
    throw LaunchError(2, say(Sentence::needsMaster));
  if (place.rankSource == "RANK")
    throw LaunchError(2, say(Sentence::setAndNotSet, "RANK", address ? "MASTER_PORT" : "MASTER_ADDR"));
  // All ranks know the job's name and so the same port.
  place.port = uint16_t(29500 + std::hash<std::string>()(place.job) % 1000);
  const std::string *list = find(environment, "SLURM_JOB_NODELIST");
  if (address)
    place.host = *address;
  else if (list && bySrun(place, environment))
    place.host = firstHost(*list);
  else
    checkOneHost(place, environment);
}

} // namespace

std::optional<LaunchEnvironment> par::comm::findPlace(const Launch &launch, const Environment &environment) {
  std::optional<LaunchEnvironment> place = fromFlags(launch);
  for (const Launcher &launcher : launchers) {
    std::optional<LaunchEnvironment> other = fromLauncher(launcher, environment);
    if (!other)
      continue;
    check(*other);
    if (!place) {
      place = other;
      continue;
    }
    bool startedLauncher = other->rankSource == "SLURM_PROCID" && other->world < place->world;
    if ((other->rank != place->rank || other->world != place->world) && !startedLauncher)
      throw LaunchError(2, say(Sentence::launchersDisagree, place->rankSource, place->worldSource, place->rank,
                               place->world, other->rankSource, other->worldSource, other->rank, other->world));
  }
  if (!place)
    return std::nullopt;
  check(*place);
  if (launch.spares)
    setSparesApart(*place, launch.spares);
  if (launch.n)
    throw LaunchError(2, say(Sentence::countUnderLauncher, *launch.n, place->worldSource));
  if (place->world > 1 || launch.spares || !launch.master.empty())
    readMaster(*place, launch, environment);
  return place;
}
