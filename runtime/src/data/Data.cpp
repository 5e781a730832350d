#include "par/data/Data.h"
#include "par/data/InputChecks.h"

#include "par/files/Random.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <numeric>

namespace par::core {

using format::Input;

Dataset::~Dataset() = default;

uint64_t RowOrder::at(uint64_t position) const {
  uint64_t place = position % rows, wanted = position / rows;
  if (!shuffled)
    return place;
  if (epoch != wanted) {
    // Fisher and Yates, with words counted by the place that is drawn.
    permutation.resize(rows);
    std::iota(permutation.begin(), permutation.end(), 0u);
    for (uint64_t i = rows; i-- > 1;) {
      auto words = randomWords(seed, i, randomStream("data order"), static_cast<uint32_t>(wanted));
      uint64_t draw = (uint64_t(words[0]) << 32 | words[1]) % (i + 1);
      std::swap(permutation[i], permutation[draw]);
    }
    epoch = wanted;
  }
  return permutation[place];
}

bool isOfPrefill(const format::Manifest &manifest, std::string_view name) {
  constexpr std::string_view prefix = "prefill.";
  if (!name.starts_with(prefix))
    return false;
  name.remove_prefix(prefix.size());
  return manifest.findInput(name) || manifest.findOutput(name);
}

void checkFed(const format::Manifest &manifest, const Dataset *dataset, const std::string &bundle) {
  if (!dataset && !manifest.inputs.empty())
    throw Failure::at(bundle, Message::noData, describeInputs(manifest));
  for (const Input &input : manifest.inputs)
    if (!dataset->has(input.name) && !isOfPrefill(manifest, input.name))
      throw Failure::at(bundle, Message::inputWithoutData, input.name, describeArray(input.type, input.shape),
                        dataset->feeds(), input.name);
}

} // namespace par::core
