// The imagined GPU of the CUDA tests' stub libraries: memory, streams, events and captures. Work is kept in queues and
// done as late as allowed, in a seeded order of all orders that CUDA allows. A missing wait of the code under test then
// gives wrong numbers, or work that reads host memory which has changed since.
//
// The environment, read at cuInit, or Machine::configure():
//   PAR_STUB_LOG    file that gets each call as a line of JSON
//   PAR_STUB_SEED   of the order (default 1)
//   PAR_STUB_FAIL   CALL:N:CODE  the N-th call of CALL (from 1) returns CODE; work:N:CODE  the N-th piece of work
//                   fails, and every later call that checks the device returns CODE; stall:N  no work after N pieces;
//                   nccl:N:CODE  an asynchronous error of communicators after their N-th operation; hang:N  the N-th
//                   operation of NCCL never ends
//                   cudnnPlans:0:CODE  no plan of cuDNN can be finalized; cudnnWorkspace:BYTES:0  each needs so much
//   PAR_STUB_BUNDLE the bundle's plan, compiled with --host-code: its generated kernels are then computed
//   PAR_STUB_DEVICES, PAR_STUB_VERSION (12040), PAR_STUB_SM (90), PAR_STUB_MEMORY (bytes)
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace par::stub {

/// Work at the head of a stream: done when ready() (empty: at once), then run() is called once.
struct Work {
  std::function<bool()> ready;
  std::function<void()> run;
};

struct CaptureNode {
  std::function<void()> run;
  std::vector<size_t> after;
};

/// Work that was captured instead of queued.
struct Capture {
  std::vector<CaptureNode> nodes;
  struct Stream *origin = nullptr;
  std::set<Stream *> members;
  int status = 0; ///< result of ending the capture
};

struct Stream {
  uint64_t id = 0;
  std::deque<Work> work;
  std::shared_ptr<Capture> capture;
  std::vector<size_t> tail; ///< of the capture: nodes that the next one comes after
};

struct Event {
  uint64_t id = 0;
  std::shared_ptr<bool> reached;  ///< of the latest record
  std::shared_ptr<uint64_t> time; ///< microseconds of the machine's work until then; null in events that keep none
  std::shared_ptr<Capture> capture;
  std::vector<size_t> tail;
};

struct Graph {
  std::vector<CaptureNode> nodes;
};

/// One call as a test sees it: name and arguments, "stream=2 n=8".
struct Call {
  std::string rank; ///< nameThread() of the calling thread
  std::string name, arguments;
};

/// A kernel's CPU form: gets the parameters as they lie in memory.
using Kernel = std::function<void(const std::vector<uint64_t> &parameters)>;

class Machine {
public:
  static Machine &get();

  // For tests. Each takes the lock.
  void reset(const std::string &failure = "", uint64_t seed = 1);
  void nameThread(const std::string &name);
  std::vector<Call> calls(const std::string &rank = "");
  /// Launches of that entry of a module, which takes so many parameters, run `kernel`; of unknown entries
  /// nothing.
  void kernel(const std::string &name, size_t parameters, Kernel kernel);

  // For entry points, with the lock held.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex); }
  /// Notes the call; an injected answer, else 0.
  int note(const std::string &name, const std::string &arguments);
  /// The answer of calls that look at the device: the code of work that has failed, else 0.
  int deviceStatus() const { return failed; }
  void enqueue(Stream &stream, Work work);
  void record(Event &event, Stream &stream);
  int wait(Stream &stream, Event &event);
  int beginCapture(Stream &stream);
  int endCapture(Stream &stream, Graph *&graph);
  void launch(const Graph &graph, Stream &stream);
  /// Does one piece of work that may be done now; false if there is none.
  bool step();
  /// Does work until `done`; sleeps where other threads must act first.
  void drive(std::unique_lock<std::mutex> &lock, const std::function<bool()> &done);

  /// Device or pinned memory: 0, or the answer to an access outside of it.
  int checkRange(uint64_t address, uint64_t bytes) const;
  uint64_t allocate(uint64_t bytes, bool onDevice);
  bool release(uint64_t address);

  struct Injection {
    std::string call;
    uint64_t after = 0;
    int code = 0;
  };
  bool initialised = false;
  uint64_t memory = uint64_t(1) << 32, used = 0;
  int devices = 1, version = 13000, sm = 90;
  Injection injection;
  std::map<std::string, std::pair<size_t, Kernel>> kernels;
  std::set<Stream *> streams;
  std::condition_variable changed;
  std::mt19937_64 random{1};
  uint64_t nextId = 1;
  uint64_t extra = 0;   ///< microseconds of matmuls besides that of any piece of work
  uint64_t fastest = 2; ///< number of the fastest matmul algorithm
  /// Whether cuBLASLt sums an operand with a matmul, and the additional time.
  bool sumsBeside = true;
  uint64_t sumTakes = 0;
  int64_t slowEngine = -1;     ///< of cuDNN's, one that takes a thousand times as long as others
  uint64_t communications = 0; ///< operations of NCCL since the last reset

private:
  void configure();

  std::mutex mutex;
  std::map<uint64_t, uint64_t> blocks; ///< begin -> bytes
  std::vector<Call> log;
  std::map<std::string, uint64_t> counts;
  std::string logFile;
  uint64_t done = 0;
  int failed = 0;
};

/// Gives the machine the CPU form of every builtin under its entry's name.
void registerBuiltins(Machine &machine);
/// Likewise the generated kernels of the bundle in `folder`, which was compiled for the CPU.
void registerGenerated(Machine &machine, const std::string &folder);

} // namespace par::stub
