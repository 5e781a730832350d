// Convolutions: their operations at the part of the matmul peak that they reach, or their bytes.
#include "Nearby.h"
#include "Rates.h"
#include "par/Costs/CostTable.h"

using namespace par;

static int64_t modelOf(const ConvolutionShape &shape, int64_t bytes, const CostTable &costs) {
  const Hardware &machine = costs.hardware();
  return costs.launch() + std::max(nanoseconds(static_cast<__int128>(shape.flops()) * 1000 / machine.convolution,
                                               machine.peak(shape.type)),
                                   nanoseconds(bytes, machine.memory));
}

Cost CostTable::convolution(const ConvolutionShape &shape, int64_t bytes) const {
  Nearby rows;
  for (const auto &[row, ns] : hardware().measured.convolutions) {
    if (row.type != shape.type || row.pass != shape.pass)
      continue;
    if (row.images == shape.images && row.groups == shape.groups && row.channels == shape.channels &&
        row.outputs == shape.outputs && row.window == shape.window && row.positions == shape.positions)
      rows.addExact(ns);
    else
      rows.add({{shape.images, row.images},
                {shape.groups, row.groups},
                {shape.channels, row.channels},
                {shape.outputs, row.outputs},
                {shape.window, row.window},
                {shape.positions, row.positions}},
               0, ns, [&] { return modelOf(row, row.bytes(), *this); });
  }
  return rows.costOf(modelOf(shape, bytes, *this));
}
