// Runs programs on a GPU: queues are streams, signals and waits are events. An entry is captured as a CUDA graph when
// it repeats, whole if it does not communicate; inputs of the next run are staged while it computes.
#include "par/cuda/run/Device.h"

#include "Graphs.h"
#include "Stamps.h"
#include "Watchdog.h"
#include "comm/engine/Engine.h"
#include "cuda/tuning/ShareGraphTuning.h"
#include "cuda/tuning/ShareTuning.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace par::cuda {

using core::Command;
using core::Failure;
using core::Message;
using format::Op;

namespace {

bool flag(const char *variable, bool otherwise) {
  const char *text = std::getenv(variable);
  return text && *text ? std::strcmp(text, "0") != 0 : otherwise;
}

std::string lines(const std::string &first, const std::string &second) {
  return first + (first.empty() || second.empty() ? "" : "\n") + second;
}

class Device final : public core::Device {
public:
  explicit Device(const core::DeviceOptions &options) : options(options) {}
  ~Device() override;

  std::string libraries() const override;
  void connect(comm::Control &control) override;
  core::Arenas arenas() const override { return {arena.data(), hostArena.data()}; }
  void write(void *to, std::span<const std::byte> from) override;
  void read(std::span<std::byte> to, const void *from) override;
  void fill(void *to, uint64_t bytes, uint32_t word) override;
  void run(const core::ExpandedEntry &entry, std::span<const core::HyperValue> hypers, core::EntryHost &host) override;
  void keepStamps(bool keep) override { timed = keep; }
  std::byte *hostAddress(void *at) const override;
  const std::vector<core::Stamp> &stamps() const override { return times; }
  std::string remark() const override { return lines(said, communicators ? communicators->remark() : ""); }
  uint64_t sentBytes() const override;
  uint64_t residentBytes() const override { return options.program().arena.deviceBytes(); }
  uint64_t scratchBytes() const override;

private:
  PreparedEntry &prepared(const core::ExpandedEntry &entry);
  void feed(const PreparedEntry &entry, uint32_t step, core::EntryHost &host);
  bool feedNext(const PreparedEntry &entry, core::EntryHost &host) const;
  void copyHypers(const PreparedEntry &entry, std::span<const core::HyperValue> hypers);
  void walk(PreparedEntry &entry, core::EntryHost &host, bool graphs);
  void step(PreparedEntry &entry, uint32_t index, core::EntryHost &host);
  void runWhole(PreparedEntry &entry, std::span<const core::HyperValue> hypers, core::EntryHost &host);
  std::vector<uint32_t> allQueues() const;
  void wait();
  void checkGpu() const;
  void count(const core::ExpandedEntry &entry, const Command &step);

  core::DeviceOptions options;
  Driver driver;
  // In the order in which they are made; destroyed in reverse.
  std::optional<Gpu> gpu;
  comm::Control *control = nullptr;
  std::unique_ptr<comm::Endpoint> link; ///< hears that the job ends
  DeviceBuffer arena, hostArena, hostStaging;
  std::map<const core::ExpandedEntry *, std::unique_ptr<PreparedEntry>> entries;
  std::optional<Streams> lanes;
  std::optional<Dnn> dnn;
  std::optional<Kernels> kernels;
  std::optional<Blas> blas;
  std::vector<std::unique_ptr<Gemm>> products;
  std::unique_ptr<Communicators> communicators;
  std::optional<Executor> walker;
  std::optional<Graphs> graphCache;
  std::optional<Watchdog> watch;
  std::optional<Stamps> stopwatch; ///< from the first run on whose steps are timed
  std::vector<core::Stamp> times;
  std::string said;
  std::vector<comm::Members> table;
  std::vector<uint64_t> shares; ///< by communicator: bytes sent times members
  bool graphs = flag("PAR_CUDA_GRAPHS", true), blocking = flag("PAR_CUDA_BLOCKING", false);
  bool timed = false;
  bool busy = false; ///< submitted work may not have ended, and may never
};

constexpr uint64_t hostStagingBytes = 4 << 20;

/// Ranks of a host take its GPUs in order; one that sees a single GPU takes that.
int ordinalOf(const comm::Control &control, int count, const std::string &place) {
  uint32_t local = control.localRank();
  if (count == 1 || control.world() == 1)
    return 0;
  if (local < static_cast<uint32_t>(count))
    return static_cast<int>(local);
  Failure failure = Failure::at(place, Message::cudaTooFewDevices, control.rank(), local, count);
  const char *visible = std::getenv("CUDA_VISIBLE_DEVICES");
  throw visible ? std::move(failure).note(std::string("CUDA_VISIBLE_DEVICES is ") + visible + " there") : failure;
}

} // namespace

