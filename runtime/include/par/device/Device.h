// The device of one rank's program. Session, checkpoints and par-run use a device only through this interface. The
// bundle's manifest names the device, or `par-run --device` in tests.
//
//   cpu   one thread walks the order, other queues are polled when it waits
//   sim   the CPU's kernels on simulated queues that run in hostile orders, with a report of races (tests)
//   cuda  streams and events
//
// A session's life with a device: make, libraries() (before ranks meet), connect() (collective), then any number of
// write, read, fill and run. All calls come from one thread.
#pragma once

#include "par/comm/job/Control.h"
#include "par/device/Loader.h"
#include "par/messages/Failure.h"

#include <functional>
#include <optional>

namespace par::sim {
class World;
}

namespace par::core {

/// Supplies an entry's inputs and takes its results. A device calls it before run() returns, from the thread that
/// called run() or from another one while that waits, with host memory: the arena itself or a staging buffer that is
/// valid during the call.
class EntryHost {
public:
  virtual ~EntryHost() = default;
  /// Writes this rank's part of an input for one microbatch: a dense array of the input's local shape. May be called
  /// as early as a device likes.
  virtual void feed(const format::Input &input, int64_t microbatch, std::span<std::byte> to) = 0;
  /// Writes the values that feed() will give in the next run of this entry, while this one runs; false if they are not
  /// known yet, and `to` is then undefined.
  virtual bool feedNext(const format::Input &, int64_t /*microbatch*/, std::span<std::byte> /*to*/) { return false; }
  /// Whether this run uses all values that feedNext() gave in the one before.
  virtual bool wasFed() const { return false; }
  /// Takes a result. May be called as late as a device likes; once for each `fetch`, those of one queue in its order.
  virtual void fetch(const format::Output &output, int64_t microbatch, format::DType type,
                     std::span<const std::byte> from) = 0;
};

/// Begin and end of one instruction of an entry, in nanoseconds of the monotonic clock; 0 and 0 if a device cannot
/// tell.
struct Stamp {
  int64_t begin = 0, end = 0;
};

/// A hyperparameter of an entry: the host's value, in the buffer's type, for the buffer at a device address.
struct HyperValue {
  void *to = nullptr;
  uint64_t bits = 0; ///< the value's bytes, from the first on
  uint32_t bytes = 0;
};

/// Paths of the files with rank 0's choices among a library's algorithms (other ranks are told), so that a resumed run
/// computes the same bits.
struct Tuning {
  std::string read, write; ///< "" for none
  bool times = true;       ///< else the library's first proposal
};

/// Something that a device has made of state which no instruction writes, as a packed filter.
struct Prepared {
  std::string name; ///< says what it is and, beside the state, all that it depends on
  std::span<const std::byte> bytes;
};

/// Inputs from which a device is made.
struct DeviceOptions {
  const format::Bundle *bundle = nullptr; ///< outlives the device
  std::string folder;                     ///< the bundle's, for kernel files and messages
  uint32_t rank = 0;
  int threads = 1;
  /// Bytes after the `dev` arena that nothing may touch (--check-arena poisons and looks at them).
  uint64_t guardBytes = 0;
  /// Shared by the ranks of a simulation; `sim` needs it, others ignore it.
  std::shared_ptr<sim::World> world = nullptr;
  /// As --comm says it: `inproc` where ranks are threads of one process, which on a GPU then share it.
  std::string comm = "auto";
  Tuning tuning = {};

  const format::Program &program() const { return bundle->programs[bundle->manifest.ranks[rank].role]; }
  /// Path of a file of the bundle.
  std::string pathOf(const std::string &name) const { return folder + "/" + name; }
  /// The bytes of a file of the bundle as the manifest lists it; throws Failure for one that it does not list, or lists
  /// with another hash.
  std::string listed(const std::string &name) const {
    auto bytes = format::readListed(folder, bundle->manifest, name);
    if (!bytes)
      throw Failure(pathOf(name), bytes.message());
    return std::move(*bytes);
  }
};

struct DeviceModel {
  std::string name; ///< the processor's or the GPU's
  std::string isa;  ///< "sm_90" of a GPU; "" where generated code is for the machine that compiles it
};

/// Addresses are `void *` into the device's arenas, as LoadedProgram::address() and ExpandedEntry::pointers have them.
/// They may be used for arithmetic, and be dereferenced by the host only where hostAddress() says so.
class Device {
public:
  virtual ~Device() = default;

