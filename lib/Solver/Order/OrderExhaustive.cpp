// Every order of every device, for sizes at which that can be done: the oracle of `auto`.
#include "OrderPlay.h"

using namespace par;

/// More are not played.
constexpr size_t maxTables = 1'000'000;

namespace {

/// Lists the orders of one device in which each kind follows the order of microbatches and its dependencies.
class DeviceOrders {
public:
  DeviceOrders(const ScheduleShape &shape, bool apart) : shape(shape), apart(apart), counts(shape.chunks, {0, 0, 0}) {}

  /// All of them; empty if there are more than the oracle plays.
  std::vector<DeviceSlots> list() {
    extend();
    return found.size() > maxTables ? std::vector<DeviceSlots>() : std::move(found);
  }

private:
  void extend() {
    if (found.size() > maxTables)
      return;
    if (slots.size() == size_t(apart ? 3 : 2) * shape.chunks * shape.microbatches)
      found.push_back(slots);
    for (unsigned chunk = 0; chunk < shape.chunks; ++chunk)
      for (unsigned kind = 0; kind < (apart ? 3u : 2u); ++kind) {
        unsigned next = counts[chunk][kind];
        if (next >= shape.microbatches || (kind > 0 && next >= counts[chunk][kind - 1]))
          continue;
        ++counts[chunk][kind];
        slots.push_back({SlotKind(kind), next, chunk});
        extend();
        slots.pop_back();
        --counts[chunk][kind];
      }
  }

  const ScheduleShape shape;
  const bool apart;
  std::vector<std::array<unsigned, 3>> counts;
  DeviceSlots slots;
  std::vector<DeviceSlots> found;
};

} // namespace

std::optional<OrderTable> OrderTableProblem::solveExhaustively(bool apart) const {
  std::vector<DeviceSlots> ofDevice = DeviceOrders(shape(), apart).list();
  size_t tables = 1;
  for (unsigned device = 0; device < numDevices() && tables <= maxTables; ++device)
    tables *= ofDevice.size();
  if (tables == 0 || tables > maxTables)
    return std::nullopt;
  std::optional<OrderTable> best;
  auto score = [&](const OrderTable &table) {
    return barrier ? std::pair(table.makespan, table.longest) : std::pair(table.longest, table.makespan);
  };
  for (size_t number = 0; number < tables; ++number) {
    std::vector<DeviceSlots> orders;
    for (size_t rest = number, device = 0; device < numDevices(); ++device, rest /= ofDevice.size())
      orders.push_back(ofDevice[rest % ofDevice.size()]);
    llvm::Expected<OrderTable> table = measure(std::move(orders));
    if (!table)
      llvm::consumeError(table.takeError());
    else if (!best || score(*table) < score(*best))
      best = std::move(*table);
  }
  return best;
}