Device::~Device() {
  if (!gpu)
    return;
  gpu->use();
  // Running work ends before its resources are destroyed; communication that would not end is aborted.
  if (communicators && busy)
    communicators->abort();
  if (lanes && !busy)
    for (Stream stream : lanes->streams)
      (*gpu)->streamSynchronize(stream);
}

/// Versions of the libraries from which rank 0 chooses for all: an engine's number means nothing to another version.
std::string Device::libraries() const {
  return driver.version() + (anyGraph(*options.bundle) ? ", " + Dnn::installed() : "");
}

void Device::connect(comm::Control &newControl) {
  control = &newControl;
  const format::Program &program = options.program();
  table = comm::tableOf(*options.bundle);
  link = control->connect(table, /*arena, unused: buffers are on the GPU*/ 4096);
  gpu.emplace(options.comm == "inproc" ? 0 : ordinalOf(*control, Gpu::count(driver), options.folder));
  deviceModel = {gpu->name(), core::format("sm_{}", gpu->sm())};
  checkGpu();
  lanes.emplace(*gpu, program);
  Stream main = lanes->streams[lanes->main];
  arena = DeviceBuffer(*gpu, program.arena.deviceBytes() + options.guardBytes, DeviceBuffer::Place::Device);
  hostArena = DeviceBuffer(*gpu, program.arena.host, DeviceBuffer::Place::Host);
  hostStaging = DeviceBuffer(*gpu, hostStagingBytes, DeviceBuffer::Place::Host);
  std::fill_n(hostArena.data(), hostArena.bytes(), std::byte(0));
  kernels.emplace(*gpu, options);
  Decided decided;
  const SharedTuning agreement{*gpu, options, *control, main, {arena.data(), arena.bytes()}, decided};
  if (anyGraph(*options.bundle)) {
    dnn.emplace();
    shareGraphTuning(agreement, *dnn, *kernels, said);
  }
  if (anyGemm(*options.bundle)) {
    blas.emplace();
    products = shareMatmulTuning(agreement, *blas, said);
  }
  if (control->rank() == 0)
    keep(options.tuning, decided);
  if (arena.bytes() > 0)
    (*gpu)->check((*gpu)->set8(arena.address(), 0, arena.bytes(), main), "cuMemsetD8Async");
  (*gpu)->check((*gpu)->streamSynchronize(main), "cuStreamSynchronize");
  walker.emplace(*gpu, *lanes, *kernels, products);
  graphCache.emplace(*gpu, *lanes, *walker);
  watch.emplace(*gpu, *control, *link);
  CommunicatorsOf of{*gpu, options, *control, *link};
  bool shared = options.comm == "inproc" || (control->world() == 1 && options.comm != "nccl");
  busy = true;
  communicators = shared ? makeShared(of, *kernels) : makeNccl(of, main);
  walker->communicators = communicators.get();
  busy = false;
  shares.resize(table.size());
}

/// PTX of an older architecture runs on a newer one, not the reverse.
void Device::checkGpu() const {
  for (const std::string &need : options.bundle->manifest.needs)
    if (need.starts_with("sm: ") && std::atoi(need.c_str() + 4) > gpu->sm())
      throw Failure::at(options.folder, Message::cudaOldGpu, need.substr(4), gpu->name(), gpu->sm());
}

/// Counts bytes sent, and puts a mark after the unit on its stream.
void Device::count(const core::ExpandedEntry &entry, const Command &step) {
  for (uint32_t i = 0; i < step.units; ++i) {
    const comm::Communication &c = entry.communications[step.firstUnit + i];
    const std::vector<uint32_t> &ranks = table[c.communicator].ranks;
    auto self = std::find(ranks.begin(), ranks.end(), options.rank) - ranks.begin();
    shares[c.communicator] += comm::sharesOf(c, ranks.size(), static_cast<uint64_t>(self));
  }
  watch->mark(lanes->streams[step.queue], entry.communications[step.firstUnit]);
}

uint64_t Device::sentBytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < shares.size(); ++i)
    bytes += shares[i] / table[i].ranks.size();
  return bytes;
}

