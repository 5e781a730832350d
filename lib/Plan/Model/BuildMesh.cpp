// Builds the ranks and the axes of their mesh.
#include "PlanBuilder.h"

#include "par/Solver/Schedules/Schedules.h"

#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace llvm;

namespace par {

/// Twice as many as the largest published runs; the proof and the prediction visit each rank.
static constexpr int64_t maxRanks = 1 << 15;

/// The axes of one stage's mesh. `total` are the ranks of all stages, `shape` the text of their axes: "dp 2 + dp 1".
static PlanMesh stageMesh(const PlanNode &node, int64_t &total, std::string &shape) {
  PlanMesh mesh;
  int64_t product = 1;
  std::string own;
  for (const PlanEntry &axis : node.entries) {
    mesh.push_back({axis.key, {toInt(axis.value), axis.value.origin}});
    if (__builtin_mul_overflow(product, toInt(axis.value), &product))
      product = INT64_MAX;
    own += (own.empty() ? "" : " x ") + axis.key + " " + axis.value.text;
  }
  if (__builtin_add_overflow(total, product, &total))
    total = INT64_MAX;
  shape += (shape.empty() ? "" : " + ") + (own.empty() ? "one rank" : own);
  return mesh;
}

/// `pipeline.meshes`: ranks are numbered stage by stage, so no other key may give their number or their axes.
void PlanBuilder::stageMeshes(Plan &plan, const PlanNode &list) {
  std::vector<PlanMesh> &meshes = plan.pipeline.meshes.value;
  plan.pipeline.meshes.origin = list.origin;
  int64_t total = 0;
  std::string shape;
  for (const PlanNode &node : list.items)
    meshes.push_back(stageMesh(node, total, shape));
  for (StringRef other : {"mesh", "pipeline.over"})
    if (const PlanNode *node = root.at(other);
        node && !node->isWord("none") && !(node->kind == PlanNode::Map && node->entries.empty()))
      errors.error(node->origin, PlanMessage::meshesAndMesh, other);
  // Limits for the counts of ranks below.
  int64_t common = 1;
  for (const std::string &axis : plan.axes())
    common = std::max(common, plan.axisSize(axis));
  if (std::max(total, common) > maxRanks) {
    errors.error(list.origin, PlanMessage::tooLarge,
                 total > maxRanks ? "the number of ranks" : "the common multiple of an axis's sizes", maxRanks, shape);
    meshes.assign(meshes.size(), {});
    total = meshes.size();
  }
  plan.ranks = integer("ranks", total);
  if (plan.ranks.given() && *plan.ranks != total)
    errors.error(plan.ranks.origin, PlanMessage::ranksDiffer, *plan.ranks, total, shape);
}

/// Sizes by symbol.
static void readSizes(const PlanNode &root, StringRef key,
                      std::vector<std::pair<std::string, WithOrigin<int64_t>>> &sizes) {
  if (const PlanEntry *entry = root.find(key))
    for (const PlanEntry &dim : entry->value.entries)
      sizes.push_back({dim.key, {toInt(dim.value), dim.value.origin}});
}

void PlanBuilder::dims(Plan &plan) {
  readSizes(root, "dims", plan.dims);
  readSizes(root, "prefill", plan.prefill);
}

void PlanBuilder::mesh(Plan &plan) {
  if (const PlanNode *meshes = root.at("pipeline.meshes"))
    return stageMeshes(plan, *meshes);
  int64_t product = 1;
  Origin meshOrigin;
  std::string shape;
  if (const PlanEntry *mesh = root.find("mesh"))
    for (const PlanEntry &axis : mesh->value.entries) {
      const PlanNode *size = axis.value.kind == PlanNode::Map ? axis.value.at("size") : &axis.value;
      if (!size) {
        errors.error(axis.value.origin, PlanMessage::missingSize, axis.key);
        continue;
      }
      if (const PlanNode *within = axis.value.at("within"))
        plan.within.push_back({axis.key, {within->text, within->origin}});
      plan.mesh.push_back({axis.key, {toInt(*size), size->origin}});
      meshOrigin = size->origin;
      // On overflow the number of ranks is far above the limit.
      if (__builtin_mul_overflow(product, toInt(*size), &product))
        product = INT64_MAX;
      shape += (shape.empty() ? "" : " x ") + axis.key + " " + size->text;
    }
  if (product > maxRanks) {
    errors.error(meshOrigin, PlanMessage::tooLarge, "the number of ranks", maxRanks, shape);
    for (auto &[name, size] : plan.mesh)
      size.value = 1; // later code counts ranks
    product = 1;
  }
  plan.ranks = integer("ranks", product);
  if (plan.ranks.given() && *plan.ranks != product)
    errors.error(plan.ranks.origin, PlanMessage::ranksDiffer, *plan.ranks, product,
                 shape.empty() ? "no axes: one rank" : shape);
}

PlanMeshOrder buildMeshOrder(const PlanNode &root, const Plan &plan, PlanErrors &errors) {
  const PlanNode *node = root.at("mesh_order");
  if (!node || node->isWord("written"))
    return {{PlanMeshOrder::Written, node ? node->origin : Origin()}, {}};
  if (!plan.pipeline.meshes->empty())
    errors.error(node->origin, PlanMessage::meshesAndMesh, "mesh_order");
  if (node->isWord("auto"))
    return {{PlanMeshOrder::Auto, node->origin}, {}};
  PlanMeshOrder order{{PlanMeshOrder::Given, node->origin}, toAxes(*node)};
  for (const auto &[axis, size] : plan.mesh)
    if (!llvm::is_contained(order.axes, axis))
      errors.error(node->origin, PlanMessage::orderLeavesOut, axis);
  return order;
}

PlanMesh Plan::numberingMesh() const {
  PlanMesh ordered;
  for (const std::string &name : meshOrder.axes)
    ordered.push_back(*llvm::find_if(mesh, [&](const auto &axis) { return axis.first == name; }));
  return ordered.empty() ? mesh : ordered;
}

int64_t ranksOf(const PlanMesh &mesh) {
  int64_t ranks = 1;
  for (const auto &[name, size] : mesh)
    ranks *= *size;
  return ranks;
}

std::vector<int64_t> numberRanks(const PlanMesh &mesh, const PlanMesh &numbering) {
  std::map<StringRef, int64_t> strides;
  int64_t stride = 1;
  for (const auto &[name, size] : llvm::reverse(numbering)) {
    strides[name] = stride;
    stride *= *size;
  }
  std::vector<int64_t> numbers{0};
  for (const auto &[name, size] : mesh) { // each place becomes the places along one axis more
    std::vector<int64_t> more;
    for (int64_t number : numbers)
      for (int64_t coordinate = 0; coordinate < *size; ++coordinate)
        more.push_back(number + coordinate * strides[name]);
    numbers = std::move(more);
  }
  return numbers;
}

int64_t Plan::axisSize(StringRef axis) const {
  int64_t common = 1;
  auto add = [&](const PlanMesh &axes) {
    for (const auto &[name, size] : axes)
      if (int64_t least = std::lcm(common, *size), most = maxRanks + 1; name == axis)
        common = std::min(least, most); // larger numbers are refused
  };
  add(mesh);
  llvm::for_each(*pipeline.meshes, add);
  return common;
}

int64_t Plan::maxShards(ArrayRef<std::string> axes) const {
  int64_t most = 1;
  auto look = [&](const PlanMesh &mesh) {
    int64_t shards = 1;
    for (const auto &[name, size] : mesh)
      shards *= llvm::is_contained(axes, name) ? *size : 1;
    most = std::max(most, shards);
  };
  look(mesh);
  llvm::for_each(*pipeline.meshes, look);
  return most;
}

PlanAxes Plan::axes() const {
  PlanAxes names;
  auto add = [&](const PlanMesh &axes) {
    for (const auto &[name, size] : axes)
      if (!llvm::is_contained(names, name))
        names.push_back(name);
  };
  add(mesh);
  llvm::for_each(*pipeline.meshes, add);
  return names;
}

std::string Plan::stageAxis() const {
  std::string name = "pp";
  if (!pipeline.over->empty())
    return *pipeline.over;
  while (llvm::is_contained(axes(), name))
    name += "_";
  return name;
}

int64_t Plan::numDevices() const {
  return pipeline.meshes->empty() ? axisSize(*pipeline.over) : int64_t(pipeline.meshes->size());
}

std::vector<int64_t> Plan::updatesBehind() const {
  const Schedule *schedule = findSchedule(*pipeline.schedule);
  std::vector<int64_t> behind;
  unsigned stages = *pipeline.stages;
  for (unsigned stage = 0; train && schedule && schedule->behind && stage < stages; ++stage)
    behind.push_back(schedule->behind(*pipeline.verticalSync ? 0 : stage, stages));
  return behind;
}

int64_t Plan::turns() const { return *pipeline.replicas == "round_robin" ? axesSize(*batch.over) : 1; }

int64_t Plan::axesSize(ArrayRef<std::string> axes) const {
  int64_t product = 1;
  for (const std::string &axis : axes)
    product *= axisSize(axis);
  return product;
}

} // namespace par
