// Attention: as one kernel that keeps scores on the chip (Dao 2023, FlashAttention-2), or with the scores in memory.
#include "Nearby.h"
#include "Rates.h"
#include "par/Costs/CostTable.h"

using namespace par;

/// The larger of the operations at the part of the peak that such kernels reach, and of the bytes.
static int64_t modelOf(const AttentionShape &shape, int64_t bytes, const CostTable &costs) {
  const Hardware &machine = costs.hardware();
  int64_t rate = shape.backward ? machine.attentionBackward : machine.attention;
  return costs.launch() +
         std::max(nanoseconds(static_cast<__int128>(shape.flops()) * 1000 / rate, machine.peak(shape.type)),
                  nanoseconds(bytes, machine.memory));
}

Cost CostTable::attention(const AttentionShape &shape, int64_t bytes) const {
  Nearby rows;
  for (const auto &[row, ns] : hardware().measured.attentions) {
    if (row.type != shape.type || row.backward != shape.backward || row.causal != shape.causal)
      continue;
    if (row.batch == shape.batch && row.heads == shape.heads && row.groups == shape.groups &&
        row.queries == shape.queries && row.keys == shape.keys && row.dim == shape.dim)
      rows.addExact(ns);
    else
      rows.add({{shape.batch * shape.heads, row.batch * row.heads},
                {shape.heads / std::max<int64_t>(shape.groups, 1), row.heads / row.groups},
                {shape.queries, row.queries},
                {shape.keys, row.keys},
                {shape.dim, row.dim}},
               0, ns, [&] { return modelOf(row, row.bytes(), *this); });
  }
  return rows.costOf(modelOf(shape, bytes, *this));
}
