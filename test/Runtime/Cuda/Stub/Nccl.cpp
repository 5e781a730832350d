// libnccl-stub.so: communicators between the ranks of one process, or of processes (NcclConnection.h), on the streams
// of the imagined GPU. Each rank has one engine: its operations, of all communicators, begin in launch order (launch
// order implicit), and each is a rendezvous without buffers. A deadlock under that order is a deadlock here.
#include "NcclConnection.h"
#include "par/format/Program.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace par;
using namespace par::stub;

namespace {

constexpr int invalidArgument = 4, invalidUsage = 5, inProgress = 7;

/// One rank's engine: operations begin in the order of their numbers.
struct Engine {
  uint64_t issued = 0, finished = 0;
};

struct Group;
/// One split of a communicator: members that have called it, and the result when all have.
struct Split {
  std::vector<int> colors;
  std::map<int, std::shared_ptr<Group>> made;
};

/// Shared state of a communicator's members.
struct Group {
  std::string name;
  int size = 0;
  std::vector<bool> joined;
  bool aborted = false;
  uint64_t number = 1;                               ///< by which the ranks' processes know it
  std::map<uint64_t, std::shared_ptr<Split>> splits; ///< by number
};

} // namespace

struct par::stub::Comm {
  std::shared_ptr<Group> group; ///< of a split under way: none yet
  int rank = 0;
  std::shared_ptr<Engine> engine;
  uint64_t collectives = 0;
  std::map<std::pair<int, int>, uint64_t> transfers;
  int error = 0, answers = 0;
  uint64_t splits = 0;
  std::shared_ptr<Split> from = nullptr;
  int color = 0;
  uint64_t parent = 0;                            ///< the number of the group that was split
  std::shared_ptr<RootConnection> root = nullptr; ///< among ranks that are processes
  bool aborted = false;
};

namespace {

std::map<std::string, std::shared_ptr<Group>> worlds;
std::map<std::pair<Group *, std::string>, std::shared_ptr<Match>> matches;
std::set<Comm *> comms;
thread_local int depth = 0;
thread_local std::vector<std::pair<Stream *, Part>> pending;

/// One launch: parts that begin together, on one stream.
struct Operation {
  std::vector<Part> parts;
  std::vector<std::shared_ptr<Match>> on; ///< among ranks of this process
  std::vector<std::string> keys;
  std::vector<size_t> wanted;
  std::vector<uint64_t> sent; ///< among ranks that are processes
  std::shared_ptr<Engine> engine;
  uint64_t number = 0;
  bool arrived = false, hangs = false;
};

/// A send to oneself has both sides in one member.
int sideOf(const Part &part) { return part.kind == "send" ? 0 : part.kind == "recv" ? 1 : part.comm->rank; }

/// Among ranks of this process: whether all sides are there.
bool meet(Operation &operation) {
  for (size_t i = 0; i < operation.parts.size() && !operation.arrived; ++i)
    operation.on[i]->sides[sideOf(operation.parts[i])] = operation.parts[i];
  bool all = true;
  for (size_t i = 0; i < operation.parts.size(); ++i) {
    Match &match = *operation.on[i];
    if (!match.done && match.sides.size() == operation.wanted[i]) {
      perform(match);
      match.done = true;
    }
    all &= match.done;
  }
  return all;
}

/// Among ranks that are processes: whether all results have come.
bool exchange(Operation &operation) {
  RootConnection &root = *operation.parts.front().comm->root;
  for (size_t i = 0; i < operation.parts.size() && !operation.arrived; ++i) {
    const Part &part = operation.parts[i];
    operation.sent.push_back(
        root.send(part.comm->group->number, operation.keys[i], operation.wanted[i], sideOf(part), part));
  }
  for (uint64_t number : operation.sent)
    if (!root.result(number))
      return false;
  for (size_t i = 0; i < operation.parts.size(); ++i) {
    const std::string &result = *root.result(operation.sent[i]);
    std::copy(result.begin(), result.end(), operation.parts[i].out);
    root.forget(operation.sent[i]);
  }
  return true;
}

bool ready(Operation &operation) {
  for (const Part &part : operation.parts)
    if (part.comm->aborted) { // it ends without having done anything
      operation.engine->finished = std::max(operation.engine->finished, operation.number);
      return true;
    } else if (part.comm->group->aborted) {
      return false;
    }
  if (operation.hangs || operation.engine->finished + 1 != operation.number)
    return false;
  bool all = byTcp() ? exchange(operation) : meet(operation);
  operation.arrived = true;
  operation.engine->finished += all;
  return all;
}

void launch(Machine &machine, Stream *stream, std::vector<Part> parts) {
  auto operation = std::make_shared<Operation>();
  operation->engine = parts.front().comm->engine;
  operation->number = ++operation->engine->issued;
  for (Part &part : parts) {
    Comm &comm = *part.comm;
    std::string key;
    if (part.kind == "send" || part.kind == "recv") {
      std::pair<int, int> way = part.kind == "send" ? std::pair(comm.rank, part.peer) : std::pair(part.peer, comm.rank);
      // Both sides of a way to oneself are counted apart.
      uint64_t number = ++comm.transfers[part.kind == "send" ? way : std::pair(-1 - way.first, way.second)];
      key = std::to_string(way.first) + ">" + std::to_string(way.second) + "#" + std::to_string(number);
      operation->wanted.push_back(2);
    } else {
      key = "#" + std::to_string(++comm.collectives);
      operation->wanted.push_back(static_cast<size_t>(comm.group->size));
    }
    operation->keys.push_back(key);
    std::shared_ptr<Match> &match = matches[{comm.group.get(), key}];
    if (!match)
      match = std::make_shared<Match>();
    operation->on.push_back(match);
  }
  operation->parts = std::move(parts);
  uint64_t number = ++machine.communications;
  operation->hangs = machine.injection.call == "hang" && number == machine.injection.after;
  if (machine.injection.call == "nccl" && number == machine.injection.after)
    for (Comm *comm : comms)
      comm->error = machine.injection.code;
  machine.enqueue(*stream, {[operation] { return ready(*operation); }, [operation] {}});
}

/// Notes and collects; launched at once outside of a group.
int post(Stream *stream, Part part) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  if (int injected = machine.note(part.kind == "send"   ? "ncclSend"
                                  : part.kind == "recv" ? "ncclRecv"
                                                        : part.kind,
                                  part.comm->group->name + " member " + std::to_string(part.comm->rank) + " n " +
                                      std::to_string(part.n) + " type " + std::to_string(part.type) + " op " +
                                      std::to_string(part.op) + " peer " + std::to_string(part.peer) + " stream " +
                                      std::to_string(stream->id)))
    return injected;
  if (part.peer < 0 || part.peer >= part.comm->group->size || !machine.streams.count(stream))
    return invalidArgument;
  size_t bytes = part.n * sizeOf(part.type);
  if ((part.in && machine.checkRange(reinterpret_cast<uint64_t>(part.in), bytes)) ||
      (part.out && machine.checkRange(reinterpret_cast<uint64_t>(part.out), bytes)))
    return invalidArgument;
  if (depth > 0)
    pending.push_back({stream, part});
  else
    launch(machine, stream, {part});
  return 0;
}

