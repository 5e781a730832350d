#include "Layouts.h"

#include <map>

using namespace mlir;

namespace par {

format::DType dtypeOf(Type type) {
  if (type.isF64())
    return format::DType::F64;
  if (type.isF16())
    return format::DType::F16;
  if (type.isBF16())
    return format::DType::BF16;
  if (type.isInteger(64))
    return format::DType::I64;
  if (type.isInteger(32))
    return format::DType::I32;
  if (type.isInteger(16))
    return format::DType::I16;
  if (type.isInteger(8))
    return format::DType::I8;
  if (type.isInteger(1))
    return format::DType::I1;
  return format::DType::F32;
}

std::vector<int64_t> shapeOf(RankedTensorType type) { return {type.getShape().begin(), type.getShape().end()}; }

format::Layout layoutOf(DistType dist, StageOp stage) {
  MeshAttr mesh = stage.getMesh();
  RankedTensorType global = dist.getTensor(), local = dist.getSharding().getLocalType(global, mesh);
  format::Rectangles::List parts;
  std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, size_t> places;
  for (auto [member, rank] : llvm::enumerate(stage.getRanks())) {
    format::Rectangle part;
    for (int64_t dim = 0; dim < global.getRank(); ++dim) {
      int64_t whole = global.getDimSize(dim), shard = local.getDimSize(dim);
      int64_t index = mesh.getIndex(member, dist.getSharding().getAxes(dim));
      part.start.push_back(std::min(index * shard, whole));
      part.size.push_back(std::min(shard, whole - part.start.back()));
    }
    auto [same, fresh] = places.try_emplace({part.start, part.size}, parts.size());
    if (fresh)
      parts.push_back(part);
    parts[same->second].ranks.push_back(rank);
  }
  return {shapeOf(global), shapeOf(local), std::move(parts)};
}

bool mergeLayout(format::Layout &layout, const format::Layout &other) {
  if (layout == other)
    return true;
  auto covers = [](const format::Rectangle &a, const format::Rectangle &b) {
    return a.start == b.start && a.size == b.size;
  };
  if (layout.shape != other.shape || layout.local != other.local || !llvm::equal(layout.parts, other.parts, covers))
    return false;
  for (auto [i, part] : llvm::enumerate(other.parts)) {
    std::vector<uint32_t> &ranks = layout.parts[i].ranks;
    for (uint32_t rank : part.ranks)
      if (!llvm::is_contained(ranks, rank))
        ranks.push_back(rank);
  }
  return true;
}

} // namespace par
