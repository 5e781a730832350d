// Facts of a bundle that the caller of a session needs.
#pragma once

#include "par/format/Bundle.h"

#include <map>
#include <set>

namespace par::api {

/// An entry, over all ranks.
struct EntryFacts {
  std::vector<size_t> inputs;    ///< indices of those that it feeds
  std::set<std::string> results; ///< outputs that it fetches and that are no scalars
};

/// All entries by name.
std::map<std::string, EntryFacts> entriesOf(const format::Bundle &bundle);

/// Facts of the bundle as JSON: ranks, batch, calls, entries, inputs, outputs, tensors, hyperparameters.
std::string describeBundle(const format::Bundle &bundle);

} // namespace par::api
