// Matmuls. A library cuts the result into tiles. As many are computed at once as there are units, wave after wave; the
// last wave takes as long as a full one, k is rounded up to the depth of a step, and each wave has a begin and an end
// that compute nothing:
//
//     waves = ceil(batch ceil(m / rows) ceil(n / columns) / units)
//     ns    = launch + max(bytes / memory, waves (2 rows columns units ceil(k / depth) depth / peak + overhead))
//
// The fastest counts of the tile, its halves and its quarter: libraries have kernels of all of them, and choose so.
// A smaller tile reads more for each operation: of half the area 1/8 more time, of a quarter 1/4. Matmuls with few
// tiles and a deep k are cut along k as well (split k), which adds the parts' sum through memory.
#include "Nearby.h"
#include "Rates.h"
#include "par/Costs/CostTable.h"

#include "llvm/Support/MathExtras.h"

using namespace par;

/// ns of the waves of one tiling.
static int64_t timeOfWaves(const MatmulShape &shape, const Hardware &machine, int64_t rows, int64_t columns,
                           int64_t eighths, int64_t parts) {
  const MatmulWaves &waves = machine.waves;
  auto tiles =
      static_cast<__int128>(shape.batch) * llvm::divideCeil(shape.m, rows) * llvm::divideCeil(shape.n, columns) * parts;
  __int128 count = (tiles + waves.units - 1) / waves.units;
  int64_t depth = llvm::divideCeil(llvm::divideCeil(shape.k, parts), waves.depth) * waves.depth;
  __int128 flops = count * 2 * rows * columns * waves.units * depth * eighths / 8;
  return nanoseconds(flops, machine.peak(shape.type)) +
         static_cast<int64_t>(std::min(count * waves.overhead, static_cast<__int128>(1) << 56));
}

static int64_t timeByWaves(const MatmulShape &shape, const Hardware &machine) {
  const MatmulWaves &waves = machine.waves;
  int64_t rows = waves.rows, columns = waves.columns, halfRows = std::max<int64_t>(rows / 2, 1),
          halfColumns = std::max<int64_t>(columns / 2, 1);
  int64_t best = timeOfWaves(shape, machine, rows, columns, 8, 1);
  best = std::min(best, timeOfWaves(shape, machine, halfRows, columns, 9, 1));
  best = std::min(best, timeOfWaves(shape, machine, rows, halfColumns, 9, 1));
  best = std::min(best, timeOfWaves(shape, machine, halfRows, halfColumns, 10, 1));
  int64_t sum = nanoseconds(static_cast<__int128>(2 * sizeof(float)) * shape.batch * shape.m * shape.n, machine.memory);
  for (int64_t parts : {2, 4, 8})
    if (shape.k >= parts * 8 * waves.depth)
      best = std::min(best, timeOfWaves(shape, machine, rows, columns, 8, parts) + parts * sum);
  return best;
}

static int64_t modelOf(const MatmulShape &shape, const CostTable &costs) {
  const Hardware &machine = costs.hardware();
  if (machine.waves.units == 0)
    return costs.local(shape.flops(), shape.bytes(), shape.type).ns;
  return costs.launch() + std::max(timeByWaves(shape, machine), nanoseconds(shape.bytes(), machine.memory));
}

Cost CostTable::matmul(const MatmulShape &shape) const {
  Nearby rows;
  // Another order of an operand's elements changes a time more than a doubling of a dim does.
  constexpr int64_t turned = 2 * Nearby::doubling;
  for (const auto &[row, ns] : hardware().measured.matmuls) {
    if (row.type != shape.type)
      continue;
    bool alike = row.transposeA == shape.transposeA && row.transposeB == shape.transposeB;
    if (alike && row.batch == shape.batch && row.m == shape.m && row.n == shape.n && row.k == shape.k)
      rows.addExact(ns);
    else
      rows.add({{shape.batch, row.batch}, {shape.m, row.m}, {shape.n, row.n}, {shape.k, row.k}}, alike ? 0 : turned, ns,
               [&] { return modelOf(row, *this); });
  }
  return rows.costOf(modelOf(shape, *this));
}
