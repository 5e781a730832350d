// Runs an entry of all programs at once on expressions instead of numbers: each player is a role (or a rank), each
// value a Term. A receive gets the sender's terms; a reduction is the sum of its members' terms. It needs V1 to V5:
// sides match, no rank waits for ever, and a read sees the last write of its buffer, so slots are told apart by buffer,
// not by address.
#pragma once

#include "Contents.h"
#include "MicrobatchSets.h"
#include "Routes.h"
#include "verify/accesses/Accesses.h"

#include <array>
#include <map>
#include <set>
#include <unordered_set>

namespace par::verify {

/// An operand that an instruction of a run has written, and its readers.
struct Made {
  const format::Run *run = nullptr;
  uint32_t n = 0, operand = 0;
  bool read = false;
  bool adds = false;                                ///< to a value that a run of another microbatch has left there
  bool counts = false;                              ///< made only of counters, hyperparameters and constants
  std::vector<std::pair<uint32_t, uint32_t>> users; ///< made of it by kernels, calls and copies: from one to before one
  std::vector<uint32_t> sums;                       ///< communicators over which it was summed
};

/// Bytes [begin, end) of a state's slot: how often kernels and calls have written them, and how often others.
struct Written {
  uint64_t begin, end;
  uint32_t computed, moved;
};

/// A program on its way through an entry.
struct Cursor {
  uint32_t role = 0;
  std::vector<uint32_t> ranks;
  const format::Program *program = nullptr;
  const format::Entry *entry = nullptr;
  std::vector<std::vector<Content>> slots; ///< [buffer][slot], of those that are no alias
  std::vector<Made> made;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Written>> state; ///< by buffer and slot
  std::vector<bool> own; ///< [block]: it computes with values of one microbatch
  size_t run = 0;
  uint32_t n = 0;
  bool posted = false; ///< the communication there has given its operand
};

/// A player's part in a collective.
struct Post {
  const format::Run *run;
  uint32_t n;
  Content content;
};

/// A result that was fetched.
struct Fetched {
  uint32_t player;
  const format::Run *run;
  uint32_t n;
  Content content;
};

class JointRun {
public:
  JointRun(const format::Bundle &bundle, const Actors &actors, const std::string &entry);
  /// Runs to the end. `ended` says whether all players got there: roles may wait for each other where ranks do not.
  std::optional<Counterexample> run();
  bool ended() const;

  const format::Bundle &bundle;
  RankClasses classes;
  MicrobatchSets microbatches;
  std::unordered_set<uint64_t> initial; ///< names of values from before the entry
  std::vector<Cursor> players;
  std::vector<uint32_t> playerOf;                                          ///< [rank]
  std::map<std::pair<std::string, int64_t>, std::vector<Fetched>> fetched; ///< by output and microbatch
  std::string entry;

  /// A value, and one computed from it before it was summed over ranks of a communicator.
  struct Early {
    uint32_t player, made, user, comm;
    const format::Run *run;
    uint32_t n;
  };
  std::vector<Early> early;

