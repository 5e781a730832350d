// libnccl-stub.so: communicators between the ranks of one process, on the streams of the imagined GPU. Each rank has
// one engine: its operations, of all communicators, begin in launch order (launch order implicit), and each is a
// rendezvous without buffers. A deadlock under that order is a deadlock here.
#include "Machine.h"
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
  std::map<uint64_t, std::shared_ptr<Split>> splits; ///< by number
};

struct Comm {
  std::shared_ptr<Group> group; ///< of a split under way: none yet
  int rank = 0;
  std::shared_ptr<Engine> engine;
  uint64_t collectives = 0;
  std::map<std::pair<int, int>, uint64_t> transfers;
  int error = 0, answers = 0;
  uint64_t splits = 0;
  std::shared_ptr<Split> from = nullptr;
  int color = 0;
};

struct Part {
  Comm *comm = nullptr;
  std::string kind;
  const char *in = nullptr;
  char *out = nullptr;
  size_t n = 0;
  int type = 0, op = 0, peer = 0;
};

/// The members' sides of one communication.
struct Match {
  std::map<int, Part> sides;
  bool done = false;
};

std::map<std::string, std::shared_ptr<Group>> worlds;
std::map<std::pair<Group *, std::string>, std::shared_ptr<Match>> matches;
std::set<Comm *> comms;
thread_local int depth = 0;
thread_local std::vector<std::pair<Stream *, Part>> pending;
thread_local std::shared_ptr<Engine> engineOfThread;

size_t sizeOf(int type) { return type <= 1 ? 1 : type <= 3 || type == 7 ? 4 : type == 6 || type == 9 ? 2 : 8; }

template <typename T>
void combine(T *to, const T *from, size_t n, int op) {
  for (size_t i = 0; i < n; ++i)
    to[i] = op == 0   ? to[i] + from[i]
            : op == 1 ? to[i] * from[i]
            : op == 2 ? std::max(to[i], from[i])
                      : std::min(to[i], from[i]);
}

void combine(char *to, const char *from, size_t n, int type, int op) {
  if (type == 7)
    combine(reinterpret_cast<float *>(to), reinterpret_cast<const float *>(from), n, op);
  else if (type == 8)
    combine(reinterpret_cast<double *>(to), reinterpret_cast<const double *>(from), n, op);
  else if (type == 4)
    combine(reinterpret_cast<int64_t *>(to), reinterpret_cast<const int64_t *>(from), n, op);
  else if (type == 2)
    combine(reinterpret_cast<int32_t *>(to), reinterpret_cast<const int32_t *>(from), n, op);
}

/// The members' operands, in their order, added up.
std::string sum(const Match &match, size_t bytes) {
  std::string total;
  for (const auto &[member, side] : match.sides)
    if (total.empty())
      total.assign(side.in, bytes);
    else
      combine(total.data(), side.in, bytes / sizeOf(side.type), side.type, side.op);
  return total;
}

void perform(Match &match) {
  const Part &any = match.sides.begin()->second;
  size_t bytes = any.n * sizeOf(any.type), members = match.sides.size();
  if (any.kind == "send" || any.kind == "recv") {
    const Part *from = nullptr, *to = nullptr;
    for (auto &[member, side] : match.sides)
      (side.kind == "send" ? from : to) = &side;
    std::memcpy(to->out, from->in, bytes);
  } else if (any.kind == "ncclAllReduce" || any.kind == "ncclReduce") {
    std::string total = sum(match, bytes);
    for (auto &[member, side] : match.sides)
      if (any.kind == "ncclAllReduce" || member == side.peer)
        std::memcpy(side.out, total.data(), bytes);
  } else if (any.kind == "ncclReduceScatter") {
    std::string total = sum(match, bytes * members);
    for (auto &[member, side] : match.sides)
      std::memcpy(side.out, total.data() + static_cast<size_t>(member) * bytes, bytes);
  } else if (any.kind == "ncclAllGather") {
    std::string all;
    for (auto &[member, side] : match.sides)
      all.append(side.in, bytes);
    for (auto &[member, side] : match.sides)
      std::memcpy(side.out, all.data(), all.size());
  } else if (any.kind == "ncclBroadcast") {
    std::string value(match.sides.at(any.peer).in, bytes);
    for (auto &[member, side] : match.sides)
      std::memcpy(side.out, value.data(), bytes);
  }
  match.done = true;
}

/// One launch: parts that begin together, on one stream.
struct Operation {
  std::vector<Part> parts;
  std::vector<std::shared_ptr<Match>> on;
  std::vector<size_t> wanted;
  std::shared_ptr<Engine> engine;
  uint64_t number = 0;
  bool arrived = false, hangs = false;
};

bool ready(Operation &operation) {
  for (const Part &part : operation.parts)
    if (part.comm->group->aborted)
      return false;
  if (operation.hangs || operation.engine->finished + 1 != operation.number)
    return false;
  for (size_t i = 0; i < operation.parts.size() && !operation.arrived; ++i) {
    Part &part = operation.parts[i];
    bool transfer = part.kind == "send" || part.kind == "recv";
    // A send to oneself has both sides in one member.
    int side = transfer ? (part.kind == "send" ? 0 : 1) : part.comm->rank;
    operation.on[i]->sides[side] = part;
  }
  operation.arrived = true;
  bool all = true;
  for (size_t i = 0; i < operation.parts.size(); ++i) {
    Match &match = *operation.on[i];
    if (!match.done && match.sides.size() == operation.wanted[i])
      perform(match);
    all &= match.done;
  }
  if (all)
    ++operation.engine->finished;
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
  std::strcpy(id, ("stub" + std::to_string(++made)).c_str());
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
  engineOfThread = std::make_shared<Engine>();
  *comm = new Comm{world, rank, engineOfThread};
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
    comms.insert(*made);
  }
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
  if (comm->group)
    comm->group->aborted = true;
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
  return comms.erase(comm) ? 0 : invalidArgument;
}

int ncclCommGetAsyncError(Comm *comm, int *error) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  if (!comm->group) {
    auto made = comm->from->made.find(comm->color);
    *error = made == comm->from->made.end() ? inProgress : 0;
    if (*error == 0)
      comm->group = made->second;
    return 0;
  }
  auto &joined = comm->group->joined;
  bool all = comm->group->name != "world" || std::find(joined.begin(), joined.end(), false) == joined.end();
  *error = comm->error ? comm->error : !all || comm->answers > 0 ? inProgress : 0;
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
