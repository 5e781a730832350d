// libcuda-stub.so: the driver's entry points that the runtime uses, on Machine. Each checks the driver's conditions,
// and a few more: sizes, known memory, live handles, no synchronisation during a capture.
#include "Machine.h"

#include <cstdlib>
#include <cstring>
#include <sstream>

using namespace par::stub;

namespace {

constexpr int invalidValue = 1, outOfMemory = 2, notInitialised = 3, noDevice = 100, invalidDevice = 101,
              invalidImage = 200, invalidContext = 201, invalidHandle = 400, notFound = 500, notReady = 600,
              captureUnsupported = 900;

thread_local bool hasContext = false;

struct Loaded {
  std::string text;
};
struct Entry {
  std::string name;
  size_t parameters = 0;
  bool counted = false; ///< whether `parameters` is known
};

std::set<Event *> events;
std::set<Loaded *> modules;
std::set<Entry *> functions;
std::set<Graph *> graphs, executables;

template <typename... Values>
std::string with(const Values &...values) {
  std::ostringstream out;
  ((out << (out.tellp() > 0 ? " " : "") << values), ...);
  return out.str();
}

/// The machine's GPUs that this process sees, as CUDA_VISIBLE_DEVICES says.
std::vector<int> visible() {
  std::vector<int> gpus;
  const char *list = std::getenv("CUDA_VISIBLE_DEVICES");
  std::istringstream given(list ? list : "");
  for (std::string number; std::getline(given, number, ',');)
    gpus.push_back(std::atoi(number.c_str()));
  for (int gpu = 0; !list && gpu < Machine::get().devices; ++gpu)
    gpus.push_back(gpu);
  return gpus;
}

std::string hostName() {
  const char *given = std::getenv("PAR_HOST");
  return given ? given : "stub";
}

std::string hex(uint64_t value) {
  std::ostringstream out;
  out << std::hex << value;
  return out.str();
}

/// Begin of most calls: note the call, then return an earlier error.
#define PAR_ENTER(NAME, ...)                                                                                           \
  Machine &machine = Machine::get();                                                                                   \
  auto held = machine.lock();                                                                                          \
  if (int injected = machine.note(NAME, with(__VA_ARGS__)))                                                            \
    return injected;                                                                                                   \
  if (!machine.initialised)                                                                                            \
    return notInitialised;                                                                                             \
  if (!hasContext)                                                                                                     \
    return invalidContext;                                                                                             \
  if (int failed = machine.deviceStatus())                                                                             \
    return failed;

#define PAR_KNOWN(SET, HANDLE)                                                                                         \
  if (!SET.count(HANDLE))                                                                                              \
    return invalidHandle;

/// Copies and fills: the host's memory is read when the work is done, as pinned memory is.
int move(Machine &machine, Stream *stream, uint64_t to, uint64_t from, size_t bytes, bool toKnown, bool fromKnown) {
  if ((toKnown && machine.checkRange(to, bytes)) || (fromKnown && machine.checkRange(from, bytes)))
    return invalidValue;
  machine.enqueue(*stream, {nullptr, [=] {
                              std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
                            }});
  return 0;
}

template <typename T>
int set(Machine &machine, Stream *stream, uint64_t to, T value, size_t pitch, size_t width, size_t height) {
  if (to % sizeof(T) || machine.checkRange(to, height ? (height - 1) * pitch + width * sizeof(T) : 0))
    return invalidValue;
  machine.enqueue(*stream, {nullptr, [=] {
                              for (size_t row = 0; row < height; ++row)
                                for (size_t i = 0; i < width; ++i)
                                  std::memcpy(reinterpret_cast<char *>(to) + row * pitch + i * sizeof(T), &value,
                                              sizeof(T));
                            }});
  return 0;
}

/// Parameters of an entry of PTX text; nothing where the image is no text.
bool countParameters(const std::string &text, const std::string &name, size_t &count, bool &found) {
  count = 0;
  if (text.find(".version") == std::string::npos)
    return false;
  size_t at = 0;
  for (found = false; !found && (at = text.find(".entry " + name, at)) != std::string::npos;) {
    at += 7 + name.size();
    size_t next = text.find_first_not_of(" \n\t", at);
    found = next != std::string::npos && (text[next] == '(' || text[next] == '{');
  }
  if (!found)
    return true;
  size_t end = text.find(')', at);
  for (size_t p = at; (p = text.find(".param", p)) < end; ++p)
    ++count;
  return true;
}

} // namespace

extern "C" {

int cuInit(unsigned flags) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  if (int injected = machine.note("cuInit", with(flags)))
    return injected;
  machine.initialised = true;
  return flags ? invalidValue : 0;
}