/// The host's arena is pinned memory, which both sides reach at one address.
std::byte *Device::hostAddress(void *at) const {
  auto *byte = static_cast<std::byte *>(at);
  return byte >= hostArena.data() && byte < hostArena.data() + hostArena.bytes() ? byte : nullptr;
}

uint64_t Device::scratchBytes() const {
  uint64_t bytes = 0;
  for (const DeviceBuffer &scratch : lanes->scratch)
    bytes += scratch.bytes();
  return bytes;
}

void Device::write(void *to, std::span<const std::byte> from) {
  if (std::byte *here = hostAddress(to)) {
    std::memcpy(here, from.data(), from.size());
    return;
  }
  Stream main = lanes->streams[lanes->main];
  for (size_t at = 0; at < from.size(); at += hostStagingBytes) {
    size_t part = std::min<size_t>(from.size() - at, hostStagingBytes);
    std::memcpy(hostStaging.data(), from.data() + at, part);
    (*gpu)->check((*gpu)->copyToDevice(reinterpret_cast<Address>(to) + at, hostStaging.data(), part, main),
                  "cuMemcpyHtoDAsync");
    (*gpu)->check((*gpu)->streamSynchronize(main), "cuStreamSynchronize");
  }
}

void Device::read(std::span<std::byte> to, const void *from) {
  if (const std::byte *here = hostAddress(const_cast<void *>(from))) {
    std::memcpy(to.data(), here, to.size());
    return;
  }
  Stream main = lanes->streams[lanes->main];
  for (size_t at = 0; at < to.size(); at += hostStagingBytes) {
    size_t part = std::min<size_t>(to.size() - at, hostStagingBytes);
    (*gpu)->check((*gpu)->copyToHost(hostStaging.data(), reinterpret_cast<Address>(from) + at, part, main),
                  "cuMemcpyDtoHAsync");
    (*gpu)->check((*gpu)->streamSynchronize(main), "cuStreamSynchronize");
    std::memcpy(to.data() + at, hostStaging.data(), part);
  }
}

void Device::fill(void *to, uint64_t bytes, uint32_t word) {
  Stream main = lanes->streams[lanes->main];
  (*gpu)->check((*gpu)->set32(reinterpret_cast<Address>(to), word, bytes / sizeof word, main), "cuMemsetD32Async");
  (*gpu)->check((*gpu)->streamSynchronize(main), "cuStreamSynchronize");
}

PreparedEntry &Device::prepared(const core::ExpandedEntry &entry) {
  std::unique_ptr<PreparedEntry> &place = entries[&entry];
  if (place)
    return *place;
  place = std::make_unique<PreparedEntry>(*gpu, *kernels, options.program(), entry);
  bool grows = false;
  for (size_t queue = 0; queue < lanes->scratch.size(); ++queue) {
    if (lanes->scratch[queue].bytes() >= place->scratch[queue])
      continue;
    lanes->scratch[queue] = DeviceBuffer(*gpu, place->scratch[queue], DeviceBuffer::Place::Device);
    grows = true;
  }
  if (grows) { // graphs hold the old address
    graphCache->clear();
    for (auto &[source, other] : entries)
      other->whole = {};
  }
  return *place;
}

void Device::feed(const PreparedEntry &entry, uint32_t index, core::EntryHost &host) {
  const Command &step = entry.source.steps[index];
  if (entry.filled)
    return;
  host.feed(*step.input, step.microbatch, {entry.staging() + entry.stagingOf[index], step.bytes});
}

/// While the GPU computes: stages the next run's inputs. True if they are in the other staging.
bool Device::feedNext(const PreparedEntry &entry, core::EntryHost &host) const {
  const core::ExpandedEntry &source = entry.source;
  std::byte *to = entry.stagings[1 - entry.turn].data();
  bool any = false;
  for (uint32_t i = 0; i < source.steps.size(); ++i)
    if (const Command &step = source.steps[i]; step.op == Op::Feed) {
      any = true;
      if (!host.feedNext(*step.input, step.microbatch, {to + entry.stagingOf[i], step.bytes}))
        return false;
    }
  return any;
}

void Device::copyHypers(const PreparedEntry &entry, std::span<const core::HyperValue> hypers) {
  std::byte *from = entry.staging() + entry.hyperStaging;
  for (const core::HyperValue &hyper : hypers) {
    (*gpu)->check(
        (*gpu)->copyToDevice(reinterpret_cast<Address>(hyper.to), from, hyper.bytes, lanes->streams[lanes->main]),
        "cuMemcpyHtoDAsync");
    from += sizeof hyper.bits;
  }
}

