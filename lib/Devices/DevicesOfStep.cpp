// A compiled step as annotations. Shardings are those of the module after Propagate: of variables in their table, of
// values inside forward's fragments by the provenance of their ops. The module after Annotate says which value is a
// node's output and which stage the node is on.
#include "par/Base/MeshFactor.h"
#include "par/Base/Provenance.h"
#include "par/Devices/Devices.h"
#include "par/Dialect/Par.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace par {
namespace {

/// A tensor's sharding in terms of the file's dims.
struct TensorPlace {
  SmallVector<SmallVector<StringAttr>> axes; ///< of each dim
  SmallVector<int64_t> blocks;               ///< of each dim: parts side by side
};

/// The shape that the file gives a tensor.
using FileShapes = llvm::StringMap<std::vector<onnx::Dim>>;

/// Stages and values of nodes, by their paths.
class StepValues {
public:
  StepValues(const Compiled &compiled, ModuleOp after) : compiled(compiled) {
    readStages();
    readValues(after);
  }

  llvm::StringMap<int64_t> stageOf;                     ///< -1: of several
  llvm::StringMap<RankedTensorType> outputType;         ///< of nodes with one value
  llvm::StringMap<std::optional<ShardingAttr>> outputs; ///< none: values of one node differ

private:
  void readStages();
  void readValues(ModuleOp after);
  void readFragment(FragmentOp fragment);

  const Compiled &compiled;
};

class StepReader {
public:
  StepReader(const Model &model, const Compiled &compiled, ModuleOp after)
      : compiled(compiled), plan(compiled.planned.plan.plan), model(model), graph(model.graph), after(after),
        symbols(after), values(compiled, after) {}

  StepDevices run();

private:
  void readVariables();
  void readInputs();
  void findFirstStages();
  void annotate(size_t node);
  void annotateOutput(size_t node, onnx::NodeDevices &devices);
  void addSharding(size_t node, StringRef tensor, const TensorPlace &place, onnx::NodeDevices &devices) const;
  std::optional<TensorPlace> placeOf(ShardingAttr sharding);

  const Compiled &compiled;
  const Plan &plan;
  const Model &model;
  const onnx::Model &graph; ///< that of the file: nodes of tied parameters are not in it
  ModuleOp after;
  SymbolTable symbols;
  SmallVector<StageOp> stages;
  FileShapes shapes;
  StepValues values;
  std::vector<int64_t> firstStage;      ///< of nodes: their own stage, or that of their first user
  llvm::StringMap<TensorPlace> tensors; ///< parameters and inputs
  StepDevices result;
};

} // namespace

/// Refined axes that are whole axes of the plan, all their primes in order.
static bool isWhole(const Plan &plan, ArrayRef<StringAttr> axes) {
  for (size_t at = 0; at < axes.size();) {
    size_t before = at;
    for (const std::string &axis : plan.axes()) {
      auto refined = refineAxis(axis, plan.axisSize(axis));
      bool fits = !refined.empty() && at + refined.size() <= axes.size();
      for (size_t i = 0; fits && i < refined.size(); ++i)
        fits = axes[at + i] == refined[i].first;
      if (fits) {
        at += refined.size();
        break;
      }
    }
    if (at == before)
      return false;
  }
  return true;
}

/// Coordinates as names, so that the mesh can be read again: `dp=0,tp=1`.
static onnx::DeviceConfiguration nameDevices(const Plan &plan) {
  onnx::DeviceConfiguration devices{"par", *plan.ranks, {}};
  if (!plan.pipeline.meshes->empty())
    return devices;
  std::vector<std::string> names(*plan.ranks);
  for (auto [place, rank] : llvm::enumerate(numberRanks(plan.mesh, plan.numberingMesh()))) {
    int64_t inner = *plan.ranks;
    for (const auto &[axis, size] : plan.mesh) {
      inner /= *size;
      if (*size > 1)
        names[rank] += (names[rank].empty() ? "" : ",") + axis + "=" + std::to_string(int64_t(place) / inner % *size);
    }
  }
  if (*plan.ranks > 1)
    devices.names = std::move(names);
  return devices;
}