int cuDriverGetVersion(int *version) {
  *version = Machine::get().version;
  return 0;
}

int cuGetErrorName(int code, const char **text) {
  switch (code) {
#define PAR_NAME(CODE, NAME)                                                                                           \
  case CODE:                                                                                                           \
    *text = NAME;                                                                                                      \
    return 0;
    PAR_NAME(1, "CUDA_ERROR_INVALID_VALUE")
    PAR_NAME(2, "CUDA_ERROR_OUT_OF_MEMORY")
    PAR_NAME(3, "CUDA_ERROR_NOT_INITIALIZED")
    PAR_NAME(100, "CUDA_ERROR_NO_DEVICE")
    PAR_NAME(200, "CUDA_ERROR_INVALID_IMAGE")
    PAR_NAME(209, "CUDA_ERROR_NO_BINARY_FOR_GPU")
    PAR_NAME(400, "CUDA_ERROR_INVALID_HANDLE")
    PAR_NAME(500, "CUDA_ERROR_NOT_FOUND")
    PAR_NAME(700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    PAR_NAME(719, "CUDA_ERROR_LAUNCH_FAILED")
    PAR_NAME(904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED")
#undef PAR_NAME
  default:
    *text = nullptr;
    return invalidValue;
  }
}

int cuGetErrorString(int code, const char **text) {
  *text = code == 2 ? "out of memory" : code == 700 ? "an illegal memory access was encountered" : nullptr;
  return *text ? 0 : invalidValue;
}

int cuDeviceGetCount(int *count) {
  *count = static_cast<int>(visible().size());
  return Machine::get().initialised ? 0 : notInitialised;
}

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal < static_cast<int>(visible().size()) ? 0 : invalidDevice;
}

int cuDeviceGetUuid_v2(char *bytes, int device) {
  uint64_t host = std::hash<std::string>()(hostName()), number = static_cast<uint64_t>(visible().at(device));
  std::memcpy(bytes, &host, sizeof host);
  std::memcpy(bytes + sizeof host, &number, sizeof number);
  return 0;
}

int cuDeviceGetName(char *name, int bytes, int) {
  std::strncpy(name, "Stub", static_cast<size_t>(bytes));
  return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int) {
  if (attribute != 75 && attribute != 76)
    return invalidValue;
  *value = attribute == 75 ? Machine::get().sm / 10 : Machine::get().sm % 10;
  return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  Machine &machine = Machine::get();
  auto held = machine.lock();
  if (int injected = machine.note("cuDevicePrimaryCtxRetain", with(device)))
    return injected;
  *context = &machine;
  return machine.initialised ? 0 : notInitialised;
}

int cuDevicePrimaryCtxRelease_v2(int) { return 0; }

int cuCtxSetCurrent(void *context) {
  hasContext = context != nullptr;
  return 0;
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  PAR_ENTER("cuCtxGetStreamPriorityRange")
  *least = 0;
  *greatest = -5;
  return 0;
}

int cuMemGetInfo_v2(size_t *free, size_t *total) {
  PAR_ENTER("cuMemGetInfo")
  *total = machine.memory;
  *free = machine.memory - machine.used;
  return 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  PAR_ENTER("cuMemAlloc", bytes)
  if (bytes == 0)
    return invalidValue;
  *address = machine.allocate(bytes, true);
  return *address ? 0 : outOfMemory;
}

int cuMemFree_v2(uint64_t address) {
  PAR_ENTER("cuMemFree", hex(address))
  return machine.release(address) ? 0 : invalidValue;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  PAR_ENTER("cuMemHostAlloc", bytes, flags)
  if (bytes == 0)
    return invalidValue;
  *memory = reinterpret_cast<void *>(machine.allocate(bytes, false));
  return 0;
}

int cuMemFreeHost(void *memory) {
  PAR_ENTER("cuMemFreeHost")
  return machine.release(reinterpret_cast<uint64_t>(memory)) ? 0 : invalidValue;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Stream *stream) {
  PAR_ENTER("cuMemcpyHtoDAsync", hex(to), bytes, "stream", stream->id)
  PAR_KNOWN(machine.streams, stream)
  return move(machine, stream, to, reinterpret_cast<uint64_t>(from), bytes, true, false);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Stream *stream) {
  PAR_ENTER("cuMemcpyDtoHAsync", hex(from), bytes, "stream", stream->id)
  PAR_KNOWN(machine.streams, stream)
  return move(machine, stream, reinterpret_cast<uint64_t>(to), from, bytes, false, true);
}

int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, Stream *stream) {
  PAR_ENTER("cuMemcpyAsync", hex(to), hex(from), bytes, "stream", stream->id)
  PAR_KNOWN(machine.streams, stream)
  return move(machine, stream, to, from, bytes, true, true);
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, Stream *stream) {
  PAR_ENTER("cuMemsetD8Async", hex(to), int(value), count, "stream", stream->id)
  PAR_KNOWN(machine.streams, stream)
  return set(machine, stream, to, value, 0, count, 1);
}

