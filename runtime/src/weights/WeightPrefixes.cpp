// Names of weights that differ from the bundle's by the prefixes of wrappers: DistributedDataParallel (`module.`),
// torch.compile (`_orig_mod.`), a module that holds another one (`model.`). They are removed or added if all names of a
// file have them or lack them. A file that fits in two ways is refused; one that fits as it is stays as it is.
#include "par/weights/Weights.h"

#include "par/messages/Failure.h"

#include <algorithm>

namespace par::core {

using format::Tensor;

namespace {

constexpr std::string_view wrappers[] = {"module.", "_orig_mod.", "model.", "_forward_module.",
                                         "_fsdp_wrapped_module."};

/// Names without `removed`, with `added` before them.
struct Renaming {
  std::string removed, added;
};

/// A tensor, and the array of the store that is its value.
using Matches = std::map<const Tensor *, const StoredArray *>;

/// All names of each weight under which files may hold it.
std::vector<std::vector<std::string>> namesOf(const format::Manifest &manifest) {
  std::vector<std::vector<std::string>> all;
  for (const Tensor &tensor : manifest.tensors) {
    if (tensor.kind != format::TensorKind::Parameter && tensor.kind != format::TensorKind::Frozen)
      continue;
    std::vector<std::string> names = tensor.transposed.empty() ? std::vector{tensor.name} : tensor.transposed;
    names.insert(names.end(), tensor.aliases.begin(), tensor.aliases.end());
    all.push_back(std::move(names));
  }
  return all;
}

/// "", and the prefixes of wrappers that every entry has in one of its names: "module.", "module._orig_mod.",
/// ...
std::vector<std::string> sharedPrefixes(const std::vector<std::vector<std::string>> &entries) {
  auto isShared = [&](const std::string &prefix) {
    return std::all_of(entries.begin(), entries.end(), [&](const std::vector<std::string> &names) {
      return std::any_of(names.begin(), names.end(), [&](const std::string &name) { return name.starts_with(prefix); });
    });
  };
  std::vector<std::string> prefixes{""};
  for (size_t i = 0; i < prefixes.size() && !entries.empty(); ++i)
    for (std::string_view wrapper : wrappers)
      if (std::string longer = prefixes[i] + std::string(wrapper); isShared(longer))
        prefixes.push_back(longer);
  return prefixes;
}

/// Matches of the bundle's weights among the renamed arrays.
Matches matchesOf(const format::Manifest &manifest, const WeightStore &store, const Renaming &renaming) {
  Matches matches;
  for (const Tensor &tensor : manifest.tensors) {
    std::vector<std::string> names{tensor.name};
    names.insert(names.end(), tensor.aliases.begin(), tensor.aliases.end());
    names.insert(names.end(), tensor.transposed.begin(), tensor.transposed.end());
    for (const std::string &name : names)
      if (const StoredArray *array = isWeight(tensor) && name.starts_with(renaming.added)
                                         ? store.find(renaming.removed + name.substr(renaming.added.size()))
                                         : nullptr) {
        matches.emplace(&tensor, array);
        break;
      }
  }
  return matches;
}

std::string describe(const Renaming &renaming) {
  std::string text;
  if (!renaming.removed.empty())
    text = "without their \"" + renaming.removed + "\"";
  if (!renaming.added.empty())
    text += (text.empty() ? "with \"" : " and with \"") + renaming.added + "\" before them";
  return text;
}

std::vector<std::vector<std::string>> entriesOf(const WeightStore &store) {
  std::vector<std::vector<std::string>> entries;
  for (const auto &[name, array] : store.arrays)
    entries.push_back({name});
  return entries;
}

/// The first segment that all names share, with its dot; else "".
std::string firstSegment(const std::vector<std::vector<std::string>> &entries) {
  std::string first = entries.empty() ? "" : entries[0][0].substr(0, entries[0][0].find('.') + 1);
  bool shared = std::all_of(entries.begin(), entries.end(),
                            [&](const std::vector<std::string> &names) { return names[0].starts_with(first); });
  return shared ? first : "";
}

} // namespace

std::string WeightStore::renameFor(const format::Manifest &manifest) {
  if (!matchesOf(manifest, *this, {}).empty())
    return "";
  Renaming best;
  Matches found;
  for (const std::string &removed : sharedPrefixes(entriesOf(*this)))
    for (const std::string &added : sharedPrefixes(namesOf(manifest))) {
      Renaming renaming{removed, added};
      Matches matches = matchesOf(manifest, *this, renaming);
      if (!matches.empty() && matches.size() == found.size() && matches != found)
        throw Failure::at(place, Message::prefixAmbiguous, describe(best), describe(renaming));
      if (matches.size() > found.size())
        best = renaming, found = std::move(matches);
    }
  if (found.empty())
    return "";
  std::map<std::string, StoredArray> renamed;
  for (auto &[name, array] : arrays)
    renamed.emplace(best.added + name.substr(best.removed.size()), std::move(array));
  arrays = std::move(renamed);
  return place + ": note: its names are taken " + describe(best) + ", as the bundle has them";
}

std::string hintAtPrefix(const format::Manifest &manifest, const WeightStore &store) {
  for (const Renaming &renaming :
       {Renaming{firstSegment(entriesOf(store)), ""}, Renaming{"", firstSegment(namesOf(manifest))}})
    if (size_t count = matchesOf(manifest, store, renaming).size(); count > 0)
      return core::format("{} of its names are the bundle's {}: rename them if they are the same weights", count,
                          describe(renaming));
  return "";
}

} // namespace par::core
