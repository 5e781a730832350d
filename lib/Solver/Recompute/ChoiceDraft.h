// A choice that is changed value by value.
#pragma once

#include "ChoiceStates.h"

namespace par {

/// A choice with its bytes at each peak. A value that is saved need not be recomputed, nor what only it was computed
/// from; a change takes as long as the values that change.
class ChoiceDraft {
public:
  ChoiceDraft(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks, const RecomputeChoice &choice);

  /// Saves single values more while the limits allow it, those that gain most ns a byte first.
  void fill();
  RecomputeChoice take() const { return problem.evaluate(saved, moved); }

private:
  enum class Now : uint8_t { Unwanted, Saved, Moved, Recomputed };
  struct Gain {
    unsigned index;
    int64_t ns, bytes;
  };
  int64_t bytesOf(const BytePeak &peak, unsigned index) const;
  int64_t cost() const { return recomputeNs + problem.unhidden(copyNs); }
  void count(unsigned index, int sign);
  void set(unsigned index, Now next);
  void save(unsigned index);
  void undo();
  bool fits() const;
  std::vector<Gain> findGains();
  bool fillOnce();

  const RecomputeProblem &problem;
  const std::vector<BytePeak> &peaks;
  std::vector<bool> saved, moved;
  std::vector<Now> now;
  std::vector<unsigned> users; ///< recomputed ones, by value
  std::vector<int64_t> bytes;  ///< by peak
  int64_t recomputeNs = 0, copyNs = 0;
  std::vector<std::pair<unsigned, Now>> changes; ///< since the last one that stays, with what was before
};

} // namespace par
