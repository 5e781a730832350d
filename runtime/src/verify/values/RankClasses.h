// Classes of ranks that have equal values. Ranks of one program compute the same expression of different data. A
// *spread* says on which data: a class for each rank of the world, so that two ranks have equal values if expression
// and class are equal. A class is a set of atoms; an atom is one class of a partition of the ranks, as that of a tensor
// by rectangles. So a value that depends on two tensors has the union of both, once, however often it is used. There
// are few partitions in a bundle, and each union is made once: the cost of an instruction does not grow with the ranks.
// Most values are on the ranks of one program. So ranks stand in an order that has these together, and a spread lists
// only the run of ranks that have a class: its cost is that of its program's ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace par::verify {

class RankClasses {
public:
  /// Index of a spread. 0: equal on all ranks.
  using Spread = uint32_t;

  /// `order` has each rank once.
  explicit RankClasses(const std::vector<uint32_t> &order);

  /// A rank, and a number that equal ranks share. Ranks without a key have no such value; the last one of a rank
  /// counts.
  using Key = std::pair<uint32_t, uint64_t>;
  /// Ranks are equal where their keys are. `route`, a number of its own: keys say by which of several ways each rank
  /// got its value. Each route has atoms of its own: a rank that got back a part of what several ranks had sent has the
  /// atoms of all of them already, and only its way tells it from the others. 0: keys say which data ranks have.
  Spread byKeys(const std::vector<Key> &keys, uint64_t route = 0);
  /// The spread of a value that depends on both.
  Spread both(Spread a, Spread b);
  /// A rank that gets its class from another one, out of a spread of a list.
  struct Move {
    uint32_t rank, source, which;
  };
  /// Each rank has the class that its source has in the spread `which` of `from`; others have none. `own`: classes stay
  /// as they are, so that both sides of a transfer have the same; it becomes false if a rank has a class of its own in
  /// that spread, which would be mistaken for the other one's.
  Spread moved(const std::vector<Spread> &from, const std::vector<Move> &moves, bool &own);
  uint32_t classOf(Spread spread, uint32_t rank) const { return spreads[spread].at(places[rank]); }

private:
  /// Classes of the ranks at places [begin, begin + classes.size()); all others have class 0, and the outermost ones
  /// have not.
  struct List {
    uint32_t begin = 0;
    std::vector<uint32_t> classes;

    uint32_t end() const { return begin + uint32_t(classes.size()); }
    uint32_t at(uint32_t place) const { return place - begin < classes.size() ? classes[place - begin] : 0; }
    bool operator==(const List &) const = default;
    uint64_t hash() const;
    void trim();
  };
  /// A partition by keys: its spread, in which number n > 0 of the pattern is class `first` + n.
  struct Partition {
    Spread spread;
    uint32_t first;
    uint64_t route;
  };

  Spread intern(List list);
  uint32_t internClass(std::vector<uint64_t> atoms);
  uint32_t join(uint32_t a, uint32_t b);

  std::vector<uint32_t> places; ///< [rank]: its place in the order
  std::vector<List> spreads;
  std::unordered_multimap<uint64_t, Spread> known; ///< by hash
  std::vector<std::vector<uint64_t>> classes;      ///< sorted atoms
  std::map<std::vector<uint64_t>, uint32_t> knownClasses;
  std::unordered_multimap<uint64_t, Partition> partitions; ///< by hash of the pattern
  uint32_t partitionCount = 0;
  std::vector<uint64_t> keyAt; ///< [place]: noKey, except in byKeys
  std::unordered_map<uint64_t, Spread> unions;
  std::unordered_map<uint64_t, uint32_t> joins;
};

} // namespace par::verify