static FileShapes readShapes(const onnx::Model &graph) {
  FileShapes shapes;
  for (const auto *list : {&graph.valueInfo, &graph.outputs, &graph.initialized, &graph.inputs})
    for (const onnx::ValueInfo &value : *list)
      if (value.isTensor && value.hasShape)
        shapes[value.name] = value.shape;
  for (const onnx::Tensor &tensor : graph.initializers) {
    std::vector<onnx::Dim> dims;
    for (int64_t size : tensor.dims)
      dims.push_back({size, ""});
    shapes[tensor.name] = std::move(dims);
  }
  return shapes;
}

/// Whether a value leaves the node that it comes from.
static bool isOutput(StringRef path, Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    std::optional<Provenance> from = getProvenance(user->getLoc());
    return !from || from->path != path || user->hasTrait<OpTrait::IsTerminator>();
  });
}

/// Stages of nodes, and the types of their outputs.
void StepValues::readStages() {
  llvm::StringSet<> several;
  ModuleOp before = *compiled.modules.at("annotate");
  StepOp step = *before.getOps<StepOp>().begin();
  for (Operation &op : step.getBlock()) {
    std::optional<Provenance> from = getProvenance(op.getLoc());
    if (!from || !isTensorOp(&op))
      continue;
    if (std::optional<int64_t> stage = getStage(&op)) {
      auto [known, isNew] = stageOf.try_emplace(from->path, *stage);
      if (!isNew && known->second != *stage)
        known->second = -1;
    }
    for (Value value : op.getResults())
      if (isOutput(from->path, value)) {
        auto type = cast<RankedTensorType>(value.getType());
        auto [known, isNew] = outputType.try_emplace(from->path, type);
        if (!isNew && known->second != type)
          several.insert(from->path);
      }
  }
  for (const auto &entry : several)
    outputType.erase(entry.first());
}

/// Whether the value is the node's output of a microbatch, or whole.
static bool isPartOf(ArrayRef<int64_t> part, ArrayRef<int64_t> whole, int64_t rounds) {
  return part.size() == whole.size() && llvm::all_of(llvm::zip(part, whole), [&](auto sizes) {
           auto [mine, all] = sizes;
           return mine == all || mine * rounds == all;
         });
}

void StepValues::readFragment(FragmentOp fragment) {
  for (Operation &op : fragment.getBlock()) {
    std::optional<Provenance> from = getProvenance(op.getLoc());
    auto type = from ? outputType.find(from->path) : outputType.end();
    if (!from || !isTensorOp(&op) || type == outputType.end())
      continue;
    for (Value value : op.getResults()) {
      auto mine = cast<RankedTensorType>(value.getType());
      ShardingAttr sharding = getSharding(value);
      if (!sharding || !isOutput(from->path, value) ||
          !isPartOf(mine.getShape(), type->second.getShape(), **compiled.planned.plan.plan.batch.microbatches))
        continue;
      auto [known, isNew] = outputs.try_emplace(from->path, sharding);
      if (!isNew && known->second && *known->second != sharding)
        known->second.reset();
    }
  }
}

void StepValues::readValues(ModuleOp after) {
  std::string prefix = (compiled.planned.entry() + ".").str();
  for (FragmentOp fragment : after.getOps<FragmentOp>())
    if (fragment.getSymName().starts_with(prefix) &&
        (fragment.getKind() == FragmentKind::forward || fragment.getKind() == FragmentKind::before))
      readFragment(fragment);
}

/// Nothing, and counted, if annotations have no word for it.
std::optional<TensorPlace> StepReader::placeOf(ShardingAttr sharding) {
  TensorPlace place;
  if (!sharding.getUnreduced().empty()) {
    ++result.sums;
    return std::nullopt;
  }
  for (DimShardingAttr dim : sharding.getDims()) {
    if (!isWhole(plan, dim.getAxes())) {
      ++result.partAxes;
      return std::nullopt;
    }
    place.axes.push_back(llvm::to_vector(dim.getAxes()));
    place.blocks.push_back(1);
  }
  return place;
}

