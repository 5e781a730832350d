// The state of a rank in memory that outlives its process: what training changes of it, in two copies of which one is
// whole at any moment.
//
// Every rank copies at the same boundaries between steps, and one exchange among all ranks lies between two copies, the
// one that ends a step. So when a rank begins to write boundary b', all have boundary b before it whole and still do:
// a copy goes over the other one. And no rank begins the boundary after b' before all have written b'. Wherever ranks
// end, each of them thus holds b, and maybe b' as well: the newest boundary that all hold is b' or b.
//
// A boundary's state is a function of its step: a copy after the boundary from which a run goes on is as good as the
// one that is made again.
#pragma once

#include "comm/shared/Memory.h"
#include "par/session/Session.h"

#include <array>
#include <cmath>

namespace par::core {

/// A boundary between two steps, and what a run knows there beside its tensors.
struct Boundary {
  uint64_t step = 0, rows = 0, skipped = 0; ///< as in RunPosition
  double lastLoss = std::nan("");
  uint64_t resident = 0; ///< bytes of the arena, as they were measured last
  bool saidIgnored = false;

  std::string encode() const;
  /// Reads one from the front of the text and removes it.
  static Boundary decode(std::string &text);
};

/// A part of a copy: the first slot of a buffer, which is the one that counts at a boundary.
struct KeptPart {
  const format::Tensor *tensor = nullptr;
  uint32_t buffer = 0;
  uint64_t at = 0, bytes = 0;
};
/// Whether a tensor is other than the bundle or a file of weights says once a step is made.
bool changesInTraining(const format::Tensor &tensor);
/// The parts of a rank's copy: the buffers of all tensors that training changes, in the program's order.
std::vector<KeptPart> keptParts(const format::Bundle &bundle, uint32_t rank);

class KeptState {
public:
  /// `place` begins messages; `descriptor` is that of this rank's memory; -1: the run keeps none. `goesOn`: what lies
  /// in it counts, if it is of this rank and bundle. Throws Failure where memory is lacking.
  KeptState(const Session &session, const format::Bundle &bundle, const std::string &place, int descriptor,
            bool goesOn);

  bool keeps() const { return !memory.bytes.empty(); }
  /// Whether this rank has neither a boundary nor the begin: another process of it had them, and took them along.
  bool lost() const;
  /// Every rank begins with the initial values.
  void beginAgain();
  /// Bytes of one copy.
  uint64_t bytes() const { return total; }
  const std::vector<KeptPart> &parts() const { return all; }
  /// Boundaries of which a copy is whole, oldest first.
  std::vector<Boundary> boundaries() const;

  /// Copies the session's state over the older copy.
  void copy(const Boundary &boundary);
  /// Gives the session the state of a boundary of which a copy is whole.
  void restore(uint64_t step);
  /// A whole copy.
  std::span<const std::byte> copyOf(uint64_t step) const;
  /// A copy that is filled from elsewhere: it is whole after end().
  std::span<std::byte> begin();
  void end(const Boundary &boundary);

  /// Memory beside the copies for what the run itself writes down; zeroed at the first start.
  template <typename Notes>
  Notes &notes() {
    static_assert(std::is_trivially_copyable_v<Notes> && sizeof(Notes) <= notesBytes);
    return *reinterpret_cast<Notes *>(notesAt());
  }

private:
  static constexpr size_t notesBytes = 256, copies = 2;
  struct Copy;
  struct Header;
  Header &header() const;
  std::byte *notesAt();
  Copy &copyAt(size_t index) const;
  std::span<std::byte> bytesAt(size_t index) const;
  /// The copy of a boundary; `copies` where none is whole.
  size_t find(uint64_t step) const;
  void open(const std::string &place, const std::string &identity, int descriptor, bool goesOn);

  const Session &session;
  std::vector<KeptPart> all;
  uint64_t total = 0;
  comm::Mapping memory;
  size_t newest = copies; ///< the copy that stays while the other one is written
  alignas(16) std::array<std::byte, notesBytes> ownNotes = {};
};

} // namespace par::core