  /// Versions of its libraries, for the ranks' hellos: "oneDNN 2.6.3".
  virtual std::string libraries() const = 0;
  /// After connect().
  const DeviceModel &model() const { return deviceModel; }

  /// Collective, once, after Control::meet(): allocates the program's arenas, zeroed, connects the communicators of the
  /// manifest (CPU: Control::connect(); others may exchange data by broadcast()), and binds kernels and calls of the
  /// program. Throws Failure for parts that are missing or do not fit.
  virtual void connect(comm::Control &control) = 0;

  /// Begins of the arenas; after connect().
  virtual Arenas arenas() const = 0;

  /// Copies between host memory and an arena, in order with the runs before and after. They return when the host may
  /// use its memory again.
  virtual void write(void *to, std::span<const std::byte> from) = 0;
  virtual void read(std::span<std::byte> to, const void *from) = 0;
  /// Repeats a word over bytes of an arena; both whole words.
  virtual void fill(void *to, uint64_t bytes, uint32_t word) = 0;
  /// The address under which the host itself reads and writes these bytes while no entry runs; null where it cannot
  /// (then HostBytes and write() copy).
  virtual std::byte *hostAddress(void *at) const { return nullptr; }

  /// Puts a file's pages, as they are now, in the place of an arena's; what is written there stays in this process.
  /// False where the device or the system cannot, or where peers see the arena; then nothing has changed.
  virtual bool mapFile(void *at, uint64_t bytes, int descriptor, uint64_t offset) { return false; }
  /// All that the runs since the last change of state have prepared. It lies there until the next change.
  virtual std::vector<Prepared> prepared() const { return {}; }
  /// Takes what prepared() gave where state was the same, after the last write of state and before the first run. The
  /// bytes stay as long as the device. A thing that does not fit is prepared again.
  virtual void take(const std::vector<Prepared> &) {}

  /// Runs an entry from its first step until every queue has drained and every result has been fetched. Hypers are
  /// written before the first step. Throws Failure, comm::Mismatch or comm::Aborted; what goes wrong later than its
  /// call does, the device throws here at the latest, naming the instruction where it can. `entry` lives as long as
  /// the session and is the same object each time it runs, so that a device can keep what it makes of it (graphs).
  virtual void run(const ExpandedEntry &entry, std::span<const HyperValue> hypers, EntryHost &host) = 0;

  /// Runs so far that have begun to write state: one that was abandoned before has left all as it was. Nothing where
  /// the device cannot tell.
  virtual std::optional<uint64_t> stateWrites() const { return std::nullopt; }
  /// Whether the next runs keep stamps, where that costs something: `cuda` then issues its steps one by one, with an
  /// event before and after each.
  virtual void keepStamps(bool) {}
  /// Whether stamps count only the time in which the rank's own thread ran, which does not depend on other processes;
  /// a device that computes elsewhere knows no such time and leaves them as they are. Reading this clock takes longer.
  virtual void stampThreadTime(bool) {}
  /// Stamps of the last run, one for each step.
  virtual const std::vector<Stamp> &stamps() const = 0;
  /// Bytes that this rank has sent since connect(), as comm::Endpoint::sentBytes() counts.
  virtual uint64_t sentBytes() const = 0;
  /// Bytes of the `dev` arena that are in memory now, in whole pages.
  virtual uint64_t residentBytes() const = 0;
  /// Bytes that libraries want beside the arena, so far.
  virtual uint64_t scratchBytes() const { return 0; }
  /// A line of connect() for the user; "" for none, and on ranks other than 0.
  virtual std::string remark() const { return ""; }
  /// Findings of a device for tests, one line for the end of a job; "" elsewhere.
  virtual std::string report() const { return ""; }

protected:
  DeviceModel deviceModel;
};

/// Arena bytes for the host to read: the arena itself where it can, else a copy. Valid until the next run.
class HostBytes {
public:
  HostBytes() = default;
  HostBytes(HostBytes &&) = default;
  HostBytes &operator=(HostBytes &&) = default;
  HostBytes(Device &device, void *at, uint64_t bytes);

  const std::byte *data() const { return seen.data(); }
  size_t size() const { return seen.size(); }
  std::span<const std::byte> subspan(size_t offset, size_t count) const { return seen.subspan(offset, count); }
  operator std::span<const std::byte>() const { return seen; }

private:
  std::vector<std::byte> copy;
  std::span<const std::byte> seen;
};

/// Makes the device of a rank. Throws Failure where this machine or this build has none.
using MakeDevice = std::function<std::unique_ptr<Device>(const DeviceOptions &)>;

} // namespace par::core