/// Parameters by their initializers' names. Import may have unfolded a dim of the stored shape into parts, each of
/// which is sharded.
void StepReader::readVariables() {
  for (const onnx::Tensor &tensor : graph.initializers) {
    auto variable = symbols.lookup<VariableOp>(tensor.name);
    bool isWeight =
        variable && (variable.getKind() == VariableKind::parameter || variable.getKind() == VariableKind::frozen);
    if (!isWeight || !variable.getAt() || variable.getAt()->empty())
      continue;
    auto dist = dyn_cast<DistType>(cast<TypeAttr>((*variable.getAt())[0]).getValue());
    std::optional<TensorPlace> own = dist ? placeOf(dist.getSharding()) : std::nullopt;
    if (!own)
      continue;
    TensorPlace place;
    ArrayRef<int64_t> sizes = variable.getTensorType().getShape();
    size_t next = 0;
    bool sayable = true;
    for (int64_t size : tensor.dims) {
      size_t first = next;
      for (int64_t product = 1; next < sizes.size() && (product < size || next == first); ++next)
        product *= sizes[next];
      bool unfolds = next - first > 1;
      size_t sharded = unfolds ? first + 1 : first;
      for (size_t dim = first; dim < next; ++dim)
        sayable &= dim == sharded || own->axes[dim].empty();
      place.axes.push_back(sharded < next ? own->axes[sharded] : SmallVector<StringAttr>());
      place.blocks.push_back(unfolds ? sizes[first] : 1);
    }
    if (sayable)
      tensors[tensor.name] = std::move(place);
    else
      ++result.partAxes;
  }
}

/// Inputs of the step; one that is sliced has the microbatch in front.
void StepReader::readInputs() {
  for (StepOp step : after.getOps<StepOp>()) {
    if (step.getSymName() != compiled.planned.entry() || !step.getInputs())
      continue;
    for (auto [name, type] :
         llvm::zip(step.getInputs()->getAsRange<StringAttr>(), step.getFunctionType().getInputs())) {
      auto shape = shapes.find(name.getValue());
      auto dist = dyn_cast<DistType>(type);
      if (shape == shapes.end() || !dist)
        continue;
      std::optional<TensorPlace> place = placeOf(dist.getSharding());
      size_t rank = shape->second.size();
      if (!place || place->axes.size() < rank ||
          !llvm::all_of(ArrayRef(place->axes).drop_back(rank), [](const auto &axes) { return axes.empty(); }))
        continue;
      place->axes.erase(place->axes.begin(), place->axes.end() - rank);
      place->blocks.erase(place->blocks.begin(), place->blocks.end() - rank);
      tensors[name.getValue()] = std::move(*place);
    }
  }
}

/// Nodes that no parameter flows into have no stage: they are where their values are used.
void StepReader::findFirstStages() {
  firstStage.resize(graph.nodes.size());
  llvm::StringMap<int64_t> firstUse; // by tensor
  for (size_t index = graph.nodes.size(); index-- > 0;) {
    const onnx::Node &node = graph.nodes[index];
    auto own = values.stageOf.find(model.names.nodes[index].name);
    int64_t stage = int64_t(stages.size());
    for (const std::string &output : node.outputs)
      if (auto use = firstUse.find(output); use != firstUse.end())
        stage = std::min(stage, use->second);
    if (own != values.stageOf.end() && own->second >= 0)
      stage = own->second;
    firstStage[index] = stage < int64_t(stages.size()) ? stage : 0;
    for (const std::string &input : node.inputs) {
      auto [known, isNew] = firstUse.try_emplace(input, firstStage[index]);
      known->second = std::min(known->second, firstStage[index]);
    }
  }
}

