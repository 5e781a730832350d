// The messages of communicators and the control plane. Every sentence in one table: a test walks it and finds each
// quoted. `{}` stands for a value.
#pragma once

#include "par/format/Printable.h"

#include <cstdint>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

namespace par::comm {

struct SentenceText {
  std::string_view key, text;
};

#define PAR_COMM_SENTENCES(M)                                                                                          \
  /* who am I */                                                                                                       \
  M(notANumber, "{} is \"{}\", not a number from {} to {}")                                                            \
  M(rankNotBelowWorld, "{} is {} and {} is {}; ranks count from 0")                                                    \
  M(flagNeedsFlag, "{} needs {}")                                                                                      \
  M(setAndNotSet, "{} is set and {} is not")                                                                           \
  M(badMaster, "--master is \"{}\", expected HOST:PORT")                                                               \
  M(needsMaster, "--rank and --world need --master HOST:PORT")                                                         \
  M(needsMasterAddress,                                                                                                \
    "{} says that {} of {} ranks run on this host, and MASTER_ADDR is not set: the others would not find rank 0; set " \
    "it to the address of rank 0's host on all hosts (mpirun -x MASTER_ADDR)")                                         \
  M(launchersDisagree, "{} and {} say rank {} of {}, {} and {} say rank {} of {}")                                     \
  M(countUnderLauncher, "-n {} starts ranks, and {} says that a launcher has done so; leave one of them out")          \
  M(wrongWorld, "this bundle is for {} rank{}{}, {}")                                                                  \
  M(threadsUnderLauncher, "--comm inproc runs all ranks in one process, and {} says that a launcher has started them") \
  M(cannotStartThread, "cannot start a thread with a stack of {} bytes: {}")                                           \
  M(cannotFork, "cannot start rank {}: {}")                                                                            \
  /* rendezvous */                                                                                                     \
  M(unknownHost, "host \"{}\" of the rendezvous is unknown here")                                                      \
  M(portInUse, "port {} on {} is in use; give --master {}:PORT, or stop the job that holds it")                        \
  M(cannotListen, "cannot listen on {}: {}; rank 0 must run on that host")                                             \
  M(noHost, "rank {} found no rank 0 of this job at {}:{}{}")                                                          \
  M(noPlace, "rank {} found no place in the job at {}:{}{}")                                                           \
  M(strangerThere, ": who listens there is no rank 0 of Par; give another --master HOST:PORT")                         \
  M(otherSecret, ": who listens there has another secret: another job, or another PAR_TOKEN")                          \
  M(seatTaken, ": another process is rank {} of the job, and this one takes the place if that is lost")                \
  M(waitsForSecret, "rank {} waits for rank 0 at {}:{}{}; it tries for {} s (--join-timeout)")                         \
  M(noLocalChannel,                                                                                                    \
    ": who listens there is on another host, of another user, or has a PAR_TOKEN that this rank lacks")                \
  M(tokenTooShort, "PAR_TOKEN has {} characters and needs {}; openssl rand -hex 16 makes one")                         \
  M(worldsDiffer, "rank {} ({}) says that there are {} ranks, rank 0 says {}; check {}")                               \
  M(severalHosts, "rank {} runs on {} and rank 0 on {}; --comm shm is for ranks of one host, tcp and mpi for several") \
  M(rankTooLarge, "rank {} is not below {}; check {}")                                                                 \
  M(rankFailed, "rank {} ({}) ended before the job began: {}")                                                         \
  M(sameRank, "two processes say that they are rank {}: {} and {}; check {}")                                          \
  M(ranksMissing, "only {} of {} ranks came in time; missing: {}{}")                                                   \
  M(strangersCame, "; {} connections did not show the job's secret")                                                   \
  M(rankHungUp, "rank {} has hung up on rank 0")                                                                       \
  M(hostHungUp, "rank 0 has hung up on rank {}")                                                                       \
  M(hostSilent, "rank {} has had no answer of rank 0, which should have said which ranks are missing")                 \
  M(staleBundle, "rank {}{} holds {} {}, the {} {}: its copy of the bundle is stale")                                  \
  M(notPassed, "the first rank of this host did not pass its shared memory on")                                        \
  M(noCarrier, "rank {} on {} found no way to rank {} on {} at {}; is a firewall between them?")                       \
  M(noMpi, "--comm mpi cannot open {}: {}; install Open MPI 4, name it in PAR_MPI_LIBRARY, or give --comm tcp")        \
  M(otherMpi, "--comm mpi needs Open MPI 4, and {} is another library: {}")                                            \
  M(mixedMpi, "rank {} on {} has {}, rank {} on {} has {}; --comm mpi needs one version on all hosts")                 \
  M(otherMpiWorld, "this is rank {} of {}, and rank {} of {} to MPI; start it by mpirun or srun, or give --comm tcp")  \
  M(mpiFailed, "{} of MPI failed: {}")                                                                                 \
  M(carrierBroken, "the connection to rank {} broke: {}")                                                              \
  M(truncated, "truncated message on the control plane")                                                               \
  M(brokenSeal, "a value of the control plane was not sealed with this job's secret")                                  \
  /* signals */                                                                                                        \
  M(signalledLate, "{} came to {} after the job had ended")                                                            \
  M(signalledBefore, "{} came to {} before the first step: the job ended, and there was nothing to save")              \
  M(signalledAfter, "{} came to {}: the job ended after step {}; {}")                                                  \
  /* memory */                                                                                                         \
  M(cannotMap, "cannot map {} bytes: {}")                                                                              \
  M(cannotShare, "cannot create shared memory of {} bytes: {}")                                                        \
  M(sharedTooSmall, "shared memory of {} bytes is smaller than the {} that its rank says")                             \
  /* communication */                                                                                                  \
  M(otherExchange, "rank {} is in {} \"{}\", rank {} in {} \"{}\"")                                                    \
  M(otherTable, "rank {} has other communicators than rank {}")                                                        \
  M(mismatch, "communicator \"{}\": {}, {}")                                                                           \
  M(groupMismatch, "communicator \"{}\": {} in a group of {}, {} in a group of {}")                                    \
  M(noGroup, "rank {} is in no group of communicator \"{}\"")                                                          \
  M(outsideArena, "{}: {} elements of {} do not lie in the arena of {} bytes")                                         \
  M(notAMember, "{}: rank {} is not in communicator {}")                                                               \
  M(otherQueue, "{}: communicator \"{}\" is bound to queue {}, not {}")                                                \
  M(noPeer, "{}: member {} of \"{}\" (size {}) is no peer of member {}")                                               \
  M(inPlaceOnly, "{}: {} is in place only")                                                                            \
  M(countTooLarge, "{}: count {} is too large")                                                                        \
  M(badGroup, "queue {} (of {}) cannot take a group of {} (at most {})")                                               \
  /* lost ranks */                                                                                                     \
  M(lostRank, "rank {}{} {} {}; noticed by {}, after {} s; {}")                                                        \
  M(lostHost, "host {} (rank{} {}) stopped answering {}: its network is down, or rank {} there is stopped; noticed "   \
              "by {}, after {} s; {}")                                                                                 \
  M(waitsForHost, "{}; it is waited for ({})")                                                                         \
  M(restartsSpent, "{}; {} of {} restarts were made (--restart={})")                                                   \
  M(startsAgain, "rank {}{} {} in step {}{}; starting it again{}")                                                     \
  M(startsNoMore, "rank {}{} {} in step {}{}; it is not started again: {} of {} restarts were made (--restart={})")    \
  M(leftAlone, "rank {}{} {} in step {}, without a word")                                                              \
  M(diedThrice, "rank {}{} was lost three times in step {}: it {}")                                                    \
  M(goesOn, "goes on after step {}{}, {} s after {}")                                                                  \
  M(goesOnWithout, "rank {}{} {} in step {}{}; the job goes on without it: {}")                                        \
  M(waitsOutside, "rank {} waits: the job goes on with {} of {} ranks and takes more in at the end of a step")         \
  M(endedWithout, "the job has ended without rank {}, which waited to take part in it again")                          \
  M(noSmallerMember, "; the bundle's family has no member for as few ranks as {}: par-compile --also")                 \
  M(spareTakes, "{} takes the place of rank {}")                                                                       \
  M(placeTaken, "rank {} ({}) comes back too late: a spare has taken its place, and has the newer state")              \
  M(onlySpares, "--spares={} leaves no rank: {} is {}")                                                                \
  M(noProgress, "rank {} has joined its job {} times since step {} and was stopped by a loss each time: {}")           \
  M(restartNeeds, "--restart does not work with {}: {}")                                                               \
  M(silentHost, "host {} (rank{} {}) has been silent for {} s {}; noticed by {}; after {} s {} (--timeout)")           \
  M(lostParent, "par-run (pid {}) stopped answering; noticed by rank {} after {} s")                                   \
  M(deadlocked, "deadlock: {}")                                                                                        \
  M(waits, "rank {} waits in {}, {}, for {}")

enum class Sentence : uint8_t {
#define PAR_COMM_SENTENCE(key, text) key,
  PAR_COMM_SENTENCES(PAR_COMM_SENTENCE)
#undef PAR_COMM_SENTENCE
};

inline constexpr SentenceText sentenceTable[] = {
#define PAR_COMM_SENTENCE(key, text) {#key, text},
    PAR_COMM_SENTENCES(PAR_COMM_SENTENCE)
#undef PAR_COMM_SENTENCE
};
#undef PAR_COMM_SENTENCES

/// The sentence with each `{}` replaced by the next value.
template <typename... Values>
std::string say(Sentence sentence, const Values &...values) {
  std::string_view text = sentenceTable[size_t(sentence)].text;
  std::ostringstream out;
  [[maybe_unused]] auto upTo = [&] {
    size_t at = text.find("{}");
    out << text.substr(0, at);
    text.remove_prefix(at + 2);
  };
  // Names of hosts, variables and launchers come from outside.
  [[maybe_unused]] auto put = [&](const auto &value) {
    if constexpr (std::is_convertible_v<decltype(value), std::string_view>)
      out << format::excerpt(format::printable(std::string(std::string_view(value))));
    else
      out << value;
  };
  ((upTo(), put(values)), ...);
  out << text;
  return out.str();
}

} // namespace par::comm
