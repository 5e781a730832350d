// A bundle as the proofs see it. V2 and V3 look at *actors*: first the roles, then, if that fails, the ranks. The map
// from ranks to roles is a homomorphism of the graphs of matched operations, so a proof about roles holds for ranks; a
// counterexample among roles need not, and is looked for again among ranks.
#pragma once

#include "par/verify/Verify.h"

namespace par::verify {

/// One communication of a role in an expanded entry.
struct CommOp {
  const format::Instruction *it = nullptr;
  const format::Run *run = nullptr;
  uint32_t block = 0, n = 0;
  /// Communications of one group are one unit of the engine; units are numbered in issue order.
  uint32_t unit = 0;
  /// Members of its group and its place there; 0 of 0 outside a group.
  uint32_t groupSize = 0, groupPlace = 0;
  /// Member index of the other side (send, recv).
  uint32_t peer = 0;
  /// Index into Manifest::communicators.
  uint32_t comm = 0;
};

/// The communications of one role in one entry, in issue order.
struct Trace {
  std::vector<CommOp> ops;
  uint32_t units = 0;
  uint64_t groups = 0;
};

/// Traces of all roles in the entry of that name.
std::vector<Trace> tracesOf(const format::Bundle &bundle, const std::string &entry);

/// The communicating actors: roles or ranks.
struct Actors {
  /// Role of each actor, and a rank that plays it.
  std::vector<uint32_t> role, rank;
  /// Actor of each rank.
  std::vector<uint32_t> of;
};
Actors roleActors(const format::Bundle &bundle);
Actors rankActors(const format::Bundle &bundle);

/// "rank 1  stage0/forward:61  send f32[2x128x128] to 5    block forward, microbatch 3, ONNX-NODE".
std::string describeOp(const format::Bundle &bundle, uint32_t rank, const CommOp &op);
/// "rank 1  stage0/forward:61  kernel gelu    block ..." for any instruction.
std::string describeStep(const format::Bundle &bundle, uint32_t rank, const format::Run &run, uint32_t n);

/// Places in the concatenation of all actors' operations.
class Nodes {
public:
  Nodes(const Actors &actors, const std::vector<Trace> &traces);
  uint32_t node(uint32_t actor, size_t op) const { return first[actor] + uint32_t(op); }
  uint32_t root(uint32_t node);
  void merge(uint32_t a, uint32_t b);
  size_t size() const { return parent.size(); }

private:
  std::vector<uint32_t> first, parent;
};

/// Whether a block reads or writes values of one microbatch. A run once a batch has the index of the batch's first
/// microbatch, and names slots.
bool computesOwn(const format::Program &program, const format::Block &block);

/// V1 beyond what the format checks: programs and manifest agree.
std::optional<Counterexample> checkBundle(const format::Bundle &bundle);
/// V1 of the files of kernels in `folder`: they have their form, and define the symbols that programs name.
std::optional<Counterexample> checkKernelFiles(const format::Bundle &bundle, const std::string &folder);
/// The fault of a kernel instruction that calls a builtin, if there is one.
std::optional<std::string> checkBuiltin(const format::Program &program, const format::Instruction &it);
/// Communications, copies and fills take all of their operands.
std::optional<Counterexample> checkWhole(const format::Bundle &bundle);
/// A rank gives an output once for a microbatch, and all of its ranks do.
std::optional<Counterexample> checkFetched(const format::Bundle &bundle);
/// Communicators, rectangles and immediates fit the ranks' coordinates.
std::optional<Counterexample> checkCoordinates(const format::Bundle &bundle);
/// A buffer that has the name of a tensor holds that one.
std::optional<Counterexample> checkStateNames(const format::Bundle &bundle);
/// Updates of a parameter take no other one's state.
std::optional<Counterexample> checkOwnState(const format::Bundle &bundle);
/// V2 for one entry; merges matching operations in `nodes`.
std::optional<Counterexample> matchEntry(const format::Bundle &bundle, const std::string &entry, const Actors &actors,
                                         const std::vector<Trace> &traces, Nodes &nodes);
/// V3 for one entry, after matchEntry. Raises `longest` to the longest chain of nodes.
std::optional<Counterexample> checkProgress(const format::Bundle &bundle, const std::string &entry,
                                            const Actors &actors, const std::vector<Trace> &traces, Nodes &nodes,
                                            uint64_t &longest);
/// Values that one rank gives to communication and to the host, and leaves in state, as names: hashes of the
/// instructions that made them, back to feeds, initial state and received tags. Ranks of one stage have the same names.
struct Lineage {
  struct Item {
    const format::Run *run; ///< nullptr: state at the end of an entry
    uint32_t n;             ///< instruction (coll, send, fetch), or buffer
    uint64_t name;
  };
  std::vector<std::vector<Item>> entries; ///< [entry]
};

/// V4 and V5 of one rank's program.
std::optional<Counterexample> checkMemory(const format::Bundle &bundle, uint32_t rank, Lineage &lineage);
/// V5 between ranks of different programs that hold the same tensors: they give corresponding values.
std::optional<Counterexample> checkReplicas(const format::Bundle &bundle, const std::vector<uint32_t> &ranks,
                                            const std::vector<Lineage> &lineages);
/// V5 of all programs of an entry at once: replicas, sums over ranks.
std::optional<Counterexample> checkJointly(const format::Bundle &bundle);
/// V6.
std::optional<Counterexample> checkPeak(const format::Bundle &bundle);

} // namespace par::verify
