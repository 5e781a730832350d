// V5 of all programs at once.
#include "JointRun.h"

using namespace par;
using namespace par::format;
using namespace par::verify;

/// Checks roles, or ranks if roles wait for each other.
static std::optional<Counterexample> checkEntry(const Bundle &bundle, const std::string &entry, Uses &uses) {
  for (const Actors &actors : {roleActors(bundle), rankActors(bundle)}) {
    JointRun joint(bundle, actors, entry);
    if (auto found = joint.run())
      return found;
    if (!joint.ended())
      continue;
    for (auto check : {checkReplicas, checkPartialSums, checkUpdates})
      if (auto found = check(joint))
        return found;
    return checkUnread(joint, uses);
  }
  return Counterexample{Property::Progress, "programs of entry " + entry + " wait for each other", {}};
}

std::optional<Counterexample> par::verify::checkJointly(const Bundle &bundle) {
  Uses uses;
  for (const Entry &entry : bundle.programs[0].entries)
    if (auto found = checkEntry(bundle, entry.name, uses))
      return found;
  return checkUseless(bundle, uses);
}
