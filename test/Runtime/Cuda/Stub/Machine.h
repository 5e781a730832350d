// What stands behind the stub libraries of the CUDA tests: memory, streams, events and captures of one
// imagined GPU. Work is kept in queues and done as late as it may be, in a seeded order of all orders that
// CUDA allows; a wait that the code under test forgot then gives wrong numbers, or work that reads host
// memory which has changed since.
//
// The environment, read at cuInit, or Machine::configure():
//   PAR_STUB_LOG    file that gets each call as a line of JSON
//   PAR_STUB_SEED   of the order (default 1)
//   PAR_STUB_FAIL   CALL:N:CODE  the N-th call of CALL (from 1) answers CODE; work:N:CODE  the N-th piece of
//   work fails,
//                   and every call that looks at the device answers CODE from then on; stall:N  nothing is
//                   done after N pieces; nccl:N:CODE as asynchronous error of communicators after their N-th
//                   operation; hang:N  the N-th operation of NCCL never ends
//                   cudnnPlans:0:CODE  no plan of cuDNN can be closed; cudnnWorkspace:BYTES:0  each wants so much
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
  int status = 0; ///< what ending the capture answers
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
  std::string rank; ///< what nameThread() said of the calling thread
  std::string name, arguments;
};

/// A kernel's CPU form: gets the parameters as they lie in memory.
using Kernel = std::function<void(const std::vector<uint64_t> &parameters)>;

class Machine {
public:
  static Machine &get();

  // What tests do. Each takes the lock.
  void reset(const std::string &failure = "", uint64_t seed = 1);
  void nameThread(const std::string &name);
  std::vector<Call> calls(const std::string &rank = "");
  /// Launches of that entry of a module, which takes so many parameters, run `kernel`; of unknown entries
  /// nothing.
  void kernel(const std::string &name, size_t parameters, Kernel kernel);

  // What entry points do, under the lock.
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
  uint64_t extra = 0;   ///< microseconds that products took beside that of any piece of work
  uint64_t fastest = 2; ///< of the algorithms for a product, the one that takes least time
  /// Whether cuBLASLt adds up an operand beside a product, and what that takes besides.
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
