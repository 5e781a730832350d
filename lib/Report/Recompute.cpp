// The bytes that recomputation saves, the time that it costs, and the reasons of a choice by budget.
#include "par/Report/MemoryLimit.h"
#include "par/Report/Text.h"

#include "llvm/Support/Format.h"

using namespace llvm;

namespace par {

/// The time in one step of that for one microbatch.
static std::string stepTime(int64_t ns, const RecomputeFacts &facts) {
  std::string text;
  ns = std::max<int64_t>(ns, 0) * facts.microbatches;
  raw_string_ostream(text) << llvm::format(ns < 1000000 ? "%.3f ms" : "%.1f ms", double(ns) / 1e6);
  return text;
}

static std::string bytesText(int64_t bytes) { return humanBytes(double(bytes)); }

static std::string roleOf(const StageRecompute &stage) { return "s" + stage.stages; }

static bool hasBudget(const RecomputeFacts &facts) { return facts.mode == "memory" || facts.mode == "auto"; }

/// "nothing is recomputed or moved to the host"
static std::string nothing(const RecomputeFacts &facts) {
  return std::string("nothing is recomputed") + (facts.moves && hasBudget(facts) ? " or moved to the host" : "");
}

/// Why a mode changes nothing.
static std::string reasonForNone(const RecomputeFacts &facts) {
  if (hasBudget(facts))
    return "has room, " + nothing(facts);
  if (facts.mode == "selective")
    return "no scores of attention are saved (fused attention keeps none), so nothing is recomputed";
  if (facts.mode == "full")
    return "backward needs all saved values at once, so nothing is recomputed";
  return "nothing of it is saved, so nothing is recomputed";
}

/// ", moves 12.0 MiB to the host and back (0.100 ms of it without compute beside)"
static std::string describeMoves(const StageRecompute &stage, const RecomputeFacts &facts) {
  if (stage.movedBytes == 0)
    return "";
  return ", moves " + bytesText(stage.movedBytes) + " to the host and back (" + stepTime(stage.unhiddenNs, facts) +
         " of it without compute beside)";
}

void printRecompute(const RecomputeFacts &facts, raw_ostream &os) {
  std::string title = "recompute " + facts.mode + ": ";
  if (hasBudget(facts) && facts.stages.empty() && facts.limit && (facts.given || facts.moves))
    os << title << "every rank has room, " << nothing(facts) << "\n";
  else if (hasBudget(facts) && facts.stages.empty() && facts.given)
    os << title << "a rank's memory is not bounded (target.memory), nothing is recomputed\n";
  for (const StageRecompute &stage : facts.stages) {
    os << title << nameOfRole(roleOf(stage));
    if (stage.savedBytes == stage.allBytes)
      os << ": " << reasonForNone(facts) << "\n";
    else
      os << " saves " << bytesText(stage.savedBytes) << " in place of " << bytesText(stage.allBytes)
         << describeMoves(stage, facts) << ", backward takes " << stepTime(stage.ns, facts) << " more a step\n";
    if (!stage.isChosen)
      continue;
    os << title << nameOfRole(roleOf(stage)) << ": ";
    if (!stage.fits)
      os << "the smallest choice that was found\n";
    else if (stage.moreNs < 0)
      os << "the cheapest choice for " << bytesText(*facts.limit) << "; no smaller one was found\n";
    else
      os << "the cheapest choice for " << bytesText(*facts.limit) << "; " << bytesText(stage.nextBytes)
         << " less would take " << stepTime(stage.moreNs, facts) << " more\n";
  }
}

/// "no other takes less than 1.2 ms (0.00 % below it)".
static std::string describeGap(const StageRecompute &stage, const RecomputeFacts &facts) {
  double gap = stage.chosenNs > 0 ? 100.0 * double(stage.chosenNs - stage.minNs) / double(stage.chosenNs) : 0.0;
  std::string text = "takes " + stepTime(stage.chosenNs, facts) + ", no other takes less than ";
  raw_string_ostream(text) << stepTime(stage.minNs, facts) << llvm::format(" (gap %.2f %%)", gap);
  return text;
}

/// "  recomputes    12 x  12.0 MiB  bf16[16x512x768]         0.158 ms a step  h.*.ln_1", the most bytes first.
static void listRecomputed(const StageRecompute &stage, const RecomputeFacts &facts, raw_ostream &os) {
  for (const RecomputedValues &values : stage.recomputed)
    os << "  recomputes" << right_justify(std::to_string(values.count), 6) << " x "
       << right_justify(bytesText(values.bytes / values.count), 9) << "  " << left_justify(values.type, 24)
       << right_justify(stepTime(values.ns, facts), 10) << " a step  " << values.place << "\n";
}

void explainRecompute(const RecomputeFacts &facts, raw_ostream &os) {
  for (const StageRecompute &stage : facts.stages) {
    if (stage.savedBytes != stage.allBytes)
      listRecomputed(stage, facts, os);
    if (!stage.isChosen)
      continue;
    os << "recompute " << facts.mode << ": " << nameOfRole(roleOf(stage)) << ": "
       << (stage.fits ? describeGap(stage, facts) : "the smallest choice that was found, cheaper ones do not fit")
       << "; the smallest choice that was found needs " << bytesText(stage.smallestBytes)
       << " at the begin of a backward, and none needs less than " << bytesText(stage.boundBytes) << "\n";
  }
}

std::string describeLowerBound(const RecomputeFacts &facts, const RoleMemory &role, uint64_t limit) {
  for (const StageRecompute &stage : facts.stages) {
    if (roleOf(stage) != role.name || !stage.isChosen)
      continue;
    uint64_t state = role.params + role.states;
    std::string text;
    raw_string_ostream os(text);
    os << "recompute: " << facts.mode << " does not reach it: params and states are " << humanBytes(double(state))
       << ", and every choice saves at least " << bytesText(stage.boundBytes) << " for backward";
    if (state + static_cast<uint64_t>(stage.boundBytes) > limit)
      os << ", which is more than the limit";
    else
      os << ": a smaller choice than the one found, which needs " << bytesText(stage.smallestBytes)
         << " at the begin of a backward beside gradients and buffers, is not ruled out";
    return text;
  }
  return "";
}

} // namespace par
