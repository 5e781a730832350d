// Disjoint groups of ranks, and the place of each rank in them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

namespace par::format {

/// The group that a rank is in and its member index there.
struct Membership {
  uint32_t group = 0, member = 0;
};

/// Lists of ranks, read like a vector. They change as a whole only: the table from rank to place is built once for each
/// set of lists, so that a look-up takes log2 of the members and not all of them.
class RankGroups {
public:
  using Lists = std::vector<std::vector<uint32_t>>;

  RankGroups() = default;
  RankGroups(Lists lists);
  RankGroups(std::initializer_list<std::vector<uint32_t>> lists) : RankGroups(Lists(lists)) {}

  const Lists &lists() const { return groups; }
  Lists::const_iterator begin() const { return groups.begin(); }
  Lists::const_iterator end() const { return groups.end(); }
  size_t size() const { return groups.size(); }
  bool empty() const { return groups.empty(); }
  const std::vector<uint32_t> &operator[](size_t group) const { return groups[group]; }
  bool operator==(const RankGroups &other) const { return groups == other.groups; }

  /// nullopt when `rank` is in no group; the first place when unchecked lists have it twice.
  std::optional<Membership> find(uint32_t rank) const;

private:
  struct Place {
    uint32_t rank;
    Membership membership;
  };

  Lists groups;
  std::vector<Place> places; ///< by rank
};

} // namespace par::format
