#include "ChoiceDraft.h"
#include "llvm/ADT/STLExtras.h"

using namespace par;

ChoiceDraft::ChoiceDraft(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks,
                         const RecomputeChoice &choice)
    : problem(problem), peaks(peaks), saved(choice.saved), moved(choice.moved),
      now(problem.values.size(), Now::Unwanted), users(problem.values.size(), 0), bytes(peaks.size(), 0) {
  for (unsigned index = 0; index < now.size(); ++index) {
    now[index] = choice.saved[index]        ? Now::Saved
                 : choice.moved[index]      ? Now::Moved
                 : choice.recomputed[index] ? Now::Recomputed
                                            : Now::Unwanted;
    count(index, 1);
    if (choice.recomputed[index])
      for (unsigned input : problem.values[index].inputs)
        ++users[input];
  }
}

int64_t ChoiceDraft::bytesOf(const BytePeak &peak, unsigned index) const {
  switch (now[index]) {
  case Now::Saved:
    return peak.saved[index];
  case Now::Moved:
    return peak.moved[index];
  case Now::Recomputed:
    return peak.recomputed[index];
  case Now::Unwanted:
    break;
  }
  return 0;
}

/// Adds what the value has and takes to all sums, or takes it off.
void ChoiceDraft::count(unsigned index, int sign) {
  for (auto [sum, peak] : llvm::zip(bytes, peaks))
    sum += sign * bytesOf(peak, index);
  recomputeNs += now[index] == Now::Recomputed ? sign * problem.values[index].cost : 0;
  copyNs += now[index] == Now::Moved ? sign * problem.values[index].copyNs : 0;
}

void ChoiceDraft::set(unsigned index, Now next) {
  count(index, -1);
  now[index] = next;
  count(index, 1);
}

/// Saves the value; what only it was computed from is not wanted any more.
void ChoiceDraft::save(unsigned index) {
  changes.push_back({index, now[index]});
  set(index, Now::Saved);
  for (size_t change = changes.size() - 1; change < changes.size(); ++change) {
    if (changes[change].second != Now::Recomputed)
      continue;
    for (unsigned input : problem.values[changes[change].first].inputs)
      if (--users[input] == 0 && !problem.values[input].needed && now[input] != Now::Unwanted) {
        changes.push_back({input, now[input]});
        set(input, Now::Unwanted);
      }
  }
}

void ChoiceDraft::undo() {
  for (auto [index, before] : llvm::reverse(changes)) {
    set(index, before);
    if (before == Now::Recomputed)
      for (unsigned input : problem.values[index].inputs)
        ++users[input];
  }
  changes.clear();
}

bool ChoiceDraft::fits() const {
  return llvm::all_of(llvm::zip(bytes, peaks), [](auto pair) {
    auto &[sum, peak] = pair;
    return sum <= peak.limit;
  });
}

/// The ns and bytes of all peaks that each value would save and take.
std::vector<ChoiceDraft::Gain> ChoiceDraft::findGains() {
  std::vector<Gain> gains;
  for (unsigned index = 0; index < now.size(); ++index) {
    if (now[index] != Now::Recomputed && now[index] != Now::Moved)
      continue;
    int64_t ns = cost(), before = 0, after = 0;
    for (int64_t sum : bytes)
      before += sum;
    save(index);
    for (int64_t sum : bytes)
      after += sum;
    if (ns > cost() && fits())
      gains.push_back({index, ns - cost(), std::max<int64_t>(after - before, 0)});
    undo();
  }
  llvm::stable_sort(gains, [](const Gain &one, const Gain &other) {
    return __int128(one.ns) * other.bytes > __int128(other.ns) * one.bytes;
  });
  return gains;
}

bool ChoiceDraft::fillOnce() {
  bool changed = false;
  for (const Gain &gain : findGains()) {
    if (now[gain.index] != Now::Recomputed && now[gain.index] != Now::Moved)
      continue;
    int64_t before = cost();
    save(gain.index);
    if (cost() >= before || !fits()) {
      undo();
      continue;
    }
    changes.clear();
    saved[gain.index] = true;
    moved[gain.index] = false;
    changed = true;
  }
  return changed;
}

void ChoiceDraft::fill() {
  constexpr int maxPasses = 4;
  for (int pass = 0; pass < maxPasses && fillOnce(); ++pass)
    ;
}
