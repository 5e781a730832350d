// A job for tests: every rank prints its pid and communicates in steps until it is told to end.
//   par-test-job [-n N] [--comm inproc|shm|tcp|mpi] [--rank R --world N --master H:P] [--ranks N] [--steps N]
//   [--timeout S]
//                [--join-timeout S] [--plan HASH[@RANK]] [--exit CODE@RANK] [--throw TEXT@RANK]
//                [--forget-barrier RANK] [--vanish CODE@RANK]   (ends its process without a word in step 3)
//                [--abort RANK]                (ends its process by a signal in step 3, each time)
//                [--wrote FILE]                (says after the last step that FILE is whole)
//                [--processes N] [--files N]   (limits of the system, to run out of)
//                [--busy S] [--linger S]       (seconds before the first step; after the end of the job)
//                [--pause MS]                  (milliseconds that each step takes at least)
//                [--nohup 1] [--fail TEXT]     (before it joins)
//                [--restart N]                 (-1: as often as ranks are lost; steps go on from what ranks keep)
//                [--shrink S] [--members A,B]  (goes on with A or B ranks where others do not come within S seconds)
//                [--spares K]
//                [--chatty FD] [--errors FD]   (descriptors: rank 0 writes to it in each step; it becomes stderr)
#include "par/comm/job/Ending.h"
#include "par/comm/shared/Output.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

using namespace par;
using namespace par::comm;

namespace {

struct Options {
  Launch launch;
  uint64_t steps = UINT64_MAX;
  std::string plan = "3f9c2aaa", otherPlan;
  int64_t otherPlanRank = -1, exitRank = -1, throwRank = -1, forgetfulRank = -1, vanishingRank = -1, abortingRank = -1;
  int exitCode = 0, vanishCode = 0, busy = 0, pause = 0, linger = 0, chatty = -1;
  std::string thrown, failure, wrote;
};

/// "VALUE@RANK".
std::string splitRank(const std::string &text, int64_t &rank) {
  size_t at = text.find('@');
  rank = at == text.npos ? -1 : std::atoll(text.c_str() + at + 1);
  return text.substr(0, at);
}

void limit(int resource, rlim_t most) {
  // The limit of processes does not hold for root.
  if (resource == RLIMIT_NPROC && getuid() == 0 && setresuid(65534, 65534, 65534) != 0)
    std::abort();
  // Descriptors that the caller of the tests has left open do not count.
  if (resource == RLIMIT_NOFILE)
    close_range(STDERR_FILENO + 1, ~0U, 0);
  rlimit limits{most, most};
  setrlimit(__rlimit_resource(resource), &limits);
}

/// "4,3".
std::vector<uint32_t> numbers(const std::string &text) {
  std::vector<uint32_t> all;
  std::istringstream in(text);
  for (std::string number; std::getline(in, number, ',');)
    all.push_back(uint32_t(std::stoul(number)));
  return all;
}

Options read(int argc, char **argv) {
  Options o;
  o.launch.bundle = "job.par";
  o.launch.bundleRanks = 4;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string flag = argv[i], value = argv[i + 1];
    if (flag == "-n")
      o.launch.n = std::atoi(value.c_str());
    else if (flag == "--comm")
      o.launch.transport = value == "inproc" ? Transport::inproc
                           : value == "tcp"  ? Transport::tcp
                           : value == "mpi"  ? Transport::mpi
                                             : Transport::shm;
    else if (flag == "--rank")
      o.launch.rank = std::atoi(value.c_str());
    else if (flag == "--world")
      o.launch.world = std::atoi(value.c_str());
    else if (flag == "--master")
      o.launch.master = value;
    else if (flag == "--ranks")
      o.launch.bundleRanks = std::atoi(value.c_str());
    else if (flag == "--mesh")
      o.launch.mesh = value;
    else if (flag == "--steps")
      o.steps = std::strtoull(value.c_str(), nullptr, 10);
    else if (flag == "--timeout")
      o.launch.timeout = std::atof(value.c_str());
    else if (flag == "--join-timeout")
      o.launch.joinTimeout = std::atof(value.c_str());
    else if (flag == "--plan")
      o.otherPlan = splitRank(value, o.otherPlanRank);
    else if (flag == "--exit")
      o.exitCode = std::atoi(splitRank(value, o.exitRank).c_str());
    else if (flag == "--throw")
      o.thrown = splitRank(value, o.throwRank);
    else if (flag == "--forget-barrier")
      o.forgetfulRank = std::atoll(value.c_str());
    else if (flag == "--vanish")
      o.vanishCode = std::atoi(splitRank(value, o.vanishingRank).c_str());
    else if (flag == "--abort")
      o.abortingRank = std::atoll(value.c_str());
    else if (flag == "--wrote")
      o.wrote = value;
    else if (flag == "--pause")
      o.pause = std::atoi(value.c_str());
    else if (flag == "--busy")
      o.busy = std::atoi(value.c_str());
    else if (flag == "--linger")
      o.linger = std::atoi(value.c_str());
    else if (flag == "--chatty")
      o.chatty = std::atoi(value.c_str());
    else if (flag == "--errors")
      dup2(std::atoi(value.c_str()), STDERR_FILENO);
    else if (flag == "--restart")
      o.launch.restarts = std::strtoull(value.c_str(), nullptr, 10);
    else if (flag == "--shrink")
      o.launch.shrink = std::atof(value.c_str());
    else if (flag == "--members")
      o.launch.members = numbers(value);
    else if (flag == "--spares")
      o.launch.spares = uint32_t(std::atoi(value.c_str()));
    else if (flag == "--fail")
      o.failure = value;
    else if (flag == "--nohup")
      std::signal(SIGHUP, SIG_IGN);
    else if (flag == "--processes" || flag == "--files")
      limit(flag == "--files" ? RLIMIT_NOFILE : RLIMIT_NPROC, rlim_t(std::atoll(value.c_str())));
  }
  return o;
}

