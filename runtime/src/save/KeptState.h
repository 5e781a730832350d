// The state of a rank in memory that outlives its process: what training changes of it, in two copies of which one is
// whole at any moment.
//
// Every rank copies at the same boundaries between steps, and one exchange among all ranks lies between two copies, the
// one that ends a step. So when a rank begins to write boundary b', all have boundary b before it whole and still do:
// a copy goes over the other one. And no rank begins the boundary after b' before all have written b'. Wherever ranks
// end, each of them thus holds b, and maybe b' as well: the newest boundary that all hold is b' or b.
//
// Ranks that see each other's memory, as all of one par-run -n do, divide what they hold in common (KeptShares.h). By
// the same exchanges the shares of b or b' are all whole then, and no rank writes over one of them before all have made
// another step from it.
//
// A boundary's state is a function of its step: a copy after the boundary from which a run goes on is as good as the
// one that is made again.
#pragma once

#include "CopyMemory.h"
#include "KeptShares.h"
#include "par/session/Session.h"

#include <array>
#include <functional>
#include <map>

namespace par::core {

class KeptState {
public:
  /// `place` begins messages; `descriptors`: by rank, that of its memory, -1 where this rank does not see it; empty:
  /// the run keeps none. `goesOn`: what lies in it counts, if it is of this rank and bundle. Throws Failure where
  /// memory is lacking.
  KeptState(const Session &session, const format::Bundle &bundle, const std::string &place,
            std::vector<int> descriptors, bool goesOn);

  /// The identity of the memory of a rank of this bundle.
  static std::string identityOf(const format::Bundle &bundle, uint32_t rank);
  bool keeps() const { return bool(memory); }
  /// Whether this rank has neither a boundary nor the begin: another process of it had them, and took them along.
  bool lost() const { return keeps() && !memory.begun() && boundaries().empty(); }
  /// Every rank begins with the initial values.
  void beginAgain();
  /// Whether ranks see each other's memory, so that none is lost by itself.
  bool together() const { return isTogether; }
  /// Bytes of the state, and of what this rank copies.
  uint64_t bytes() const { return shares.bytes(); }
  uint64_t copiedBytes() const { return shares.copiedBy(session.rank()); }
  /// Boundaries of which a copy is whole, oldest first.
  std::vector<Boundary> boundaries() const;

  /// Copies this rank's share of the session's state over the older copy.
  void copy(const Boundary &boundary);
  /// Collective where ranks divide the state. Gives the session the state of a boundary that all ranks hold. `stays`:
  /// one of which no rank's copy is the spare one, which stays until the next copy is whole.
  void restore(uint64_t step, uint64_t stays);
  /// Reads this rank's share of the session's state, as copy() does.
  void readInto(std::span<std::byte> copy) const;
  /// For its spare copy.
  CopyMemory &ownMemory() { return memory; }
  /// A whole copy; of ranks that are not together, which lies as keptParts() says.
  std::span<const std::byte> copyOf(uint64_t step) const { return memory.bytesAt(memory.find(step)); }
  /// A copy that is filled from elsewhere: it is whole after end().
  std::span<std::byte> begin();
  void end(const Boundary &boundary);
  /// A part of this rank's state, by its index.
  using FillPart = std::function<void(uint32_t part, const format::Tensor &tensor, std::span<std::byte> to)>;
  /// A copy that holds what `visit` writes; parts of which this rank copies nothing are left out.
  void fill(const Boundary &boundary, const FillPart &visit);

  /// Memory beside the copies for what the run itself writes down; zeroed at the first start.
  template <typename Notes>
  Notes &notes() {
    static_assert(std::is_trivially_copyable_v<Notes> && sizeof(Notes) <= CopyMemory::notesBytes);
    return *reinterpret_cast<Notes *>(keeps() ? memory.notes() : ownNotes.data());
  }

private:
  size_t older() const { return newest == 0 ? 1 : 0; }
  /// The bytes of a boundary in the memory of any rank that this one sees.
  std::span<const std::byte> heldBy(uint32_t rank, uint64_t step);

  const Session &session;
  std::vector<int> descriptors;
  KeptShares shares;
  bool isTogether;
  CopyMemory memory;
  std::map<uint32_t, CopyMemory> others;
  size_t newest = CopyMemory::copies; ///< the copy that stays while the other one is written
  alignas(16) std::array<std::byte, CopyMemory::notesBytes> ownNotes = {};
};

} // namespace par::core
