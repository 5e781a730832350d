// The imagined GPU of the stub CUDA libraries. Work waits in queues and is done as late as allowed, in a seeded order:
// a missing wait gives a wrong number.
#include "Machine.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>

// Weak: of the OpenMP library that oneDNN brings.
extern "C" void omp_set_num_threads(int) __attribute__((weak));

namespace par::stub {

namespace {

constexpr int errorIllegalAddress = 700, captureUnsupported = 900, captureMerge = 902, captureUnmatched = 903,
              captureUnjoined = 904, captureIsolation = 905;

thread_local std::string threadName;

uint64_t numberOf(const char *variable, uint64_t otherwise) {
  const char *text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

Machine::Injection injectionOf(const std::string &text) {
  Machine::Injection injection;
  size_t first = text.find(':'), second = text.find(':', first + 1);
  if (first == std::string::npos)
    return injection;
  injection.call = text.substr(0, first);
  injection.after = std::strtoull(text.c_str() + first + 1, nullptr, 10);
  injection.code = second == std::string::npos ? 0 : std::atoi(text.c_str() + second + 1);
  return injection;
}

} // namespace

Machine &Machine::get() {
  static Machine machine;
  static bool configured = (machine.configure(), true);
  (void)configured;
  return machine;
}

void Machine::configure() {
  const char *failure = std::getenv("PAR_STUB_FAIL"), *file = std::getenv("PAR_STUB_LOG");
  injection = injectionOf(failure ? failure : "");
  logFile = file ? file : "";
  random.seed(numberOf("PAR_STUB_SEED", 1));
  devices = static_cast<int>(numberOf("PAR_STUB_DEVICES", 8));
  version = static_cast<int>(numberOf("PAR_STUB_VERSION", 13000));
  sm = static_cast<int>(numberOf("PAR_STUB_SM", 90));
  memory = numberOf("PAR_STUB_MEMORY", uint64_t(1) << 32);
  registerBuiltins(*this);
  if (const char *bundle = std::getenv("PAR_STUB_BUNDLE"))
    registerGenerated(*this, bundle);
}

void Machine::reset(const std::string &failure, uint64_t seed) {
  auto held = lock();
  injection = injectionOf(failure);
  random.seed(seed);
  counts.clear();
  log.clear();
  done = communications = extra = 0;
  fastest = 2, sumTakes = 0, slowEngine = -1;
  sumsBeside = true;
  failed = 0;
}

void Machine::nameThread(const std::string &name) { threadName = name; }

std::vector<Call> Machine::calls(const std::string &rank) {
  auto held = lock();
  std::vector<Call> wanted;
  for (const Call &call : log)
    if (rank.empty() || call.rank == rank)
      wanted.push_back(call);
  return wanted;
}

void Machine::kernel(const std::string &name, size_t parameters, Kernel kernel) {
  auto held = lock();
  kernels[name] = {parameters, std::move(kernel)};
}

int Machine::note(const std::string &name, const std::string &arguments) {
  log.push_back({threadName, name, arguments});
  if (!logFile.empty())
    std::ofstream(logFile, std::ios::app) << "{\"rank\": \"" << threadName << "\", \"call\": \"" << name
                                          << "\", \"arguments\": \"" << arguments << "\"}\n";
  changed.notify_all();
  return injection.call == name && ++counts[name] == injection.after ? injection.code : 0;
}

void Machine::enqueue(Stream &stream, Work work) {
  if (!stream.capture) {
    stream.work.push_back(std::move(work));
    return;
  }
  if (work.ready) // waits for other ranks do not belong into a graph
    stream.capture->status = captureUnsupported;
  stream.capture->nodes.push_back({std::move(work.run), stream.tail});
  stream.tail = {stream.capture->nodes.size() - 1};
}

void Machine::record(Event &event, Stream &stream) {
  event.capture = stream.capture;
  event.tail = stream.tail;
  event.reached = nullptr;
  if (stream.capture)
    return;
  event.reached = std::make_shared<bool>(false);
  if (event.time)
    event.time = std::make_shared<uint64_t>(0);
  enqueue(stream, {nullptr, [this, reached = event.reached, time = event.time] {
                     *reached = true;
                     if (time)
                       *time = done + extra;
                   }});
}

int Machine::wait(Stream &stream, Event &event) {
  if (event.capture) {
    if (stream.capture && stream.capture != event.capture)
      return captureMerge;
    stream.capture = event.capture;
    stream.capture->members.insert(&stream);
    stream.tail.insert(stream.tail.end(), event.tail.begin(), event.tail.end());
    return 0;
  }
  if (stream.capture) {
    stream.capture->status = captureIsolation;
    return captureIsolation;
  }
  if (event.reached)
    enqueue(stream, {[reached = event.reached] { return *reached; }, nullptr});
  return 0;
}

int Machine::beginCapture(Stream &stream) {
  if (stream.capture)
    return captureUnsupported;
  stream.capture = std::make_shared<Capture>();
  stream.capture->origin = &stream;
  stream.capture->members = {&stream};
  stream.tail.clear();
  return 0;
}

int Machine::endCapture(Stream &stream, Graph *&graph) {
  std::shared_ptr<Capture> capture = stream.capture;
  if (!capture || capture->origin != &stream)
    return captureUnmatched;
  // Everything that was captured must come before the origin's last node.
  std::vector<bool> before(capture->nodes.size());
  std::vector<size_t> open = stream.tail;
  while (!open.empty()) {
    size_t node = open.back();
    open.pop_back();
    if (before[node])
      continue;
    before[node] = true;
    open.insert(open.end(), capture->nodes[node].after.begin(), capture->nodes[node].after.end());
  }
  int status = capture->status;
  for (Stream *member : capture->members) {
    for (size_t node : member->tail)
      if (!before[node] && !status)
        status = captureUnjoined;
    member->capture = nullptr;
    member->tail.clear();
  }
  if (!status)
    graph = new Graph{capture->nodes};
  return status;
}

void Machine::launch(const Graph &graph, Stream &stream) {
  enqueue(stream, {nullptr, [this, nodes = graph.nodes] {
                     std::vector<bool> ran(nodes.size());
                     for (size_t left = nodes.size(); left > 0; --left) {
                       std::vector<size_t> open;
                       for (size_t i = 0; i < nodes.size(); ++i)
                         if (!ran[i] && std::all_of(nodes[i].after.begin(), nodes[i].after.end(),
                                                    [&](size_t other) { return ran[other]; }))
                           open.push_back(i);
                       size_t chosen = open[random() % open.size()];
                       if (nodes[chosen].run)
                         nodes[chosen].run();
                       ran[chosen] = true;
                     }
                   }});
}

bool Machine::step() {
  if (failed || (injection.call == "stall" && done >= injection.after))
    return false;
  std::vector<Stream *> open;
  for (Stream *stream : streams)
    if (!stream->work.empty())
      open.push_back(stream);
  // By number, as addresses differ from run to run.
  std::sort(open.begin(), open.end(), [](Stream *a, Stream *b) { return a->id < b->id; });
  std::shuffle(open.begin(), open.end(), random);
  for (Stream *stream : open) {
    Work &head = stream->work.front();
    if (head.ready && !head.ready())
      continue;
    auto run = std::move(head.run);
    stream->work.pop_front();
    ++done;
    if (injection.call == "work" && done == injection.after)
      failed = injection.code;
    else if (run) {
      // One thread: several spin at their barriers while other programs want the cores.
      if (omp_set_num_threads)
        omp_set_num_threads(1);
      run();
    }
    changed.notify_all();
    return true;
  }
  return false;
}

void Machine::drive(std::unique_lock<std::mutex> &held, const std::function<bool()> &done) {
  while (!failed && !done())
    if (!step())
      changed.wait_for(held, std::chrono::milliseconds(5));
}

int Machine::checkRange(uint64_t address, uint64_t bytes) const {
  auto block = blocks.upper_bound(address);
  if (block == blocks.begin())
    return errorIllegalAddress;
  --block;
  return address + bytes <= block->first + block->second ? 0 : errorIllegalAddress;
}

uint64_t Machine::allocate(uint64_t bytes, bool onDevice) {
  if (onDevice && used + bytes > memory)
    return 0;
  used += onDevice ? bytes : 0;
  void *block = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  // Fresh memory of a GPU holds whatever was there.
  std::memset(block, 0xa5, bytes);
  auto address = reinterpret_cast<uint64_t>(block);
  blocks[address] = bytes;
  return address;
}

bool Machine::release(uint64_t address) {
  auto block = blocks.find(address);
  if (block == blocks.end())
    return false;
  used -= std::min(used, block->second);
  std::free(reinterpret_cast<void *>(address));
  blocks.erase(block);
  return true;
}

} // namespace par::stub
