// Runs an entry of all programs at once on expressions instead of numbers: each player is a role (or a rank), each
// value a Term. A receive gets the sender's terms; a reduction is the sum of its members' terms. It needs V1 to V5:
// sides match, no rank waits for ever, and a read sees the last write of its buffer, so slots are told apart by buffer,
// not by address.
#pragma once

#include "Cursor.h"
#include "DataSpreads.h"
#include "MicrobatchSets.h"
#include "Routes.h"
#include "Steps.h"

#include <array>
#include <map>
#include <set>
#include <unordered_set>

namespace par::verify {

/// An operand as an instruction reads it.
struct Reading {
  Content content;
  uint64_t name = 0;
  RankClasses::Spread spread = 0;
  uint32_t microbatches = 0;
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
  DataSpreads spreads{bundle.manifest, classes};
  Steps steps;
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
    return player.instruction(made);
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
    std::vector<std::vector<uint32_t>> ranks;   ///< [player]: those of its party, in order
    std::vector<std::vector<Post>> posts;       ///< [player]
    std::vector<size_t> taken;                  ///< [player]: results
  };
  // JointRun.cpp
  const Step &stepOf(const Cursor &player, const format::Run &run, uint32_t n) {
    return steps.of(player.role, run.block)[n];
  }
  void begin(Cursor &player);
  bool advance(uint32_t player, Found &found);
  void local(Cursor &player, const format::Run &run, uint32_t n);
  void compute(Cursor &player, const format::Run &run, uint32_t n);
  void readOperands(Cursor &player, const format::Run &run, uint32_t n);
  void writeResult(Cursor &player, const format::Run &run, uint32_t n, uint32_t operand, const Term &term,
                   const std::vector<uint32_t> &of);
  void read(Cursor &player, const format::Run &run, uint32_t n, uint32_t operand, uint64_t bytes, Content &content);
  uint32_t microbatchesOf(const Cursor &player, const format::Run &run, const Content &content, bool adds);
  Found lacksMicrobatch(const Cursor &player, const format::Run &run, uint32_t n, uint32_t operand, uint32_t set);
  Found addsTwice(const Cursor &player, const format::Run &run, uint32_t n);
  bool isConstant(const Term &term) const { return term.name <= zerosTerm || constants.count(term.name); }
  bool counts(const Cursor &player, const Content &content) const;
  Found ofLaterMicrobatch(const Cursor &player, const format::Run &run, uint32_t n, uint32_t operand,
                          const Content &content);
  /// Each piece is made by itself, or, if not, all of them together.
  void write(Cursor &player, const format::Run &run, uint32_t n, uint32_t operand, uint64_t offset, uint64_t bytes,
             Content &content, bool apart = false);
  void writeWhole(Cursor &player, const format::Run &run, uint32_t n, uint32_t operand, uint64_t offset, uint64_t bytes,
                  const Term &term) {
    one = whole(term, bytes);
    write(player, run, n, operand, offset, bytes, one);
  }
  uint32_t slotOf(const format::Operand &operand, const Step::Place &place, const format::Run &run) const {
    return place.depth == 1 ? 0 : format::slotOf(operand.slot, place.depth, run);
  }
  // JointCommunication.cpp
  void meet();
  bool leavesOut(const Cursor &player, const format::Instruction &it, const format::Run &run, uint32_t rank) const;
  Found give(uint32_t player, const format::Run &run, uint32_t n);
  bool complete(uint32_t player, const format::Run &run, uint32_t n, std::map<uint64_t, size_t> &ahead);
  Found take(uint32_t player, const format::Run &run, uint32_t n);
  Found takeCollective(uint32_t player, const format::Run &run, uint32_t n);
  void receive(uint32_t player, const format::Run &run, uint32_t n);
  Term arrived(const Sources &from, Term term, bool kept);
  Content move(Sources &from, const Content &given, uint64_t bytes);
  Content choose(Sources &from, const std::vector<Content> &given, uint64_t bytes);
  Content gathered(uint32_t player, uint32_t comm, size_t k, uint32_t member, uint64_t offset, uint64_t bytes);
  void allGather(uint32_t player, const format::Run &run, uint32_t n, size_t k);
  Found reduced(uint32_t player, uint32_t comm, size_t k, uint64_t offset, uint64_t bytes, Content &result);
  Term ownPart(uint32_t comm, const std::vector<Content> &parts);
  Spread spreadOfSum(uint32_t comm, const std::vector<uint32_t> &party, const std::vector<Spread> &of);
  Found reduceScatter(uint32_t player, const format::Run &run, uint32_t n, size_t k);
  const Post &postOf(uint32_t player, uint32_t comm, size_t k) const { return meetings[comm].posts[player][k]; }
  // Summands.cpp
  Found gives(uint32_t player, const format::Run &run, uint32_t n, const Content &content);
  Found summands(uint32_t comm, size_t k, const std::vector<uint32_t> &party, const std::vector<Term> &terms);
  Found reducesSum(const Cursor &player, const format::Run &run, uint32_t n, const Content &content) const;
  Found updatesByExtreme(const Cursor &player, const format::Run &run, uint32_t n);
  Found complaint;

  // Here so that their memory is used again from one instruction to the next.
  std::vector<Reading> readings; ///< [operand]
  Content one, cutting;

  Routes routes{bundle.manifest, playerOf};
  std::vector<JointComm> meetings; ///< [communicator]
  std::map<Channel, std::vector<Content>> sent;
  std::map<Channel, size_t> received;
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
