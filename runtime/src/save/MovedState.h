// State that ranks hold in the layout of another member of the bundle's family (par-run --shrink), moved to the layout
// of this attempt in memory: the ranks send each other the parts that they lack, and load them as those of a save.
// A part of a lost rank that no other one has comes from its mirror (--mirror).
//
// Each seat has two memories (comm::Placing::memories). The old layout stays in one of them until all ranks have the
// new one whole in the other, so that a rank that is lost meanwhile costs nothing:
//
//              before        while it is moved             after
//     memory   4 ranks: b    4 ranks: b                    -
//     other    -             3 ranks: some have b, some -  3 ranks: b
#pragma once

#include "HeldSources.h"

namespace par::core {

class MovedState {
public:
  /// Collective in an attempt after the first, of ranks that have two memories. `family`: the bundles of all members;
  /// `own` is this attempt's. `place` begins messages.
  MovedState(comm::Control &control, const std::vector<const format::Bundle *> &family, const format::Bundle &own,
             std::string place);

  /// By rank, the memory in which this attempt keeps its state.
  const std::vector<int> &memories() const { return into; }
  /// Whether the state is to be moved.
  bool moves() const { return source && !source->inPlace; }
  /// Why state that ranks hold cannot be moved; "" where it can, or there is none.
  const std::string &missing() const { return lacking; }
  /// ": moved from 4 ranks to 3", and ", in part from mirrors".
  std::string remark() const;
  /// The notes of the run, which rank 0 holds.
  std::vector<std::byte> notes();
  /// Collective. Gives each rank its parts, as a copy in `kept`.
  void moveTo(KeptState &kept);
  /// Once no rank needs it: gives the memory back that this attempt does not keep its state in.
  void release();

private:
  /// A rectangle of a tensor that a rank of this attempt needs.
  struct Wanted {
    uint32_t part = 0; ///< of the rank's
    KeptPart from{};   ///< of the rank `fromRank` of the old layout
    uint32_t fromRank = 0, sender = 0;
    const format::Rectangle *rectangle = nullptr;
    bool mirrored = false; ///< `sender` has it in the mirror of `fromRank`
    std::vector<std::byte> bytes{};
    uint64_t size() const;
  };
  /// The layout that a plan takes parts from.
  struct OldLayout {
    explicit OldLayout(const format::Bundle &bundle);
    std::vector<std::map<std::string, KeptPart>> parts;            ///< by rank, then by the tensor's name
    std::map<std::string, std::vector<const format::Tensor *>> of; ///< tensors that have a value, by its name
  };

  void choose();
  /// Whether all that this attempt's ranks need is held; fills `wanted`.
  bool plan(const HeldSource &from);
  bool planPart(const HeldSource &from, const OldLayout &old, uint32_t target, uint32_t part, const KeptPart &to);
  bool planTensor(const HeldSource &from, const OldLayout &old, uint32_t target, uint32_t part,
                  const format::Rectangle &needed, const format::Tensor &tensor);
  std::optional<Wanted> find(const HeldSource &from, const OldLayout &old, uint32_t target,
                             const format::Rectangle &rectangle, const format::Tensor &tensor);
  void exchange(uint32_t target);
  StoredArray arrayOf(uint32_t part) const;
  std::vector<std::byte> read(const Wanted &want);

  comm::Control &control;
  comm::Placing placing;
  const format::Bundle &own;
  std::string place;
  HeldMemories held;
  std::optional<HeldSource> source;
  uint32_t side = 0; ///< of `into`
  std::vector<int> into;
  std::string lacking;
  bool takesMirrors = false;
  std::vector<std::vector<Wanted>> wanted; ///< by rank of this attempt
};

} // namespace par::core
