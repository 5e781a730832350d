#include "api/Feeding.h"

#include <algorithm>
#include <utility>

namespace par::api {

Feeding::Feeding(const format::Manifest &manifest)
    : batches{core::FedBatch(manifest, rowsOfCall(manifest)), core::FedBatch(manifest, rowsOfCall(manifest))} {}

/// Ranks that were told of arrays at a place take others there for those: others go to the other place.
void Feeding::forget() {
  toldTo.clear();
  if (std::exchange(isCarried, false))
    place = 1 - place;
  for (core::FedBatch &batch : batches)
    batch.clear();
}

void Feeding::feed(const std::string &input, core::FedArray array) {
  if (isCarried)
    forget();
  try {
    batches[place].feed(input, std::move(array));
  } catch (...) {
    forget();
    throw;
  }
}

void Feeding::feedAhead(const std::string &input, core::FedArray array) {
  core::FedBatch &batch = batches[1 - place];
  try {
    batch.feed(input, std::move(array));
  } catch (...) {
    batch.clear();
    throw;
  }
}

void Feeding::moveTo(Command &command, const std::vector<size_t> &inputs) {
  const core::FedBatch &now = batches[place], &next = batches[1 - place];
  now.check(command.name, inputs);
  bool isWhole = std::all_of(inputs.begin(), inputs.end(), [&](size_t index) { return next.arrays()[index].data; });
  for (size_t index : inputs) {
    command.fed.emplace_back(index, now.arrays()[index]);
    if (isWhole)
      command.ahead.fed.emplace_back(index, next.arrays()[index]);
  }
  command.ahead.place = place;
  command.ahead.isTold = std::exchange(toldTo, "") == command.name;
  command.ahead.number = command.ahead.fed.empty() ? 0 : ++toldBefore;
  isCarried = false;
}

void Feeding::goOn(const Command &command) {
  batches[place].clear();
  isCarried = batches[1 - place].hasAny();
  place = isCarried ? 1 - place : place;
  toldTo = command.ahead.fed.empty() ? "" : command.name;
}

} // namespace par::api
