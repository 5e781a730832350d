// Loops over elements, copies, launches, and work of which only operations and bytes are known.
#include "Nearby.h"
#include "Rates.h"
#include "par/Costs/CostTable.h"
#include "par/format/Curve.h"

using namespace par;

static int64_t modelOf(const KernelShape &shape, const CostTable &costs) {
  const Hardware &machine = costs.hardware();
  int64_t rate = machine.kernelFlops ? machine.kernelFlops : machine.f32;
  return costs.launch() + machine.kernelOverhead +
         std::max(nanoseconds(shape.flops, rate), nanoseconds(shape.bytes, machine.memory));
}

/// Operations for each number that a loop moves, in 1/256. They change its time only where there are some.
static int64_t intensityOf(const KernelShape &shape) {
  __int128 work = std::max(shape.flops, shape.bytes / 4);
  return static_cast<int64_t>(std::min<__int128>(work * 1024 / std::max<int64_t>(shape.bytes, 1), int64_t(1) << 40));
}

Cost CostTable::kernel(int64_t bytes, int64_t flops) const {
  KernelShape shape{bytes, flops};
  int64_t intensity = intensityOf(shape);
  Nearby rows;
  for (const auto &[row, ns] : hardware().measured.kernels) {
    if (row.bytes == bytes && row.flops == flops)
      rows.addExact(ns);
    else
      // Twice: a loop of as many operations a number tells more of this one than one of as many bytes does.
      rows.add({{bytes, row.bytes}, {intensity, intensityOf(row)}, {intensity, intensityOf(row)}}, 0, ns,
               [&] { return modelOf(row, *this); });
  }
  return rows.costOf(modelOf(shape, *this));
}

int64_t CostTable::operations(int64_t flops) const {
  return nanoseconds(flops, hardware().kernelFlops ? hardware().kernelFlops : hardware().f32);
}

Cost CostTable::local(int64_t flops, int64_t bytes, format::DType type) const {
  const Hardware &machine = hardware();
  return {launch() + std::max(nanoseconds(flops, machine.peak(type)), nanoseconds(bytes, machine.memory))};
}

int64_t CostTable::launch() const {
  return hardware().measured.launch ? hardware().measured.launch : hardware().launch;
}

/// Copies that were measured between the same memories correct the model.
static Cost copyOf(bool host, int64_t moved, llvm::function_ref<int64_t(int64_t moved)> modelOf,
                   const Hardware &machine) {
  Nearby rows;
  for (const auto &[row, ns] : machine.measured.copies) {
    if (row.host != host)
      continue;
    int64_t measured = host ? row.bytes : 2 * row.bytes; // a row says what is copied: read, and written
    if (measured == moved)
      rows.addExact(ns);
    else
      rows.add({{moved, measured}}, 0, ns, [&] { return modelOf(measured); });
  }
  return rows.costOf(modelOf(moved));
}

Cost CostTable::copy(int64_t bytes) const {
  if (hardware().measured.copies.empty())
    return kernel(bytes);
  return copyOf(
      false, bytes, [&](int64_t moved) { return launch() + nanoseconds(moved, hardware().memory); }, hardware());
}

Cost CostTable::hostCopy(int64_t bytes) const {
  auto model = [&](int64_t moved) {
    return hardware().host ? launch() + nanoseconds(moved, hardware().host) : copy(2 * moved).ns;
  };
  return copyOf(true, bytes, model, hardware());
}

Cost CostTable::feed(bool fetch, int64_t bytes) const {
  Cost model = copy(bytes); // as a kernel that only writes
  Nearby rows;
  for (const auto &[row, ns] : hardware().measured.feeds) {
    if (row.fetch != fetch)
      continue;
    if (row.bytes == bytes)
      rows.addExact(ns);
    else
      rows.add({{bytes, row.bytes}}, 0, ns, [&, &bytes = row.bytes] { return copy(bytes).ns; });
  }
  return hardware().measured.feeds.empty() ? model : rows.costOf(model.ns);
}

int64_t CostTable::together(bool matmul, int64_t processes) const {
  std::vector<format::Point> points{{1, 1000}};
  for (const auto &[row, permille] : hardware().measured.together)
    if (row.matmul == matmul && row.processes > 1)
      points.push_back({row.processes, permille});
  return format::alongLine(std::move(points), processes);
}