std::vector<uint32_t> Device::allQueues() const {
  std::vector<uint32_t> queues;
  for (uint32_t i = 0; i < lanes->streams.size(); ++i)
    queues.push_back(i);
  return queues;
}

void Device::run(const core::ExpandedEntry &source, std::span<const core::HyperValue> hypers, core::EntryHost &host) {
  gpu->use();
  busy = true;
  PreparedEntry &entry = prepared(source);
  entry.filled = entry.filled && host.wasFed();
  times.assign(source.steps.size(), {});
  if (timed)
    (stopwatch ? *stopwatch : stopwatch.emplace(*gpu)).begin(source.steps.size(), lanes->streams[lanes->main]);
  control->entry(source.name);
  std::byte *staged = entry.staging() + entry.hyperStaging;
  for (size_t i = 0; i < hypers.size(); ++i)
    std::memcpy(staged + i * sizeof(uint64_t), &hypers[i].bits, sizeof(uint64_t));
  // The first run is issued step by step: libraries load code that must not be loaded within a capture.
  bool capture = graphs && !blocking && !timed && entry.runs > 0;
  ++entry.runs;
  if (capture && !entry.communicates) {
    runWhole(entry, hypers, host);
  } else {
    copyHypers(entry, hypers);
    walker->fork(lanes->main, allQueues());
    walk(entry, host, capture);
    walker->join(allQueues(), lanes->main);
  }
  bool next = feedNext(entry, host);
  wait();
  if (timed)
    times = stopwatch->read();
  for (uint32_t i = 0; i < source.steps.size(); ++i)
    if (const Command &step = source.steps[i]; step.op == Op::Fetch)
      host.fetch(*step.output, step.microbatch, step.type, {entry.staging() + entry.stagingOf[i], step.bytes});
  entry.filled = next;
  entry.turn = next ? 1 - entry.turn : entry.turn;
}

void Device::walk(PreparedEntry &entry, core::EntryHost &host, bool capture) {
  for (const Segment &segment : entry.segments) {
    if (capture && segment.closed) {
      control->at(entry.source.steps[segment.first].id);
      graphCache->run(entry, segment);
      continue;
    }
    for (uint32_t i = segment.first; i < segment.last; ++i)
      step(entry, i, host);
  }
}

void Device::step(PreparedEntry &entry, uint32_t index, core::EntryHost &host) {
  const Command &step = entry.source.steps[index];
  control->at(step.id);
  if (step.op == Op::Feed)
    feed(entry, index, host);
  Stream stream = lanes->streams[step.queue];
  if (timed)
    stopwatch->before(index, stream);
  walker->issue(entry, index);
  if (timed)
    stopwatch->after(index, stream);
  if (communicates(step.op))
    count(entry.source, step);
  if (!blocking)
    return;
  Result result = (*gpu)->streamSynchronize(stream);
  if (result != success)
    throw Failure::at(options.folder, Message::cudaStepFailed, step.id, (*gpu)->describe(result));
}

/// One GPU and nothing to communicate: the entry is one graph, launched as a whole.
void Device::runWhole(PreparedEntry &entry, std::span<const core::HyperValue> hypers, core::EntryHost &host) {
  const core::ExpandedEntry &source = entry.source;
  for (uint32_t i = 0; i < source.steps.size(); ++i)
    if (source.steps[i].op == Op::Feed)
      feed(entry, i, host);
  Owned<GraphExec> &whole = entry.whole[entry.turn];
  if (!whole)
    whole = graphCache->capture(lanes->main, [&] {
      copyHypers(entry, hypers);
      walker->fork(lanes->main, allQueues());
      for (uint32_t i = 0; i < source.steps.size(); ++i)
        walker->issue(entry, i);
      walker->join(allQueues(), lanes->main);
    });
  (*gpu)->check((*gpu)->graphLaunch(whole, lanes->streams[lanes->main]), "cuGraphLaunch");
}

void Device::wait() {
  (*gpu)->check((*gpu)->eventRecord(lanes->end, lanes->streams[lanes->main]), "cuEventRecord");
  watch->until(lanes->end, communicators.get(), options.folder);
  busy = false;
}

std::unique_ptr<core::Device> makeDevice(const core::DeviceOptions &options) {
  return std::make_unique<Device>(options);
}

} // namespace par::cuda
