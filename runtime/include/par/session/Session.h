// One rank's run of a bundle: arena, state, feeding and results.
#pragma once

#include "par/data/Data.h"
#include "par/device/Device.h"
#include "par/weights/Weights.h"

#include <functional>
#include <map>

namespace par::core {

struct SessionOptions {
  int threads = 1;
  bool checkArena = false;
  std::shared_ptr<sim::World> world = nullptr; ///< see DeviceOptions
  std::string comm = "auto";                   ///< likewise
  Tuning tuning = {};                          ///< likewise
  /// Bytes after the `dev` arena for the caller's own use.
  uint64_t scratchBytes = 0;
};

/// The rows of one step.
struct StepRows {
  const Dataset *dataset = nullptr;
  const RowOrder *order = nullptr;
  uint64_t position = 0; ///< of the step's first row
  bool operator==(const StepRows &) const = default;
};

/// "row 9 of the data for "x" holds NaN (element 17)" for the first of `count` rows that does; "" if none does.
std::string describeNaN(const format::Manifest &manifest, const StepRows &rows, uint64_t count);

/// "all 8 of \"labels\" are the ignored -100, so that none counts" where that is so of `count` rows; "" where
/// a label counts.
std::string describeIgnored(const format::Manifest &manifest, const StepRows &rows, uint64_t count);

/// Use of the arena, for --check-arena and the last line.
struct ArenaUse {
  uint64_t bound = 0;   ///< bytes that the program declares
  uint64_t touched = 0; ///< high-water mark of bytes that were written
};

using PickTensor = std::function<bool(const format::Tensor &)>;

class Session : private EntryHost {
public:
  /// Makes the device, connects, binds and expands. Every rank calls it. `bundle` must outlive the session.
  Session(const format::Bundle &bundle, const std::string &folder, comm::Control &control, const MakeDevice &makeDevice,
          const SessionOptions &options = {});
  ~Session() override;

  uint32_t rank() const { return control.rank(); }
  const format::Manifest &manifest() const { return bundle.manifest; }
  /// The buffer of a tensor on this rank, empty where it has none. Slot 0 of versioned buffers.
  HostBytes tensor(const std::string &name) const;

  /// Gives all tensors, or those that `isWanted` picks, values: weights from the store, if given, others by rules.
  void initialize(const WeightStore *weights, uint64_t seed, const PickTensor &isWanted = nullptr);
  /// The same from a whole checkpoint; constants have their values from the bundle.
  void restore(const WeightStore &checkpoint, const PickTensor &isWanted = nullptr);
  /// Gives the tensors that `some` holds, and their copies on other stages, its values.
  void assign(const WeightStore &some);

  void setHyper(const std::string &name, double value);
  /// One for each call of the step in an entry.
  void setHypers(const std::string &name, std::vector<double> values);
  bool has(const std::string &entry) const { return loaded->has(entry); }
  /// Runs an entry on these rows; results() holds the fetched values. `next`: the rows of its next run, if they are
  /// known: a device may read them meanwhile.
  void run(const std::string &entry, const StepRows &rows, const StepRows &next = {});
  /// Scalars fetched by this rank in the last run, by name of the output. If the entry makes several calls
  /// (Manifest::calls), those of the given one.
  const std::map<std::string, double> &results(uint64_t call = 0) const { return fetched[call]; }

  /// Called with every value that is fetched: output, microbatch, this rank's bytes.
  using TakeResult = std::function<void(const format::Output &, int64_t, std::span<const std::byte>)>;
  void onResult(TakeResult take) { takeResult = std::move(take); }

  comm::Control &jobControl() { return control; }
  /// Bytes that this rank has sent so far.
  uint64_t sentBytes() const { return device->sentBytes(); }
  ArenaUse arenaUse() const { return use; }
  /// Bytes of the arena that are resident now, in whole pages.
  uint64_t residentArena() const { return device->residentBytes(); }
  /// See Device::scratchBytes().
  uint64_t scratchBytes() const { return device->scratchBytes(); }
  /// After a run whose loss is not finite: the first instruction, in issue order, whose result is still in memory
  /// and holds a value that is not finite; "" if there is none.
  std::string firstNonFinite() const;
  /// Steps and times of the last run of an entry, for traces.
  const ExpandedEntry &lastEntry() const { return *last; }
  Device &onDevice() const { return *device; }
  const LoadedProgram &onProgram() const { return *loaded; }
  const std::vector<Stamp> &stamps() const { return device->stamps(); }

private:
  void feed(const format::Input &input, int64_t microbatch, std::span<std::byte> to) override;
  bool feedNext(const format::Input &input, int64_t microbatch, std::span<std::byte> to) override;
  bool wasFed() const override { return fedBefore; }
  void feedFrom(const StepRows &rows, const format::Input &input, int64_t microbatch, std::span<std::byte> to);
  void fetch(const format::Output &output, int64_t microbatch, format::DType type,
             std::span<const std::byte> from) override;
  /// Writes each tensor's buffer, or those of them that `isWanted` picks, as `visit` fills it, or with zeros where
  /// `isZero` says that it would.
  void forEachTensor(const std::function<void(const format::Tensor &, std::byte *)> &visit,
                     const std::function<bool(const format::Tensor &)> &isZero = nullptr,
                     const std::function<bool(const format::Tensor &)> &isWanted = nullptr);
  std::vector<HyperValue> hyperValues();
  void poison();
  void measureArena();

  const format::Bundle &bundle;
  std::string folder; ///< the bundle's
  comm::Control &control;
  const format::Program &program;
  std::unique_ptr<Device> device;
  std::unique_ptr<LoadedProgram> loaded;
  bool checkArena;
  ArenaUse use;
  StepRows current, upcoming;
  bool fedBefore = false; ///< `current` are the rows that were `upcoming` in the run before, of the same entry
  std::vector<std::map<std::string, double>> fetched; ///< by call
  std::map<std::string, std::vector<double>> hypers;  ///< one value, or one for each call
  TakeResult takeResult;
  std::vector<std::byte> scratch;
  const ExpandedEntry *last = nullptr;
};

/// "pp 1, dp 0, tp 1"; "" without a mesh.
std::string coordinatesOf(const format::Manifest &manifest, uint32_t rank);
/// "pp 2 x dp 2 x tp 2"; "1 rank" without a mesh.
std::string meshOf(const format::Manifest &manifest);

} // namespace par::core