std::shared_ptr<Group> makeGroup(std::string name, int size) {
  auto group = std::make_shared<Group>();
  group->name = std::move(name);
  group->size = size;
  group->joined.resize(static_cast<size_t>(size));
  return group;
}

/// Among ranks of this process: gives a split its group when all have called.
void settleHere(Comm &comm) {
  auto made = comm.from->made.find(comm.color);
  if (made != comm.from->made.end())
    comm.group = made->second;
}

/// Among ranks that are processes.
void settleByTcp(Comm &comm) {
  std::optional<RootConnection::Made> made = comm.root->made(comm.parent, comm.splits);
  if (!made)
    return;
  comm.group = makeGroup(made->name, made->size);
  comm.group->number = made->group;
  comm.splits = 0;
}

/// 0, inProgress or an error.
int stateOf(Comm &comm) {
  if (int error = byTcp() ? comm.root->error() : 0)
    return error;
  if (!comm.group) {
    byTcp() ? settleByTcp(comm) : settleHere(comm);
    return comm.group ? 0 : inProgress;
  }
  auto &joined = comm.group->joined;
  bool all = comm.group->name != "world" || (byTcp() ? comm.root->made(0, 0).has_value()
                                                     : std::find(joined.begin(), joined.end(), false) == joined.end());
  return comm.error ? comm.error : !all || comm.answers > 0 ? inProgress : 0;
}

/// ncclConfig_t's begin.
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking, others[3];
  const char *net;
  int splitShare;
};

} // namespace

extern "C" {

int ncclGetVersion(int *version) {
  const char *text = std::getenv("PAR_STUB_NCCL_VERSION");
  *version = text ? std::atoi(text) : 22809;
  return 0;
}

int ncclGetUniqueId(char *id) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  static uint64_t made = 0;
  std::memset(id, 0, 128);
  std::strcpy(id, byTcp() ? listenAsRoot().c_str() : ("stub" + std::to_string(++made)).c_str());
  return machine.note("ncclGetUniqueId", "");
}

struct NcclIdBytes {
  char bytes[128];
};
int ncclCommInitRankConfig(Comm **comm, int ranks, NcclIdBytes id, int rank, Config *config) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  const char *order = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT"), *connect = std::getenv("NCCL_RUNTIME_CONNECT");
  if (int injected = machine.note("ncclCommInitRankConfig", std::to_string(rank) + " of " + std::to_string(ranks)))
    return injected;
  if (!order || *order != '1' || !connect || *connect != '0' || config->magic != 0xcafebeef)
    return invalidUsage;
  std::shared_ptr<Group> &world = worlds[id.bytes];
  if (!world)
    world = makeGroup("world", ranks);
  world->joined[static_cast<size_t>(rank)] = true;
  *comm = new Comm{world, rank, std::make_shared<Engine>()};
  if (byTcp())
    (*comm)->root = RootConnection::join(id.bytes, rank, ranks);
  (*comm)->answers = config->blocking ? 0 : 2; // twice "in progress"
  comms.insert(*comm);
  machine.changed.notify_all();
  return config->blocking ? 0 : inProgress;
}