  const format::Instruction &instruction(const Cursor &player, const Made &made) const {
    return player.program->blocks[made.run->block].instructions[made.n];
  }
  std::string line(const Cursor &player, const format::Run &run, uint32_t n) const {
    return describeStep(bundle, player.ranks.front(), run, n);
  }

private:
  using Found = std::optional<Counterexample>;
  using Spread = RankClasses::Spread;
  /// A communicator, with the players that meet there.
  struct JointComm {
    std::vector<std::vector<uint32_t>> parties; ///< [player]: those that its collectives wait for
    std::vector<std::vector<Post>> posts;       ///< [player]
    std::vector<size_t> taken;                  ///< [player]: results
  };
  // JointRun.cpp
  void begin(Cursor &player);
  Spread spreadOf(const format::Tensor &tensor);
  Spread spreadOf(const format::Input &input);
  Spread spreadOf(const std::string &axis);
  bool advance(uint32_t player, Found &found);
  void local(Cursor &player, const format::Run &run, uint32_t n);
  void compute(Cursor &player, const format::Run &run, uint32_t n, const std::vector<uint64_t> &bytes);
  void writeResult(Cursor &player, const format::Run &run, uint32_t n, uint32_t operand, const Content &content,
                   const std::vector<uint32_t> &of, const std::vector<Content> &contents);
  Content read(Cursor &player, const format::Run &run, uint32_t n, uint32_t operand, uint64_t bytes);
  uint32_t microbatchesOf(const Cursor &player, const format::Run &run, const Content &content, bool adds);
  Found lacksMicrobatch(const Cursor &player, const format::Run &run, uint32_t n, uint32_t operand, uint32_t set) const;
  Found addsTwice(const Cursor &player, const format::Run &run, uint32_t n, const std::vector<Content> &contents) const;
  bool addsUp(const Cursor &player, const format::Run &run, const Content &content, bool inPlace) const;
  bool isConstant(const Term &term) const { return term.name <= zerosTerm || constants.count(term.name); }
  bool counts(const Cursor &player, const Content &content) const;
  /// Notes that what is made from `first` on, up to now, is computed from a content.
  void noteUsers(Cursor &player, const Content &content, size_t first);
  void noteWritten(Cursor &player, const format::Run &run, uint32_t n, uint32_t operand, uint64_t begin,
                   uint64_t bytes);
  Found ofLaterMicrobatch(const Cursor &player, const format::Run &run, uint32_t n, uint32_t operand,
                          const Content &content) const;
  void write(Cursor &player, const format::Run &run, uint32_t n, uint32_t operand, uint64_t offset, uint64_t bytes,
             Content content);
  Content &slotOf(Cursor &player, const format::Run &run, const format::Operand &operand, uint64_t &offset);
  // JointCommunication.cpp
  void meet();
  uint32_t indexOf(const Cursor &player, const format::Instruction &it) const;
  bool leavesOut(const Cursor &player, const format::Instruction &it, const format::Run &run, uint32_t rank) const;
  Found give(uint32_t player, const format::Run &run, uint32_t n);
  bool complete(uint32_t player, const format::Run &run, const format::Instruction &it,
                std::map<uint64_t, size_t> &ahead);
  Found take(uint32_t player, const format::Run &run, uint32_t n);
  Found takeCollective(uint32_t player, const format::Run &run, uint32_t n);
  void receive(uint32_t player, const format::Run &run, uint32_t n);
  Content choose(Sources &from, const std::vector<Content> &given, uint64_t bytes);
  Content gathered(uint32_t player, uint32_t comm, size_t k, uint32_t member, uint64_t offset, uint64_t bytes);
  Found reduced(uint32_t player, uint32_t comm, size_t k, uint64_t offset, uint64_t bytes, Content &result);
  Content ownPart(uint32_t player, uint32_t comm, const std::vector<Content> &parts, uint64_t bytes);
  Spread spreadOfSum(uint32_t comm, const std::vector<uint32_t> &party, const std::vector<Spread> &of);
  Found reduceScatter(uint32_t player, const format::Run &run, uint32_t n, size_t k);
  const Post &postOf(uint32_t player, uint32_t comm, size_t k) const { return meetings[comm].posts[player][k]; }
  // Summands.cpp
  Found gives(uint32_t player, const format::Run &run, uint32_t n, const Content &content);
  Found summands(uint32_t comm, size_t k, const std::vector<uint32_t> &party, const std::vector<Term> &terms);
  Found reducesSum(const Cursor &player, const format::Run &run, uint32_t n, const Content &content) const;
  Found updatesByExtreme(const Cursor &player, const format::Run &run, uint32_t n,
                         const std::vector<Content> &contents) const;
  Found complaint;

  Routes routes{bundle.manifest, playerOf};
  std::vector<JointComm> meetings; ///< [communicator]
  std::map<Channel, std::vector<Content>> sent;
  std::map<Channel, size_t> received;
  std::map<std::string, Spread> spreads;                             ///< of tensors, inputs, axes
  std::map<std::string, std::vector<const format::Tensor *>> copies; ///< a tensor and its copies, by its name
  std::unordered_set<uint64_t> constants; ///< names of fills, and of values computed only from them
  std::unordered_set<uint64_t> counters;  ///< names of counters and hyperparameters before the entry
  std::map<std::vector<uint64_t>, Spread> sums;
  std::set<std::vector<uint64_t>> apart;          ///< summands that were found to differ
  std::map<std::vector<uint64_t>, Spread> parted; ///< of values of which each rank has a part
};

/// Whether entries read an instruction's result, by role, block, instruction and operand.
using Uses = std::map<std::array<uint32_t, 4>, bool>;
/// A value of one microbatch is read if those of others are. Notes reads in `uses`.
std::optional<Counterexample> checkUnread(const JointRun &joint, Uses &uses);
/// Something that each kernel, call and fill makes is read in some entry.
std::optional<Counterexample> checkUseless(const format::Bundle &bundle, const Uses &uses);
/// A value computed from a part of a sum over ranks is summed over them, too.
std::optional<Counterexample> checkPartialSums(const JointRun &joint);
/// State that an entry writes it writes wholly, and once a batch.
std::optional<Counterexample> checkUpdates(const JointRun &joint);
/// Ranks that hold the same rectangle of a tensor, or report the same metric, end with the same values.
std::optional<Counterexample> checkReplicas(const JointRun &joint);

} // namespace par::verify