/// Adds the sharding of a tensor on the ranks of the node's stage.
void StepReader::addSharding(size_t node, StringRef tensor, const TensorPlace &place,
                             onnx::NodeDevices &devices) const {
  StageOp stage = stages[firstStage[node]];
  MeshAttr mesh = stage.getMesh();
  onnx::TensorSharding said{tensor.str(), {}, {}, {}};
  auto shape = shapes.find(tensor);
  int64_t shards = 1;
  std::vector<std::pair<size_t, int64_t>> dims; // with their shards
  for (auto [dim, axes] : llvm::enumerate(place.axes)) {
    int64_t number = mesh.getSize(ArrayRef<StringAttr>(axes));
    if (number == 1)
      continue;
    onnx::ShardedAxis axis{int64_t(dim), {}};
    onnx::SimpleSharding part{{}, {}, number};
    if (shape != shapes.end() && shape->second[dim].size >= 0)
      part.size = shape->second[dim].size / place.blocks[dim];
    else if (shape != shapes.end() && !shape->second[dim].symbol.empty())
      part.symbol = shape->second[dim].symbol;
    if (place.blocks[dim] > 1)
      axis.parts.push_back({place.blocks[dim], {}, 1});
    axis.parts.push_back(part);
    said.axes.push_back(std::move(axis));
    dims.push_back({dim, number});
    shards *= number;
  }
  std::vector<std::vector<int64_t>> holders(shards);
  for (auto [member, rank] : llvm::enumerate(stage.getRanks())) {
    int64_t shard = 0;
    for (auto [dim, number] : dims)
      shard = shard * number + mesh.getIndex(member, place.axes[dim]);
    holders[shard].push_back(rank);
  }
  for (auto [shard, ranks] : llvm::enumerate(holders)) {
    int64_t key = -1 - int64_t(shard);
    said.devices.push_back(ranks.size() == 1 ? ranks.front() : key);
    if (ranks.size() > 1)
      said.groups.push_back({key, ranks});
  }
  devices.shardings.push_back(std::move(said));
}

/// Whether a value has the shape of the file, whose symbols have any size.
static bool hasShape(RankedTensorType type, ArrayRef<onnx::Dim> dims) {
  return type.getRank() == int64_t(dims.size()) && llvm::all_of(llvm::zip(type.getShape(), dims), [](auto each) {
           auto [size, dim] = each;
           return dim.size < 0 || dim.size == size;
         });
}

/// Import computes some nodes in another shape (a matmul of rows as one of samples), whose dims are not the file's
/// axes.
void StepReader::annotateOutput(size_t index, onnx::NodeDevices &devices) {
  const onnx::Node &node = graph.nodes[index];
  const std::string &path = model.names.nodes[index].name;
  SmallVector<StringRef> names(llvm::make_filter_range(node.outputs, [](const auto &name) { return !name.empty(); }));
  auto type = values.outputType.find(path);
  if (names.size() != 1 || type == values.outputType.end())
    return;
  auto shape = shapes.find(names.front());
  if (shape != shapes.end() && !hasShape(type->second, shape->second)) {
    auto sizes = llvm::map_range(type->second.getShape(), [](int64_t size) { return std::to_string(size); });
    result.reshaped[index] = "[" + llvm::join(sizes, ", ") + "]";
    return;
  }
  auto sharding = values.outputs.find(path);
  if (sharding == values.outputs.end() || !sharding->second)
    return;
  std::optional<TensorPlace> place = placeOf(*sharding->second);
  bool isWhole = place && llvm::all_of(place->axes, [](const auto &axes) { return axes.empty(); });
  if (place && (isWhole || shape != shapes.end()))
    addSharding(index, names.front(), *place, devices);
  result.unshaped += place && !isWhole && shape == shapes.end();
}

void StepReader::annotate(size_t index) {
  const onnx::Node &node = graph.nodes[index];
  const std::string &path = model.names.nodes[index].name;
  onnx::NodeDevices devices{result.configuration.name, {}, {}};
  auto stage = values.stageOf.find(path);
  if (stages.size() > 1 && stage != values.stageOf.end()) {
    if (stage->second < 0) {
      result.parted.insert(index);
      return;
    }
    devices.stage = stage->second;
  }
  llvm::StringSet<> seen;
  for (const std::string &input : node.inputs)
    if (auto place = tensors.find(input); place != tensors.end() && seen.insert(input).second)
      addSharding(index, input, place->second, devices);
  annotateOutput(index, devices);
  if (!devices.shardings.empty() || devices.stage)
    result.nodes[index] = std::move(devices);
}

StepDevices StepReader::run() {
  stages = llvm::to_vector(after.getOps<StageOp>());
  result.nodes.resize(graph.nodes.size());
  result.configuration = nameDevices(plan);
  shapes = readShapes(graph);
  readVariables();
  readInputs();
  findFirstStages();
  for (size_t index = 0; index < graph.nodes.size(); ++index)
    annotate(index);
  return std::move(result);
}

StepDevices devicesOfStep(const Model &model, const Compiled &compiled, ModuleOp after) {
  return StepReader(model, compiled, after).run();
}

} // namespace par
