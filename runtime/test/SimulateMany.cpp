// Holds par-verify and the device `sim` against each other.
#include "SimulateMany.h"
#include "par/verify/Verify.h"

#include <cstdio>

using namespace par;
using namespace par::format;
using namespace par::toy;

namespace {

/// Waits dropped, depths shrunk, offsets shifted, aliases moved, queues changed, and what is like them.
constexpr Mutation kinds[] = {Mutation::Wait,  Mutation::Depth, Mutation::Offset, Mutation::Alias,
                              Mutation::Queue, Mutation::Slot,  Mutation::Place,  Mutation::Signal,
                              Mutation::Event, Mutation::Move,  Mutation::Group,  Mutation::Order};

bool isRace(const Ran &ran) {
  return ran.trouble.find("error: race on") != std::string::npos ||
         ran.trouble.find("error: ranks wait for each other") != std::string::npos;
}

} // namespace

Judgement par::toy::judgeMany(const Bundle &bundle, const std::string &folder, uint64_t count, uint64_t seed,
                              const sim::Options &options, bool both) {
  Judgement judgement;
  Random random(seed);
  Ran original = simulateApart(bundle, folder, options);
  if (!original.trouble.empty())
    judgement.disagreements.push_back("the original: " + original.trouble);
  for (uint64_t tries = 0; judgement.total < count && tries < 50 * count; ++tries) {
    Mutation kind = kinds[tries % std::size(kinds)];
    auto rank = uint32_t(random.below(bundle.manifest.ranks.size()));
    std::string what;
    std::optional<Bundle> changed = mutate(bundle, rank, kind, random, what);
    if (!changed)
      continue;
    ++judgement.total;
    Judgement::Row &row = judgement.rows[std::string(toString(kind))];
    ++row.total;
    verify::Verdict verdict = verify::verifyBundle(*changed);
    verify::Property property = verdict ? verify::Property::Peak : verdict.counterexample->property;
    if (!verdict)
      ++row.rejected[std::string(verify::toString(property))];
    bool aboutMemory = property == verify::Property::Race || property == verify::Property::Value;
    if (!verdict && !(both && aboutMemory))
      continue;
    ++judgement.simulated;
    Ran ran = simulateApart(*changed, folder, options);
    bool alike = ran.trouble.empty() && ran.digest == original.digest;
    if (verdict) {
      row.accepted += alike;
      if (!alike)
        judgement.disagreements.push_back(what + ": " + (ran.trouble.empty() ? "other results" : ran.trouble));
      continue;
    }
    ++(isRace(ran) ? row.races : alike ? row.nothing : row.differ);
    if (property == verify::Property::Race && !isRace(ran))
      judgement.careful.push_back(what + ": " + verify::format(verdict, "") +
                                  (alike ? "  nothing" : "  " + ran.trouble));
  }
  return judgement;
}

std::string par::toy::format(const Judgement &judgement) {
  static constexpr const char *properties[] = {"V1", "V2", "V3", "V4", "V5", "V6"};
  char line[200];
  std::string text = "mutation   mutants    V1    V2    V3    V4    V5    V6  accepted, alike | sim of V4, V5: "
                     "race  differs  nothing\n";
  uint64_t accepted = 0;
  for (const auto &[name, row] : judgement.rows) {
    std::snprintf(line, sizeof line, "%-10s %7llu", name.c_str(), static_cast<unsigned long long>(row.total));
    text += line;
    for (const char *property : properties) {
      auto it = row.rejected.find(property);
      std::snprintf(line, sizeof line, "%6llu",
                    static_cast<unsigned long long>(it == row.rejected.end() ? 0 : it->second));
      text += line;
    }
    std::snprintf(line, sizeof line, "%17llu |%20llu%9llu%9llu\n", static_cast<unsigned long long>(row.accepted),
                  static_cast<unsigned long long>(row.races), static_cast<unsigned long long>(row.differ),
                  static_cast<unsigned long long>(row.nothing));
    text += line;
    accepted += row.accepted;
  }
  text += std::to_string(judgement.total) + " mutants, " + std::to_string(judgement.simulated) + " played on sim; " +
          std::to_string(accepted) + " accepted without race and with the original's bits, " +
          std::to_string(judgement.disagreements.size()) + " disagreements, " +
          std::to_string(judgement.careful.size()) + " races of V4 that sim does not see\n";
  for (const std::string &what : judgement.disagreements)
    text += "disagreement: " + what + "\n";
  for (const std::string &what : judgement.careful)
    text += "careful: " + what + "\n";
  return text;
}
