// States that a save has and a bundle's optimizer has not, or the other way round, and averages of weights.
#include "par/messages/TrainMessages.h"
#include "par/weights/Weights.h"

#include <algorithm>
#include <map>
#include <set>

namespace par::core {

using format::Tensor;
using format::TensorKind;

bool isAverage(const Tensor &tensor) { return tensor.kind == TensorKind::State && tensor.name == tensor.of + ".ema"; }

const Tensor &beginsAs(const format::Manifest &manifest, const Tensor &tensor) {
  const Tensor *parameter = isAverage(tensor) ? manifest.findTensor(tensor.of) : nullptr;
  return parameter ? *parameter : sourceOf(manifest, tensor);
}

const Tensor &averageOf(const format::Manifest &manifest, const Tensor &tensor) {
  auto found = std::find_if(manifest.tensors.begin(), manifest.tensors.end(),
                            [&](const Tensor &other) { return isAverage(other) && other.of == tensor.name; });
  return found == manifest.tensors.end() ? tensor : *found;
}

void takeAverages(WeightStore &store) {
  constexpr std::string_view suffix = ".ema";
  std::map<const std::byte *, StoredArray> averages; // by the weights' first byte: tied ones have several names
  for (const auto &[name, array] : store.arrays)
    if (name.ends_with(suffix))
      if (auto weight = store.arrays.find(name.substr(0, name.size() - suffix.size()));
          weight != store.arrays.end() && !weight->second.pieces.empty())
        averages.emplace(weight->second.pieces.front().data, array);
  if (averages.empty())
    throw Failure(store.place, say(TrainSentence::noAverages));
  for (auto &[name, array] : store.arrays)
    if (auto found = averages.find(array.pieces.empty() ? nullptr : array.pieces.front().data);
        found != averages.end()) {
      std::optional<std::vector<int64_t>> stored = array.stored;
      array = found->second;
      array.stored = stored;
    }
}

namespace {

/// The states that a save lacks.
struct LackingStates {
  std::set<std::string> thawed;       ///< parameters whose states others have
  std::vector<const Tensor *> others; ///< of another optimizer
  std::vector<const Tensor *> averages;
  bool keepsSome = false; ///< of the optimizer's
};

/// ".m" of "w.m"
std::string kindOf(const Tensor &state) { return state.name.substr(std::min(state.of.size(), state.name.size())); }

LackingStates findLacking(const format::Manifest &manifest, const WeightStore &store) {
  std::set<std::string> kept, kinds; // parameters with a state in the store, and the states' own names
  LackingStates lacking;
  for (const Tensor &tensor : manifest.tensors)
    if (tensor.kind == TensorKind::State && store.find(tensor)) {
      kept.insert(tensor.of);
      kinds.insert(kindOf(tensor));
      lacking.keepsSome |= !isAverage(tensor);
    }
  for (const Tensor &tensor : manifest.tensors) {
    const Tensor *parameter = tensor.kind == TensorKind::State ? manifest.findTensor(tensor.of) : nullptr;
    if (!parameter || store.find(tensor) || !store.find(*parameter))
      continue;
    if (kinds.count(kindOf(tensor)) && !kept.count(tensor.of))
      lacking.thawed.insert(tensor.of);
    else if (!kinds.count(kindOf(tensor)))
      (isAverage(tensor) ? lacking.averages : lacking.others).push_back(&tensor);
  }
  return lacking;
}

/// "\"w.m\"", or "\"w.m\" and 7 more"
std::string someOf(const std::vector<const Tensor *> &states) {
  std::string first = "\"" + format::printable(states.front()->name) + "\"";
  return states.size() > 1 ? core::format("{} and {} more", first, states.size() - 1) : first;
}

} // namespace

std::string beginAnew(const format::Manifest &manifest, WeightStore &store) {
  LackingStates lacking = findLacking(manifest, store);
  std::string text;
  auto say = [&](const std::string &line) { text += (text.empty() ? "" : "\n") + store.place + ": note: " + line; };
  for (const Tensor &tensor : manifest.tensors)
    if (tensor.kind == TensorKind::State && lacking.thawed.count(tensor.of))
      store.anew.insert(tensor.name);
  if (size_t many = lacking.thawed.size())
    say(core::format("states of \"{}\"{} begin at zero: {} frozen when that was saved; the others go on",
                     *lacking.thawed.begin(), many > 1 ? core::format(" and {} more parameters", many - 1) : "",
                     many > 1 ? "they were" : "it was"));
  for (const Tensor *tensor : lacking.others)
    store.anew.insert(tensor->name);
  for (const Tensor *tensor : lacking.averages)
    store.anew.insert(tensor->name);
  bool countsAnew = !lacking.others.empty() && !lacking.keepsSome;
  for (const Tensor &tensor : manifest.tensors)
    if (tensor.kind == TensorKind::Counter && (countsAnew || !lacking.averages.empty()))
      if (tensor.name == (countsAnew ? "step" : "averages") || !store.find(tensor))
        store.anew.insert(tensor.name);
  if (!lacking.others.empty())
    say(core::format("was saved with another optimizer: the states {} begin at zero{}; weights, rate and data go on",
                     someOf(lacking.others), countsAnew ? ", and their steps are counted from there" : ""));
  if (!lacking.averages.empty())
    say(core::format("has no averages: {} begin as the saved weights", someOf(lacking.averages)));
  return text;
}

std::string unusedStates(const format::Manifest &manifest, const WeightStore &store) {
  size_t unused = 0;
  std::string first;
  for (const auto &[name, array] : store.arrays) {
    size_t dot = name.rfind('.');
    if (dot == std::string::npos || manifest.findTensor(name) || !manifest.findTensor(name.substr(0, dot)))
      continue;
    first = unused++ ? first : name;
  }
  return unused ? core::format(textOf(Message::unusedStates), first, unused, unused == 1 ? "state" : "states") : "";
}

} // namespace par::core
