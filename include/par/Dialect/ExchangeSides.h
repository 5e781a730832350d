#pragma once

#include "par/Dialect/Par.h"
#include "par/Solver/Reshard/Exchange.h"

namespace par {

/// The parts of a value on the members of a mesh.
inline ExchangeSide sideOf(ShardingAttr sharding, MeshAttr mesh) {
  ExchangeSide side;
  for (DimShardingAttr dim : sharding.getDims())
    side.parts.push_back(mesh.getSize(dim.getAxes()));
  for (int64_t member = 0, end = mesh.getRanks(); member < end; ++member) {
    std::vector<int64_t> &index = side.index.emplace_back();
    for (DimShardingAttr dim : sharding.getDims())
      index.push_back(mesh.getIndex(member, dim.getAxes()));
  }
  return side;
}

/// The exchange that sends a tensor from one mesh to another with these shardings; none if their shards do not nest.
inline std::optional<Exchange> findExchange(mlir::RankedTensorType type, ShardingAttr from, MeshAttr here,
                                            ShardingAttr to, MeshAttr there) {
  return Exchange::find(type.getShape().vec(), sideOf(from, here), sideOf(to, there));
}

} // namespace par