/// One step: an all_reduce over all ranks on queue 0 while a message goes around the ring on queue 1.
void runStep(Control &control, Endpoint &endpoint, uint64_t step) {
  uint32_t rank = control.rank(), world = control.world();
  float *data = reinterpret_cast<float *>(endpoint.arena().data());
  Communication reduce;
  reduce.n = 20000;
  reduce.tag = step;
  reduce.in = reduce.out = data;
  reduce.id = "job/reduce:0";
  Communication send, receive;
  send.op = format::Op::Send;
  receive.op = format::Op::Recv;
  send.communicator = receive.communicator = 1;
  send.peer = (rank + 1) % world;
  receive.peer = (rank + world - 1) % world;
  send.n = receive.n = 1000;
  send.tag = receive.tag = step;
  send.in = data + 20000;
  receive.out = data + 21000;
  send.id = receive.id = "job/ring:1";
  control.at("job/reduce:0");
  Operation reduced = endpoint.post(0, {&reduce, 1});
  Communication both[] = {send, receive};
  Operation passed = endpoint.post(1, both);
  usleep(1000 * (1 + (rank + step) % 3));
  endpoint.wait(reduced);
  control.at("job/ring:1");
  endpoint.wait(passed);
}

/// The last step of this rank that is done, in memory that outlives the process; nullptr without --restart.
uint64_t *keptStep(const Placing &placing, uint32_t rank) {
  if (placing.kept.empty())
    return nullptr;
  int descriptor = placing.kept[rank];
  if (ftruncate(descriptor, sizeof(uint64_t)) != 0)
    std::abort();
  return static_cast<uint64_t *>(mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0));
}

