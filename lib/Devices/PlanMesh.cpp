// The mesh of annotations: the axes are the finest that the lists of devices have.
#include "PlanParts.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace llvm;

namespace par {
namespace {

/// A mesh of devices that have no names of coordinates.
class MeshFinder {
public:
  MeshFinder(const ReadDevices &read, const Refusals &refusals) : read(read), refusals(refusals) {}

  bool meshOfLists();

  DeviceMesh mesh;

private:
  bool addBorders(std::set<int64_t> &borders);
  void nameAxes(ArrayRef<int64_t> borders);

  const ReadDevices &read;
  const Refusals &refusals;
};

} // namespace

/// The places within a group between which some sharding changes.
bool MeshFinder::addBorders(std::set<int64_t> &borders) {
  for (const ReadSharding &sharding : read.shardings)
    for (const ShardOfPlace &shards : shardsOf(sharding, read.groups[sharding.group])) {
      std::optional<std::vector<int64_t>> found = bordersOf(shards);
      if (!found)
        return refusals.errorAt(sharding.node, "the list of devices of \"" + Twine(sharding.said->tensor) +
                                                   "\" is of no mesh: shards go over ranks in even steps there");
      borders.insert(found->begin(), found->end());
      int64_t last = 1;
      for (int64_t border : borders) {
        if (border % last)
          return refusals.errorAt(sharding.node, "the list of devices of \"" + Twine(sharding.said->tensor) +
                                                     "\" parts them in steps of " + Twine(border) +
                                                     ", others in steps of " + Twine(last) +
                                                     "; the axes of a mesh divide each other");
        last = border;
      }
    }
  return true;
}

/// Axes between the borders, the innermost first here; those of the batch are `dp`, others `tp`.
void MeshFinder::nameAxes(ArrayRef<int64_t> borders) {
  std::vector<std::pair<int64_t, int64_t>> found; // stride, size
  for (size_t i = 1; i < borders.size(); ++i)
    found.push_back({borders[i - 1], borders[i] / borders[i - 1]});
  auto isOfBatch = [&](int64_t stride) {
    return any_of(read.shardings, [&](const ReadSharding &sharding) {
      bool isInput = any_of(refusals.graph.inputs,
                            [&](const onnx::ValueInfo &input) { return input.name == sharding.said->tensor; });
      if (!isInput || sharding.axes.empty() || sharding.axes.front().axis != 0)
        return false;
      return shardsOf(sharding, read.groups[sharding.group]).front()[stride] != 0;
    });
  };
  size_t ofBatch = count_if(found, [&](auto &each) { return isOfBatch(each.first); });
  size_t batch = 0, other = 0;
  for (auto [stride, size] : reverse(found)) {
    bool isBatch = isOfBatch(stride);
    std::string name = isBatch ? "dp" : "tp";
    if ((isBatch ? ofBatch : found.size() - ofBatch) > 1)
      name += std::to_string(isBatch ? batch++ : other++);
    mesh.axes.push_back({name, size});
  }
}

bool MeshFinder::meshOfLists() {
  std::set<int64_t> borders{1, int64_t(read.groups.front().size())};
  std::optional<GroupStride> stride = strideOf(read.groups);
  if (!stride)
    return refusals.error("stages of \"" + Twine(read.configuration->name) +
                          "\" have devices that no axis of a mesh parts; number them stage by stage, or in turn");
  if (stride->stride < int64_t(read.groups.front().size()))
    borders.insert(stride->stride);
  if (!addBorders(borders))
    return false;
  nameAxes(to_vector(borders));
  mesh.members = read.groups;
  if (read.groups.size() == 1)
    return true;
  mesh.pipeline = "pp";
  int64_t inner = read.groups.front().size();
  for (mesh.pipelineAt = 0; mesh.pipelineAt < mesh.axes.size() && inner > stride->stride; ++mesh.pipelineAt)
    inner /= mesh.axes[mesh.pipelineAt].second;
  return true;
}

std::optional<DeviceMesh> findMesh(const ReadDevices &read, const Refusals &refusals) {
  if (std::optional<DeviceMesh> named = meshOfNames(*read.configuration, read.groups))
    return named;
  MeshFinder finder(read, refusals);
  if (!finder.meshOfLists())
    return std::nullopt;
  return std::move(finder.mesh);
}

} // namespace par
