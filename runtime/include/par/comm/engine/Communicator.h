// The interface through which ranks exchange the contents of buffers. One rank's end of all communicators of a job. The
// executor posts communications on in-order queues and polls; there is no progress thread. Execution follows exactly
// the model that par-verify proves: every queue executes its units in order, a unit is one communication or one atomic
// group, and each communication is a rendezvous (a send ends when its receiver has the bytes, a collective when every
// member has finished with every other member's buffer). Nothing is buffered between ranks.
//
// One engine serves `inproc` (N threads) and `shm` (N processes): members read each other's arenas, and a reduction
// adds member 0, 1, ..., n-1 in that order, in f32 for f32, bf16 and f16, so results depend neither on timing nor on
// which of the two is used.
#pragma once

#include "par/format/Bundle.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace par::comm {

/// Exit code of a job in which a rank died or stopped, or ranks disagreed.
inline constexpr int exitRankLost = 4;

/// One group of a communicator of the manifest. In this folder "communicator" means such a group, by its index in the
/// table that every rank gives to connect(). It is bound to the queue on which a rank first posts on it.
struct Members {
  std::string name;            ///< for errors: "tp", "pipe"
  std::vector<uint32_t> ranks; ///< member index -> rank, without repetition
  bool used = true;            ///< false: no rank communicates on it; it takes no memory and no connection
};

/// The table of a bundle: all groups of all communicators, in the manifest's order. A bundle may name any
/// number of which its programs use none.
std::vector<Members> tableOf(const format::Bundle &bundle);
/// The index in tableOf() of the group of communicator `name` that `rank` is in; throws std::invalid_argument
/// where there is none.
uint32_t indexOf(const format::Manifest &manifest, std::string_view name, uint32_t rank);

/// One communication of this rank: an instruction `coll`, `send` or `recv` of the bundle format with its operands
/// bound. CollKind defines the unit of `n` and the places of parts (in elements; 0 is legal and still meets).
///
///   op     in                                              out
///   coll   the operand; of an all_gather that is not in    the result; == in: in place on the whole operand
///          place: this rank's n elements
///   send   n elements                                      ignored
///   recv   ignored                                         n elements
///
/// all_reduce, broadcast and reduce are in place always. `tag` is the id of the global communication that
/// this is a part of: members (and both ends of a send) that meet with another tag, kind, reduction, type, n
/// or root stop the job with an error that names both.
struct Communication {
  format::Op op = format::Op::Coll; ///< Coll, Send or Recv
  format::CollKind kind = format::CollKind::AllReduce;
  format::Reduction reduction = format::Reduction::Sum;
  format::DType type = format::DType::F32;
  uint32_t communicator = 0; ///< index in the table given to connect()
  uint32_t peer = 0;         ///< member index: send's receiver, recv's sender, root of broadcast and reduce
  uint64_t tag = 0;
  uint64_t n = 0;
  const void *in = nullptr; ///< inside this rank's arena, as `out`
  void *out = nullptr;
  const char *id = ""; ///< instruction id for errors ("stage0/backward:88"); must outlive the communication
};

/// A posted unit: done when every unit up to it on its queue is done.
struct Operation {
  uint32_t queue = 0;
  uint64_t number = 0; ///< 1, 2, ... per queue; 0 is always done
};

/// Communications of one program did not match at run time (tag, kind, type, count, ...).
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Another rank failed, or the job was told to end; what() says why if it is known.
struct Aborted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One rank's end of every communicator. Used from one thread.
class Endpoint {
public:
  virtual ~Endpoint();

  virtual uint32_t rank() const = 0;
  virtual uint32_t world() const = 0;

  /// This rank's arena: zeroed, page aligned, of the size asked for in connect(). Only buffers in it can be
  /// communicated.
  virtual std::span<std::byte> arena() = 0;

  /// Appends a unit to a queue: one communication, or a group of at most 64 that progress and end together. Checks
  /// bounds (operands inside the arena, peers) and throws std::invalid_argument. Never blocks.
  virtual Operation post(uint32_t queue, std::span<const Communication> unit) = 0;

  /// Moves every queue forward as far as it goes without waiting; true if anything moved. Throws Mismatch or
  /// Aborted.
  virtual bool poll() = 0;

  virtual bool done(Operation operation) const = 0;

  /// Polls all queues (and `also`, which advances the caller's own state machines and says whether they
  /// moved) until `finished()`; sleeps in between, 64 pauses, then 100 yields, then futex waits of at most
  /// 100 ms. Throws Mismatch or Aborted. With this an executor that is blocked on one queue keeps the others
  /// going: wait([&] { return done(op); }, [&] { return stepOtherQueues(); }).
  virtual void wait(const std::function<bool()> &finished, const std::function<bool()> &also = nullptr) = 0;

  /// wait() for one operation.
  void wait(Operation operation) {
    wait([&] { return done(operation); });
  }

  /// Ranks whose arrival the heads of the queues wait for now. (wait() notes it, with kind and instruction id
  /// of the head, where heartbeats and the diagnosis of a dead rank find it: the executor need not.)
  virtual std::vector<uint32_t> waitingFor() const = 0;

  /// Bytes that this rank has sent on a communicator since connect(): what its communications would send on
  /// rings, whatever the engine does. With P members and N the bytes of n elements:
  ///   all_reduce 2(P-1)/P N; all_gather, reduce_scatter, all_to_all (P-1) N; broadcast (P-1) N at the root
  ///   and 0 elsewhere; reduce N except at the root; send N; recv 0. Nothing where P = 1.
  /// Fractions are summed exactly per communicator and rounded down once.
  virtual uint64_t sentBytes(uint32_t communicator) const = 0;

  /// Sum of sentBytes over all communicators.
  virtual uint64_t sentBytes() const = 0;
};

} // namespace par::comm
