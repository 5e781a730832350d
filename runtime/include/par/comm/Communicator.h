//===- Communicator.h - how ranks exchange the contents of buffers --------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One rank's end of all communicators of a job. The executor posts communications on in-order queues and
// polls; there is no progress thread. What runs is exactly what par-verify proves: every queue executes its
// units in order, a unit is one communication or one atomic group, and each communication is a rendezvous
// (a send ends when its receiver has the bytes, a collective when every member has finished with every
// other member's buffer). Nothing is buffered between ranks.
//
// One engine serves `inproc` (N threads) and `shm` (N processes): members read each other's arenas, and a
// reduction adds member 0, 1, ..., n-1 in that order, in f32 for f32, bf16 and f16, so results depend neither
// on timing nor on which of the two is used.
//
//===----------------------------------------------------------------------===//
#ifndef PAR_COMM_COMMUNICATOR_H
#define PAR_COMM_COMMUNICATOR_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace par::comm {

/// Element types, named in bundles as printed here: f32 f64 f16 bf16 i64 i32 i8 u8 i1 (i1: one byte, 0 or 1).
enum class Type : uint8_t { f32, f64, f16, bf16, i64, i32, i8, u8, i1 };

/// Kinds of communication, named in bundles as in `kindName`.
enum class Kind : uint8_t { allReduce, allGather, reduceScatter, broadcast, allToAll, permute, send, recv };

/// Reductions of allReduce and reduceScatter. `logicalAnd` (named "and") is for integer types.
enum class Reduction : uint8_t { none, sum, max, min, logicalAnd };

/// Bytes of one element.
size_t sizeOf(Type type);

std::string_view typeName(Type type);
std::string_view kindName(Kind kind); // all_reduce all_gather reduce_scatter broadcast all_to_all permute send recv
std::string_view reductionName(Reduction reduction); // none sum max min and
std::optional<Type> typeNamed(std::string_view name);
std::optional<Kind> kindNamed(std::string_view name);
std::optional<Reduction> reductionNamed(std::string_view name);

/// One communicator: which ranks, in member order, and the queue that it is bound to. Every rank of the job
/// gives the same table to connect(); a communicator is named by its index in that table.
struct Members {
  std::string name;            ///< for errors: "tp", "pipe forward 0-1"
  std::vector<uint32_t> ranks; ///< member index -> rank, without repetition
  uint32_t queue = 0;          ///< the one queue on which its communications are posted
};

/// One communication. `count` is the number of elements of the *whole* operand, in place:
///
///   kind           operand before                    operand after (member r of n)
///   allReduce      count values                      their reduction over the members
///   allGather      part r of n holds r's value       all n parts                        count % n == 0
///   reduceScatter  n parts                           part r is reduced, others undefined count % n == 0
///   broadcast      root holds the value              the root's value
///   allToAll       part q is for member q            part q is from member q            count % n == 0
///   permute        `data` is mine                    `out` is member `peer`'s data (out != data)
///   send, recv     count values to, from `peer`
///
/// `tag` is the id of the global communication that this is a part of: members (and both ends of a send) that
/// meet with different tags, kinds, types, reductions, counts or roots stop the job with an error naming both.
struct Communication {
  Kind kind = Kind::allReduce;
  Reduction reduction = Reduction::none;
  Type type = Type::f32;
  uint32_t communicator = 0; ///< index in the table given to connect()
  uint32_t peer = 0;         ///< member index: send's receiver, recv's sender, broadcast's root, permute's source
  uint64_t tag = 0;
  uint64_t count = 0; ///< elements of the whole operand; 0 is legal and still meets
  void *data = nullptr; ///< the operand, inside this rank's arena
  void *out = nullptr;  ///< permute only
  const char *id = "";  ///< instruction id for errors ("stage0/backward:88"); must outlive the communication
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

/// Another rank failed or the job was told to end; what() says why where it is known.
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

  /// Appends a unit to a queue: one communication, or a group of at most 64 that progress together and are
  /// done together. All communications of a unit belong to communicators bound to `queue`. Checks bounds
  /// (operand inside the arena, peers, divisibility) and throws std::invalid_argument. Never blocks.
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

  /// Ranks whose arrival the heads of the queues wait for now, for breadcrumbs and diagnoses.
  virtual std::vector<uint32_t> waitingFor() const = 0;

  /// Bytes that this rank has sent on a communicator since connect(): what its communications would send on
  /// rings, whatever the engine does. With n members and B the bytes of the whole operand (count elements):
  ///   allReduce 2(n-1)/n B; allGather, reduceScatter and allToAll (n-1)/n B; broadcast (n-1) B at the root
  ///   and 0 elsewhere; permute B unless from itself; send B; recv 0.
  /// Fractions are summed exactly per communicator and rounded down once.
  virtual uint64_t sentBytes(uint32_t communicator) const = 0;

  /// Sum of sentBytes over all communicators.
  virtual uint64_t sentBytes() const = 0;
};

} // namespace par::comm

#endif // PAR_COMM_COMMUNICATOR_H