int ncclCommSplit(Comm *comm, int color, int key, Comm **made, Config *config) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  if (int injected = machine.note("ncclCommSplit", comm->group->name + " color " + std::to_string(color) + " key " +
                                                       std::to_string(key)))
    return injected;
  if (config->splitShare != 0)
    return invalidUsage;
  // The last of all members makes the groups; the others learn of it when they ask how it went.
  static uint64_t count = 0;
  std::shared_ptr<Split> &split = comm->group->splits[++comm->splits];
  if (!split)
    split = std::make_shared<Split>();
  split->colors.push_back(color);
  *made = nullptr;
  if (color >= 0) {
    *made = new Comm{nullptr, key, comm->engine};
    (*made)->from = split;
    (*made)->color = color;
    (*made)->parent = comm->group->number;
    (*made)->splits = comm->splits;
    (*made)->root = comm->root;
    comms.insert(*made);
  }
  if (byTcp())
    comm->root->split(comm->group->number, comm->splits, color, key);
  if (static_cast<int>(split->colors.size()) == comm->group->size) {
    std::map<int, int> sizes;
    for (int theirs : split->colors)
      ++sizes[theirs];
    for (auto [theirs, size] : sizes)
      split->made[theirs] = makeGroup("split" + std::to_string(++count) + "/" + std::to_string(theirs), size);
    machine.changed.notify_all();
  }
  return config->blocking || color < 0 ? 0 : inProgress;
}

int ncclCommAbort(Comm *comm) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  machine.note("ncclCommAbort", comm->group ? comm->group->name : "");
  if (!comms.erase(comm))
    return invalidArgument;
  comm->aborted = true;
  if (comm->group)
    comm->group->aborted = true;
  if (comm->root && comm->group && comm->group->name == "world")
    comm->root->leave();
  machine.changed.notify_all();
  return 0;
}

int ncclCommFinalize(Comm *comm) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  return machine.note("ncclCommFinalize", comm->group->name);
}

int ncclCommDestroy(Comm *comm) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  machine.note("ncclCommDestroy", comm->group->name);
  if (byTcp() && comm->group->name == "world") {
    comm->root->finish(held);
    comm->root->leave();
  }
  return comms.erase(comm) ? 0 : invalidArgument;
}

int ncclCommGetAsyncError(Comm *comm, int *error) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  *error = stateOf(*comm);
  if (comm->group)
    comm->answers -= comm->answers > 0;
  return 0;
}

const char *ncclGetErrorString(int code) {
  return code == 6   ? "remote process exited or there was a network error"
         : code == 2 ? "unhandled system error"
                     : "invalid usage";
}
const char *ncclGetLastError(Comm *) { return "stub: peer closed the connection"; }

int ncclGroupStart() {
  ++depth;
  return 0;
}

int ncclGroupEnd() {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  if (depth == 0)
    return invalidUsage;
  if (--depth > 0 || pending.empty())
    return 0;
  int answer = machine.note("ncclGroupEnd", std::to_string(pending.size()));
  std::vector<Part> parts;
  Stream *stream = pending.front().first;
  for (auto &[on, part] : pending) {
    if (on != stream)
      return invalidUsage;
    parts.push_back(part);
  }
  pending.clear();
  if (!answer)
    launch(machine, stream, std::move(parts));
  return answer;
}

int ncclAllReduce(const char *in, char *out, size_t n, int type, int op, Comm *comm, Stream *stream) {
  return post(stream, {comm, "ncclAllReduce", in, out, n, type, op, 0});
}
int ncclBroadcast(const char *in, char *out, size_t n, int type, int root, Comm *comm, Stream *stream) {
  return post(stream, {comm, "ncclBroadcast", in, out, n, type, 0, root});
}
int ncclReduce(const char *in, char *out, size_t n, int type, int op, int root, Comm *comm, Stream *stream) {
  return post(stream, {comm, "ncclReduce", in, out, n, type, op, root});
}
int ncclAllGather(const char *in, char *out, size_t n, int type, Comm *comm, Stream *stream) {
  return post(stream, {comm, "ncclAllGather", in, out, n, type, 0, 0});
}
int ncclReduceScatter(const char *in, char *out, size_t n, int type, int op, Comm *comm, Stream *stream) {
  return post(stream, {comm, "ncclReduceScatter", in, out, n, type, op, 0});
}
int ncclSend(const char *in, size_t n, int type, int peer, Comm *comm, Stream *stream) {
  return post(stream, {comm, "send", in, nullptr, n, type, 0, peer});
}
int ncclRecv(char *out, size_t n, int type, int peer, Comm *comm, Stream *stream) {
  return post(stream, {comm, "recv", nullptr, out, n, type, 0, peer});
}

} // extern "C"
