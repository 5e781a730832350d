// Values of cut forwards as a recompute problem, and the bytes at each place of their backwards.
#include "Cutting.h"
#include "../RecomputeTime.h"

#include "par/Base/TypeSize.h"
#include "par/Dialect/Space.h"

using namespace mlir;

namespace par {

/// ns of a copy to the host; -1 of a value that Offload does not move.
int64_t Cutting::copyTime(Value value, bool isFree) const {
  if (!moves || isFree || cast<RankedTensorType>(value.getType()).getNumElements() < minMovedElements)
    return -1;
  return costs.hostCopy(getByteSize(value)).ns;
}

unsigned Cutting::add(ForwardValue value, Entry entry) {
  problem.values.push_back(std::move(value));
  entries.push_back(std::move(entry));
  return entries.size() - 1;
}

/// An op with several results is a value of its own: saved, it saves all of them; recomputed, its results cost nothing
/// more.
void Cutting::addOp(Operation &op, unsigned index, ArrayRef<PlacedValue> results, int64_t copies,
                    const ValueSet &crossing) {
  std::vector<unsigned> inputs;
  for (Value operand : op.getOperands())
    inputs.push_back(number[operand]);
  int64_t cost = timeInFragment(&op, costs);
  if (results.size() > 1) {
    int64_t bytes = getByteSize(ValueRange(op.getResults())), residualBytes = 0;
    for (const PlacedValue &value : results)
      residualBytes -= value.isResidual && !value.isFree ? value.bytes : 0;
    const PlacedValue &first = results.front();
    inputs = {
        add({"", cost, bytes * copies, inputs, false, first.isFree},
            {index, SmallVector<Value, 1>(op.getResults()), false, first.made, first.lastUse, bytes, residualBytes})};
    cost = 0;
  }
  for (const PlacedValue &value : results) {
    bool isForced = crossing.contains(value.value);
    number[value.value] =
        add({"", cost, value.bytes * copies, isForced ? std::vector<unsigned>() : inputs, value.isResidual || isForced,
             value.isFree, copyTime(value.value, value.isFree)},
            {index, {value.value}, false, value.made, value.lastUse, value.bytes, value.isResidual ? value.bytes : 0});
  }
}

void Cutting::addStage(unsigned index, std::vector<unsigned> stageCuts, int64_t weight, int64_t lastWeight) {
  const StagePair &stage = stages[index];
  Block &body = stage.pair.getForward().getBlock();
  for (BlockArgument argument : body.getArguments()) {
    int64_t bytes = getByteSize(argument);
    number[argument] = add({"", 0, bytes * weight, {}, false, stage.pair.isAtHand(argument)},
                           {index, {argument}, /*isArgument=*/true, 0, 0, bytes});
  }
  ValueSet crossing = segments[index].findCrossing(stageCuts);
  ArrayRef<PlacedValue> placed = segments[index].getValues();
  for (Operation &op : body.without_terminator()) {
    bool isLast = !placed.empty() && placed.front().made >= (stageCuts.empty() ? 0 : stageCuts.back());
    addOp(op, index, placed.take_front(op.getNumResults()), isLast ? lastWeight : weight, crossing);
    placed = placed.drop_front(op.getNumResults());
  }
  if (moves && costs.hardware().overlap) {
    problem.hiddenForward += timeOfFragment(stage.pair.getForward(), costs);
    problem.hiddenBackward += timeOfFragment(stage.pair.getBackward(), costs);
  }
  cuts[index] = std::move(stageCuts);
}

/// The first place of the segment of a place, and the first after it.
std::pair<unsigned, unsigned> Cutting::segmentOf(unsigned stage, unsigned place) const {
  auto next = llvm::upper_bound(cuts[stage], place);
  return {next == cuts[stage].begin() ? 0 : *std::prev(next),
          next == cuts[stage].end() ? std::numeric_limits<unsigned>::max() : *next};
}

BytePeak Cutting::peakAt(Place at, int64_t bytes) const {
  BytePeak peak;
  auto [begin, end] = segmentOf(at.stage, at.place);
  peak.limit = bytes - segments[at.stage].getBytesBeside(at.place);
  for (auto [value, entry] : llvm::zip(problem.values, entries)) {
    int64_t saved = entry.bytes * stages[entry.stage].inFlight, recomputed = 0, moved = 0;
    if (entry.stage == at.stage && !entry.isArgument) {
      bool isReached = entry.made <= at.place;
      saved -= isReached ? 0 : entry.bytes;
      recomputed = isReached && entry.made >= begin && entry.made < end ? entry.residualBytes : 0;
      moved = entry.made == at.place || entry.lastUse == at.place ? entry.bytes : 0;
    }
    if (recomputed < 0)
      saved += std::exchange(recomputed, 0);
    if (value.isAvailable)
      peak.limit -= std::exchange(recomputed, 0);
    peak.saved.push_back(std::max<int64_t>(saved, 0));
    peak.recomputed.push_back(recomputed);
    peak.moved.push_back(moved);
  }
  return peak;
}

/// The bytes of the worst place of a stage.
int64_t Cutting::peakOfStage(unsigned index, const KeptValues &kept, unsigned &worst) const {
  auto bytesOf = [&](unsigned stage) { return getByteSize(kept.saved[stage].getArrayRef()); };
  const ValueSet &saved = kept.saved[index], &moved = kept.moved[index];
  int64_t before = bytesOf(index) * (stages[index].inFlight - 1), live = 0, most = 0;
  for (Value value : saved)
    before += isa<BlockArgument>(value) ? getByteSize(value) : 0;
  for (unsigned other = 0; other < stages.size(); ++other)
    before += other == index ? 0 : bytesOf(other) * stages[other].inFlight;
  std::vector<int64_t> reading(segments[index].getPlaces(), 0);
  for (const PlacedValue &value : segments[index].getValues())
    if (moved.contains(value.value)) {
      reading[value.made] += value.bytes;
      reading[value.lastUse] += value.lastUse == value.made ? 0 : value.bytes;
    }
  unsigned begin = 0;
  for (const PlacedValue &value : segments[index].getValues()) {
    if (unsigned now = segmentOf(index, value.made).first; now != begin)
      begin = now, live = 0;
    bool isSaved = saved.contains(value.value);
    before += isSaved ? value.bytes : 0;
    live += value.isResidual && !isSaved && !moved.contains(value.value) ? value.bytes : 0;
    int64_t bytes = before + live + reading[value.made] + segments[index].getBytesBeside(value.made);
    if (bytes > most)
      most = bytes, worst = value.made;
  }
  return most;
}

Cutting::Place Cutting::findPeak(const KeptValues &kept) const {
  Place peak;
  for (unsigned index = 0; index < stages.size(); ++index) {
    Place place{index, 0, 0};
    place.bytes = peakOfStage(index, kept, place.place);
    if (place.bytes > peak.bytes)
      peak = place;
  }
  return peak;
}

KeptValues Cutting::keptBy(const RecomputeChoice &choice) const {
  KeptValues kept;
  kept.saved.resize(stages.size());
  kept.moved.resize(stages.size());
  for (auto [index, entry] : llvm::enumerate(entries)) {
    if (choice.saved[index])
      kept.saved[entry.stage].insert(entry.values.begin(), entry.values.end());
    if (choice.moved[index])
      kept.moved[entry.stage].insert(entry.values.begin(), entry.values.end());
  }
  return kept;
}

} // namespace par