int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, Stream *stream) {
  PAR_ENTER("cuMemsetD16Async", hex(to), value, count, "stream", stream->id)
  PAR_KNOWN(machine.streams, stream)
  return set(machine, stream, to, value, 0, count, 1);
}

int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, Stream *stream) {
  PAR_ENTER("cuMemsetD32Async", hex(to), value, count, "stream", stream->id)
  PAR_KNOWN(machine.streams, stream)
  return set(machine, stream, to, value, 0, count, 1);
}

int cuMemsetD2D32Async(uint64_t to, size_t pitch, unsigned value, size_t width, size_t height, Stream *stream) {
  PAR_ENTER("cuMemsetD2D32Async", hex(to), pitch, value, width, height, "stream", stream->id)
  PAR_KNOWN(machine.streams, stream)
  return set(machine, stream, to, value, pitch, width, height);
}

int cuStreamCreateWithPriority(Stream **stream, unsigned flags, int priority) {
  PAR_ENTER("cuStreamCreate", flags, priority)
  *stream = new Stream{machine.nextId++, {}, nullptr, {}};
  machine.streams.insert(*stream);
  return 0;
}

int cuStreamDestroy_v2(Stream *stream) {
  PAR_ENTER("cuStreamDestroy", stream->id)
  PAR_KNOWN(machine.streams, stream)
  machine.streams.erase(stream);
  delete stream;
  return 0;
}

int cuStreamSynchronize(Stream *stream) {
  PAR_ENTER("cuStreamSynchronize", "stream", stream->id)
  PAR_KNOWN(machine.streams, stream)
  if (stream->capture)
    return stream->capture->status = captureUnsupported;
  machine.drive(held, [&] { return stream->work.empty(); });
  return machine.deviceStatus();
}

int cuStreamWaitEvent(Stream *stream, Event *event, unsigned) {
  PAR_ENTER("cuStreamWaitEvent", "stream", stream->id, "event", event->id)
  PAR_KNOWN(machine.streams, stream)
  PAR_KNOWN(events, event)
  return machine.wait(*stream, *event);
}

int cuEventCreate(Event **event, unsigned flags) {
  PAR_ENTER("cuEventCreate", flags)
  constexpr unsigned withoutTiming = 2;
  *event = new Event{
      machine.nextId++, nullptr, flags & withoutTiming ? nullptr : std::make_shared<uint64_t>(0), nullptr, {}};
  events.insert(*event);
  return 0;
}

int cuEventRecord(Event *event, Stream *stream) {
  PAR_ENTER("cuEventRecord", "event", event->id, "stream", stream->id)
  PAR_KNOWN(machine.streams, stream)
  PAR_KNOWN(events, event)
  machine.record(*event, *stream);
  return 0;
}

int cuEventQuery(Event *event) {
  PAR_ENTER("cuEventQuery", "event", event->id)
  PAR_KNOWN(events, event)
  if (event->capture)
    return event->capture->status = captureUnsupported;
  machine.step();
  if (int failed = machine.deviceStatus())
    return failed;
  return !event->reached || *event->reached ? 0 : notReady;
}

/// A piece of work takes a microsecond, a matmul also its algorithm's time.
int cuEventElapsedTime(float *milliseconds, Event *from, Event *to) {
  PAR_ENTER("cuEventElapsedTime", "from", from->id, "to", to->id)
  PAR_KNOWN(events, from)
  PAR_KNOWN(events, to)
  if (!from->time || !to->time || !from->reached || !to->reached)
    return invalidHandle;
  if (int failed = machine.deviceStatus())
    return failed;
  if (!*from->reached || !*to->reached)
    return notReady;
  *milliseconds = (static_cast<float>(*to->time) - static_cast<float>(*from->time)) / 1000;
  return 0;
}

int cuEventDestroy_v2(Event *event) {
  PAR_ENTER("cuEventDestroy", event->id)
  PAR_KNOWN(events, event)
  events.erase(event);
  delete event;
  return 0;
}

