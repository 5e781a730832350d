// Changes programs alike, in one role or in all.
#pragma once

#include "Alike.h"

#include <functional>

namespace par::toy {

/// Chooses a place, says in `what` which, and changes it. Alike.cpp has what all faults use; BreakCommunications.cpp
/// and BreakSteps.cpp have the faults.
class Breaker {
public:
  Breaker(format::Bundle &bundle, std::optional<uint32_t> only, Random &random)
      : bundle(bundle), only(only), random(random) {}
  bool apply(Fault fault);
  std::string what;

private:
  struct Spot {
    uint32_t role = 0, block = 0, n = 0;
  };
  using Wanted = std::function<bool(const format::Instruction &)>;

  std::vector<Spot> spotsWhere(const Wanted &wanted) const;
  bool choose(const Wanted &wanted);
  std::vector<Spot> alike() const;
  void erase(const Spot &place);
  format::Instruction *groupOf(const Spot &place);
  bool insert(const Spot &place, format::Instruction it);
  format::Instruction &at(const Spot &place) {
    return bundle.programs[place.role].blocks[place.block].instructions[place.n];
  }

  // BreakCommunications.cpp
  bool fewer(bool collectives);
  bool reduceTwice();
  bool reduceMore();
  bool otherGroups();
  bool memberOrder();
  bool tradePeers();
  bool moveReduction();
  bool otherReduction();
  // BreakSteps.cpp
  bool drop(const Wanted &wanted);
  bool dropRun();
  bool otherOperand();
  bool oneSlot();
  bool stepTwice();
  bool coordinate();
  bool callNumbers();
  bool tradeTensors();
  bool rectangles();
  bool otherOutput();

  format::Bundle &bundle;
  std::optional<uint32_t> only;
  Random &random;
  Spot spot;
};

/// Gives a rank a program that no other rank runs, and returns its role.
uint32_t giveOwnProgram(format::Bundle &bundle, uint32_t rank);

} // namespace par::toy