/// The last step that all ranks have done, but for those that have come again to a job that shrinks.
uint64_t doneByAll(Control &control, uint64_t *kept, bool shrinks) {
  uint64_t done = UINT64_MAX;
  for (const std::string &text : control.allGather("kept", kept ? std::to_string(*kept) : "0"))
    if (uint64_t step = std::strtoull(text.c_str(), nullptr, 10); step || !shrinks)
      done = std::min<uint64_t>(done, step);
  done = done == UINT64_MAX ? 0 : done;
  if (shrinks)
    *kept = done;
  return done;
}

/// In an attempt of fewer ranks: ends it where others have come again.
void growIfPossible(Control &control) {
  Placing placing = control.placing();
  if (control.world() < placing.started && control.broadcast("grows", placing.mayGrow() ? "1" : "") == "1") {
    control.barrier("regroup");
    placing.regroup();
  }
}

/// "rank 2 pid 71" at the begin of an attempt; "rank 2 runs as 71" once it has made a step.
void sayRank(const Control &control, const char *what) {
  std::printf("rank %u %s %d\n", control.rank(), what, int(getpid()));
  std::fflush(stdout);
}

int rankMain(Control &control, const Options &o) {
  sayRank(control, "pid");
  Hello hello;
  hello.format = "1.0";
  hello.planHash = int64_t(control.rank()) == o.otherPlanRank ? o.otherPlan : o.plan;
  hello.bundleHash = "b0b0b0b0";
  hello.coordinates = "dp " + std::to_string(control.rank());
  control.meet(hello);
  if (int64_t(control.rank()) == o.exitRank)
    return o.exitCode;
  if (int64_t(control.rank()) == o.throwRank)
    throw std::runtime_error(o.thrown);
  // A sleep that signals do not end.
  for (timespec rest{o.busy, 0}; nanosleep(&rest, &rest) != 0;)
    ;
  Members all{"all", {}}, ring{"ring", {}};
  for (uint32_t rank = 0; rank < control.world(); ++rank) {
    all.ranks.push_back(rank);
    ring.ranks.push_back(rank);
  }
  std::unique_ptr<Endpoint> endpoint = control.connect(std::vector<Members>{all, ring}, 1 << 17);
  if (int64_t(control.rank()) == o.forgetfulRank)
    control.gather("loss", "1.5");
  control.barrier("start");
  control.entry("train");
  uint64_t *kept = keptStep(control.placing(), control.rank());
  uint64_t step = 1 + doneByAll(control, kept, o.launch.shrink.has_value());
  bool first = true;
  for (; step <= o.steps && control.startStep(step); ++step) {
    usleep(useconds_t(o.pause) * 1000);
    runStep(control, *endpoint, step);
    if (std::exchange(first, false))
      sayRank(control, "runs as");
    if (int64_t(control.rank()) == o.vanishingRank && step == 3)
      _exit(o.vanishCode);
    if (int64_t(control.rank()) == o.abortingRank && step == 3)
      std::abort();
    if (kept)
      *kept = step;
    growIfPossible(control);
    if (control.rank() == 0 && o.chatty >= 0)
      writeOutput(o.chatty, std::string(999, 'x') + "\n");
    if (control.rank() == 0 && step % 20 == 0)
      control.saved("ckpt/" + std::to_string(step));
  }
  if (control.rank() == 0 && !o.wrote.empty())
    control.wrote(o.wrote);
  std::string last = control.broadcast("last step", std::to_string(step - 1));
  if (last != std::to_string(step - 1))
    throw std::runtime_error("rank 0 ended after step " + last + ", this one after " + std::to_string(step - 1));
  if (control.rank() == 0)
    std::printf("%s after step %s\n", control.stopped() ? "stopped" : "done", last.c_str());
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  Options options = read(argc, argv);
  if (!options.failure.empty()) {
    std::fprintf(stderr, "%s\n", options.failure.c_str());
    tellOthers(options.launch, *placeOfProcess(options.launch), options.failure);
    return 1;
  }
  int code = run(options.launch, [&](Control &control) { return rankMain(control, options); });
  if (options.linger) {
    std::printf("lingers\n");
    std::fflush(stdout);
    sleep(unsigned(options.linger));
  }
  return code;
}