int cuModuleLoadDataEx(Loaded **module, const void *image, unsigned options, int *, void **) {
  PAR_ENTER("cuModuleLoadDataEx", options)
  auto *text = static_cast<const char *>(image);
  // An ELF image contains zeros; its kernels are known only by their names.
  bool binary = std::memcmp(text, "\177ELF", 4) == 0 || std::memcmp(text, "\x50\xed\x55\xba", 4) == 0;
  if (!binary && !std::strstr(text, ".version"))
    return invalidImage;
  *module = new Loaded{binary ? "" : text};
  modules.insert(*module);
  return 0;
}

int cuModuleUnload(Loaded *module) {
  PAR_ENTER("cuModuleUnload")
  PAR_KNOWN(modules, module)
  modules.erase(module);
  delete module;
  return 0;
}

int cuModuleGetFunction(Entry **function, Loaded *module, const char *name) {
  PAR_ENTER("cuModuleGetFunction", name)
  PAR_KNOWN(modules, module)
  Entry entry{name};
  bool found = false;
  entry.counted = countParameters(module->text, name, entry.parameters, found);
  if (entry.counted && !found)
    return notFound;
  auto known = machine.kernels.find(name);
  if (known != machine.kernels.end() && !entry.counted) {
    entry.parameters = known->second.first;
    entry.counted = true;
  }
  *function = new Entry(entry);
  functions.insert(*function);
  return 0;
}

int cuFuncSetAttribute(Entry *function, int attribute, int value) {
  PAR_ENTER("cuFuncSetAttribute", function->name, attribute, value)
  PAR_KNOWN(functions, function)
  return 0;
}

int cuLaunchKernel(Entry *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, Stream *stream, void **parameters, void **extra) {
  std::vector<uint64_t> values;
  // All parameters are words, but the second of a reduction, which holds the pointers of its sources.
  bool reduces = function->name.starts_with("par_reduce_");
  for (size_t i = 0; parameters && function->counted && i < function->parameters; ++i)
    for (size_t word = 0; word < (reduces && i == 1 ? 16 : 1); ++word)
      values.push_back(static_cast<uint64_t *>(parameters[i])[word]);
  std::string list;
  for (uint64_t value : values)
    list += " " + hex(value);
  PAR_ENTER("cuLaunchKernel", function->name, gx, gy, gz, bx, by, bz, shared, "stream", stream->id, list)
  PAR_KNOWN(machine.streams, stream)
  PAR_KNOWN(functions, function)
  if (uint64_t(gx) * gy * gz == 0 || uint64_t(bx) * by * bz == 0 || uint64_t(bx) * by * bz > 1024 || extra)
    return invalidValue;
  auto kernel = machine.kernels.find(function->name);
  std::function<void()> run;
  if (kernel != machine.kernels.end())
    run = [code = kernel->second.second, values] { code(values); };
  machine.enqueue(*stream, {nullptr, run});
  return 0;
}

int cuStreamBeginCapture_v2(Stream *stream, unsigned mode) {
  PAR_ENTER("cuStreamBeginCapture", "stream", stream->id, mode)
  PAR_KNOWN(machine.streams, stream)
  return machine.beginCapture(*stream);
}

int cuStreamEndCapture(Stream *stream, Graph **graph) {
  PAR_ENTER("cuStreamEndCapture", "stream", stream->id)
  PAR_KNOWN(machine.streams, stream)
  if (int status = machine.endCapture(*stream, *graph))
    return status;
  graphs.insert(*graph);
  return 0;
}

int cuGraphInstantiateWithFlags(Graph **executable, Graph *graph, unsigned long long) {
  PAR_ENTER("cuGraphInstantiate", graph->nodes.size())
  PAR_KNOWN(graphs, graph)
  *executable = new Graph(*graph);
  executables.insert(*executable);
  return 0;
}

int cuGraphLaunch(Graph *executable, Stream *stream) {
  PAR_ENTER("cuGraphLaunch", executable->nodes.size(), "stream", stream->id)
  PAR_KNOWN(executables, executable)
  PAR_KNOWN(machine.streams, stream)
  if (stream->capture)
    return captureUnsupported;
  machine.launch(*executable, *stream);
  return 0;
}

int cuGraphDestroy(Graph *graph) {
  PAR_ENTER("cuGraphDestroy")
  PAR_KNOWN(graphs, graph)
  graphs.erase(graph);
  delete graph;
  return 0;
}

int cuGraphExecDestroy(Graph *executable) {
  PAR_ENTER("cuGraphExecDestroy")
  PAR_KNOWN(executables, executable)
  executables.erase(executable);
  delete executable;
  return 0;
}

} // extern "C"
