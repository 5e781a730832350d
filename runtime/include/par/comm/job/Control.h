// The interface through which ranks exchange everything but buffers. One rank's view of the job: rendezvous facts,
// small exchanges of byte strings, the breadcrumb that heartbeats carry, the agreement on where to stop, and failure. A
// star: each rank talks to the host of the rendezvous, which is par-run's parent process under `-n` and rank 0 under
// another launcher.
#pragma once

#include "par/comm/engine/Communicator.h"

#include <array>
#include <functional>
#include <memory>

namespace par::comm {

/// A rank's introduction when it joins. The rendezvous compares format, bundle and plan hash of all ranks.
struct Hello {
  std::string format;      ///< bundle format version, "1.0"
  std::string bundleHash;  ///< hex
  std::string planHash;    ///< hex; errors print its first six digits
  std::string coordinates; ///< "pp 1, dp 0, tp 1": how errors describe the rank
  std::string isa;         ///< "x86-64-v3"
  std::string libraries;   ///< "oneDNN 2.6.3"
  uint32_t ranks = 0;      ///< ranks that the bundle is for
  std::string mesh;        ///< "pp 2 x dp 2 x tp 2", for error 13
};

class Control;
class HostCarrier;

/// A rank's place, and which start of its job this is.
struct Placing {
  std::string hosts;    ///< "2 hosts by tcp" where ranks run on several
  uint32_t attempt = 0; ///< how often --restart has started lost ranks again
  /// By rank, the descriptor of memory that outlives its process, for the state that the next start goes on from: -1 of
  /// ranks on other hosts, no entry where lost ranks are not started again. Empty until its rank gives it a size.
  std::vector<int> kept;
  uint32_t started = 0; ///< ranks of the job as it was started, of which an attempt under --shrink may have fewer
  /// Under --shrink, by seat (the rank as it was started), two such memories: the state moves from one to the other
  /// where the number of ranks changes. -1 of seats elsewhere.
  std::vector<std::array<int, 2>> memories;
  std::vector<uint32_t> seats; ///< by rank of this attempt
  /// At rank 0: enough of the others have come again for the next attempt to have more ranks.
  std::function<bool()> mayGrow;
  /// Ends the attempt in good order, after a barrier of all its ranks: the next one goes on. Throws Aborted.
  std::function<void()> regroup;
  std::string address; ///< where ranks run on several hosts: this one's, by which it and rank 0's host reach each other
  std::vector<uint32_t> hostOf; ///< by rank, the number of its host
  /// Under --mirror: two memories that outlive this rank's process, for what a neighbour sends it. -1: none.
  std::array<int, 2> mirrors{-1, -1};
  /// Collective: connections beside those of communicators, which one thread of this rank may use. `linked`: by rank,
  /// whether it is connected with this one, as both say. Empty where lost ranks are not started again.
  std::function<std::shared_ptr<HostCarrier>(Control &control, const std::vector<bool> &linked)> connectPeers;
};

/// One rank's control plane. Exchanges are collective: every rank calls the same ones with the same label in
/// the same order (checked), from one thread. Strings may have any size; frames on the wire are at most 1
/// MiB. All functions throw Aborted when the job is ending.
class Control {
public:
  virtual ~Control();

  virtual uint32_t rank() const = 0;
  virtual uint32_t world() const = 0;
  virtual uint32_t localRank() const = 0;
  virtual Placing placing() const { return {}; }

  /// Compares hellos of all ranks; throws std::runtime_error with plan.md's errors 13 or 19 on disagreement.
  /// Called once, first.
  virtual void meet(const Hello &hello) = 0;

  /// Maps the arenas of all ranks (this rank's has `arenaBytes`; zeroed) and returns this rank's end of the
  /// communicators. `table` is the same on every rank. Called once, after meet().
  virtual std::unique_ptr<Endpoint> connect(std::span<const Members> table, size_t arenaBytes) = 0;

  /// The value of `root`, at every rank.
  virtual std::string broadcast(std::string_view label, std::string_view value, uint32_t root = 0) = 0;
  /// broadcast() of a value that cannot be read between hosts.
  virtual std::string broadcastSecret(std::string_view label, std::string_view value, uint32_t root = 0) {
    return broadcast(label, value, root);
  }
  /// At `root`: every rank's value in rank order; elsewhere: empty.
  virtual std::vector<std::string> gather(std::string_view label, std::string_view value, uint32_t root = 0) = 0;
  /// Every rank's value in rank order, at every rank.
  virtual std::vector<std::string> allGather(std::string_view label, std::string_view value) = 0;
  virtual void barrier(std::string_view label) = 0;

  /// Called before step `step` (strictly increasing) of the job. False: the job was interrupted (SIGINT,
  /// SIGTERM, SIGHUP, requestStop) and ends before this step; every rank gets the same answer for the same step.
  virtual bool startStep(uint64_t step) = 0;
  /// Asks the job to end after the steps that have begun. Safe to call from any thread.
  virtual void requestStop() = 0;
  /// True after startStep() has answered false.
  virtual bool stopped() const = 0;
  /// True when the job has been asked to end. Ranks may see it at different times: they must agree before they act.
  virtual bool stopRequested() const = 0;

  /// The breadcrumb: where this rank is. Cheap (a copy of at most 64 bytes); call before every instruction.
  virtual void at(std::string_view instruction) = 0;
  virtual void entry(std::string_view name) = 0;

  /// Tells the host the newest complete save ("ckpt/100"), for the message of a dead rank.
  virtual void saved(std::string_view path) = 0;
  /// Tells the host of a file of results that is whole ("out.safetensors"), for the message of a job that a signal
  /// ended.
  virtual void wrote(std::string_view path) = 0;

  /// Ends the job everywhere with this exit code; `message` is printed once, by the host. Throws Aborted.
  [[noreturn]] virtual void fail(int code, std::string_view message) = 0;
};

} // namespace par::comm
