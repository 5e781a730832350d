// Loops over elements, copies, launches, and work of which only operations and bytes are known.
#include "Nearby.h"
#include "Rates.h"
#include "par/Costs/CostTable.h"

using namespace par;

static int64_t modelOf(const KernelShape &shape, const CostTable &costs) {
  const Hardware &machine = costs.hardware();
  int64_t rate = machine.kernelFlops ? machine.kernelFlops : machine.f32;
  return costs.launch() + machine.kernelOverhead +
         std::max(nanoseconds(shape.flops, rate), nanoseconds(shape.bytes, machine.memory));
}

/// Operations change the time of a loop only where there are some for each number that it moves.
static int64_t workOf(const KernelShape &shape) { return std::max(shape.flops, shape.bytes / 4); }

Cost CostTable::kernel(int64_t bytes, int64_t flops) const {
  KernelShape shape{bytes, flops};
  Nearby rows;
  for (const auto &[row, ns] : hardware().measured.kernels) {
    if (row.bytes == bytes && row.flops == flops)
      rows.addExact(ns);
    else
      rows.add({{bytes, row.bytes}, {workOf(shape), workOf(row)}}, 0, ns, [&] { return modelOf(row, *this); });
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

/// Copies that were measured between the same memories correct `model`.
static Cost copyOf(bool host, int64_t bytes, int64_t model, llvm::function_ref<int64_t(int64_t bytes)> modelOf,
                   const Hardware &machine) {
  Nearby rows;
  for (const auto &[row, ns] : machine.measured.copies) {
    if (row.host != host)
      continue;
    if (row.bytes == bytes)
      rows.addExact(ns);
    else
      rows.add({{bytes, row.bytes}}, 0, ns, [&, &bytes = row.bytes] { return modelOf(bytes); });
  }
  return rows.costOf(model);
}

Cost CostTable::copy(int64_t bytes) const {
  if (hardware().measured.copies.empty())
    return kernel(bytes);
  auto model = [&](int64_t bytes) { return launch() + nanoseconds(bytes, hardware().memory); };
  return copyOf(false, bytes, model(bytes), model, hardware());
}

Cost CostTable::hostCopy(int64_t bytes) const {
  auto model = [&](int64_t bytes) {
    return hardware().host ? launch() + nanoseconds(bytes, hardware().host) : copy(2 * bytes).ns;
  };
  return copyOf(true, bytes, model(bytes), model, hardware());
}

int64_t CostTable::together(bool matmul, int64_t processes) const {
  // The rows around that number of processes, along a straight line; one takes 1000.
  int64_t below = 1, belowTime = 1000, above = 0, aboveTime = 0;
  for (const auto &[row, permille] : hardware().measured.together) {
    if (row.matmul != matmul)
      continue;
    if (row.processes <= processes && row.processes >= below)
      below = row.processes, belowTime = permille;
    if (row.processes > processes && (above == 0 || row.processes < above))
      above = row.processes, aboveTime = permille;
  }
  if (above == 0 || processes <= below)
    return belowTime;
  return belowTime + (aboveTime - belowTime) * (processes - below) / (above - below);
}
