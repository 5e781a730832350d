// Prices the classes of dims: an op that has one is divided; where a class ends in a sum, ranks add up; where columns
// of a matmul are sharded, they add up the gradient of what the matmul reads.
#include "ShardGraph.h"
#include "DimClasses.h"

#include "par/Base/Provenance.h"
#include "par/Dialect/Interfaces/Cost.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using namespace mlir;

namespace par {

std::string generalName(StringRef name) {
  std::string general;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find_first_of("./", begin), name.size());
    StringRef segment = name.slice(begin, end);
    general += !segment.empty() && llvm::all_of(segment, llvm::isDigit) ? "*" : segment;
    if (end < name.size())
      general += name[end];
    begin = end + 1;
  }
  return general;
}

/// The dims that the batch's axis shards.
static llvm::DenseSet<unsigned> batchOf(StepOp step, const DimClasses &dims) {
  llvm::DenseSet<unsigned> batch;
  for (BlockArgument argument : step.getBlock().getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    std::optional<ArrayRef<int64_t>> said = step.getBatchDims();
    int64_t dim = said ? (*said)[argument.getArgNumber()] : 0;
    if (type && dim >= 0 && dim < type.getRank())
      batch.insert(dims.classOf(argument, dim));
  }
  return batch;
}

/// Values from parameters on.
static llvm::DenseSet<Value> gradientsOf(StepOp step, const SymbolTable &symbols) {
  llvm::DenseSet<Value> gradients;
  for (Operation &op : step.getBlock()) {
    auto read = dyn_cast<ReadOp>(op);
    auto variable = read ? symbols.lookup<VariableOp>(read.getVariable()) : VariableOp();
    bool has = variable ? variable.getKind() == VariableKind::parameter
                        : llvm::any_of(op.getOperands(), [&](Value value) { return gradients.contains(value); });
    for (Value result : op.getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType());
          type && has && isa<FloatType>(type.getElementType()))
        gradients.insert(result);
  }
  return gradients;
}

static bool has(ArrayRef<DimFactors> value, unsigned factor) {
  return llvm::any_of(value, [&](const DimFactors &dim) { return !dim.empty() && dim.front() == factor; });
}

static int64_t localTime(const ShardSetting &setting, int64_t flops, int64_t bytes) {
  auto type = setting.floatBytes == 2 ? format::DType::BF16 : format::DType::F32;
  return setting.costs.local(flops, bytes, type).ns - setting.costs.launch();
}

static void addConflicts(ArrayRef<size_t> members, ShardProblem &problem) {
  for (size_t i = 0; i < members.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      problem.conflicts.push_back(std::minmax(members[i], members[j]));
}

namespace {

/// A class of the model's dims, before those of equal layers are one.
struct DimClass {
  std::vector<ParameterDim> dims;
  bool excluded = false;
};

/// Builds one graph.
class GraphBuilder {
public:
  GraphBuilder(StepOp step, const ShardSetting &setting)
      : step(step), module(step->getParentOfType<ModuleOp>()), setting(setting), dims(step, setting.degree) {
    group = setting.costs.hardware().groupOf(llvm::to_vector(llvm::seq<int64_t>(setting.degree)));
  }
  ShardGraph build();

private:
  /// Kinds of effects that are paid once a value.
  enum Kind { Summed, GradientSummed, Gathered, ParameterSummed };

  void findParameters();
  void mergeLayers();
  void price(const OpDims &visit);
  void priceSums(const OpDims &visit);
  void priceGradients(const OpDims &visit);
  void priceUpdates();
  void findInputs();
  int64_t freeDim(const OpDims &visit, Value operand, ArrayRef<DimFactors> sides) const;

  std::optional<size_t> memberOf(unsigned number) const;
  int64_t bytesOf(Value value) const;
  int64_t repeatsOf(Operation *op) const;
  int64_t timeOf(format::CollKind kind, int64_t bytes) const;
  std::pair<Value, int64_t> smallestSum(Value value) const;
  void add(Kind kind, Value value, size_t member, int64_t ns);

  StepOp step;
  ModuleOp module;
  SymbolTable symbols{module};
  const ShardSetting &setting;
  DimClasses dims;
  RankGroup group;
  llvm::DenseSet<unsigned> batch;                 ///< classes
  llvm::DenseMap<unsigned, DimClass> found;       ///< by class
  llvm::DenseMap<unsigned, size_t> numbers;       ///< in the problem, by class
  llvm::DenseSet<Value> gradients;                ///< values that have one
  llvm::DenseMap<Operation *, const OpDims *> of; ///< rules of ops
  llvm::MapVector<std::pair<int, Value>, ShardProblem::Effect> once;
  ShardGraph graph;
};

} // namespace

/// The stored dim that each own dim of a variable is the sharded part of; -1: a rule cannot name it.
static SmallVector<int64_t> storedDims(VariableOp variable) {
  ArrayRef<int64_t> own = variable.getTensorType().getShape();
  if (!variable.getStored())
    return llvm::to_vector(llvm::seq<int64_t>(own.size()));
  SmallVector<int64_t> stored(own.size(), -1);
  int64_t next = 0;
  for (auto [dim, size] : llvm::enumerate(cast<RankedTensorType>(*variable.getStored()).getShape())) {
    int64_t begin = next;
    for (int64_t product = 1; next < int64_t(own.size()) && (product < size || next == begin); ++next)
      product *= own[next];
    stored[next - begin > 1 ? begin + 1 : begin] = dim;
  }
  return stored;
}

void GraphBuilder::findParameters() {
  std::set<StringRef> seen;
  for (auto read : step.getBlock().getOps<ReadOp>()) {
    auto variable = symbols.lookup<VariableOp>(read.getVariable());
    if (variable.getKind() != VariableKind::parameter || !seen.insert(read.getVariable()).second)
      continue;
    SmallVector<int64_t> stored = storedDims(variable);
    for (auto [dim, size] : llvm::enumerate(variable.getTensorType().getShape())) {
      DimClass &entry = found[dims.classOf(read, dim)];
      // At most a tenth of a dim is padding.
      int64_t shard = llvm::divideCeil(size, setting.degree);
      entry.excluded |= stored[dim] < 0 || size < setting.degree || shard * setting.degree * 10 > size * 11;
      entry.dims.push_back({read.getVariable().str(), stored[dim]});
    }
  }
  for (auto &[number, entry] : found) {
    llvm::sort(entry.dims);
    entry.excluded |= batch.contains(number) || dims.isCrossed(number);
  }
}

/// Numbers the classes; those of equal names but for numbers are one.
void GraphBuilder::mergeLayers() {
  std::map<std::set<ParameterDim>, std::vector<unsigned>> alike;
  for (auto &[number, entry] : found) {
    std::set<ParameterDim> key;
    for (const ParameterDim &dim : entry.dims)
      key.insert({generalName(dim.parameter), dim.dim});
    if (!entry.excluded)
      alike[key].push_back(number);
  }
  for (auto &[key, members] : alike) {
    for (unsigned member : members)
      numbers[member] = graph.classes.size();
    std::vector<ParameterDim> &all = graph.classes.emplace_back();
    for (unsigned member : members)
      llvm::append_range(all, found[member].dims);
    llvm::sort(all);
  }
  graph.problem.classes = graph.classes.size();
}

std::optional<size_t> GraphBuilder::memberOf(unsigned number) const {
  auto entry = numbers.find(dims.classOf(number));
  return entry == numbers.end() ? std::nullopt : std::optional(entry->second);
}

/// Bytes in a microbatch, in the plan's format.
int64_t GraphBuilder::bytesOf(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return 0;
  int64_t bytes = getByteSize(value);
  if (isa<FloatType>(type.getElementType()))
    bytes = type.getNumElements() * setting.floatBytes;
  bool varies = llvm::any_of(llvm::seq<int64_t>(type.getRank()),
                             [&](int64_t dim) { return batch.contains(dims.classOf(value, dim)); });
  return varies ? bytes * setting.samples / setting.batch : bytes;
}

int64_t GraphBuilder::repeatsOf(Operation *op) const {
  std::optional<Provenance> from = getProvenance(op->getLoc());
  return setting.repeats(from ? from->module : StringRef());
}

int64_t GraphBuilder::timeOf(format::CollKind kind, int64_t bytes) const {
  int64_t latency = setting.latencies ? 0 : setting.costs.collectiveLatency(kind, group);
  return std::max<int64_t>(0, setting.costs.collective(kind, bytes, group).ns - latency);
}

/// A sum moves through ops that are linear in it to where it is smallest.
std::pair<Value, int64_t> GraphBuilder::smallestSum(Value value) const {
  std::pair<Value, int64_t> least(value, bytesOf(value));
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    auto rule = of.find(use.getOwner());
    if (rule == of.end() || use.getOwner()->getNumResults() != 1 ||
        !llvm::any_of(rule->second->rule.linear,
                      [&](ArrayRef<unsigned> set) { return set.size() == 1 && set.front() == use.getOperandNumber(); }))
      break;
    value = use.getOwner()->getResult(0);
    if (int64_t bytes = bytesOf(value); bytes < least.second)
      least = {value, bytes};
  }
  return least;
}

void GraphBuilder::add(Kind kind, Value value, size_t member, int64_t ns) {
  ShardProblem::Effect &effect = once[{kind, value}];
  effect.ns = std::min(effect.ns, -ns);
  if (!llvm::is_contained(effect.members, member))
    effect.members.push_back(member);
}

/// A class that an op adds up leaves a sum on each rank; one that its decomposition adds up leaves two, of a number for
/// each of the other dims; values that have to be whole are gathered.
void GraphBuilder::priceSums(const OpDims &visit) {
  using format::CollKind;
  int64_t times = repeatsOf(visit.op) * (setting.trains ? 2 : 1);
  for (const OpDims::Part &part : visit.parts) {
    std::optional<size_t> member = memberOf(part.dim);
    const Factor &factor = visit.rule.factors[part.factor];
    if (!member || factor.kind == FactorKind::Parallel || factor.kind == FactorKind::NeedReplication)
      continue;
    for (Value result : visit.op->getResults()) {
      bool decomposed = factor.kind == FactorKind::Decompose;
      auto [sum, bytes] = decomposed ? std::pair(result, 2 * bytesOf(result) / factor.size) : smallestSum(result);
      add(Summed, sum, *member, repeatsOf(visit.op) * timeOf(CollKind::AllReduce, bytes));
      if (!decomposed)
        break;
    }
  }
  for (auto [value, number] : visit.whole) {
    std::optional<size_t> member = memberOf(number);
    if (member && visit.op->getNumOperands() > 0)
      add(Gathered, value, *member, times * timeOf(CollKind::AllGather, bytesOf(value) / setting.degree));
  }
}

/// If an operand lacks a class that results have, its gradient is a sum over the class.
void GraphBuilder::priceGradients(const OpDims &visit) {
  for (const OpDims::Part &part : visit.parts) {
    std::optional<size_t> member = memberOf(part.dim);
    bool results = llvm::any_of(visit.rule.results, [&](ArrayRef<DimFactors> dims) { return has(dims, part.factor); });
    if (!member || !results)
      continue;
    for (auto [operand, sides] : llvm::zip(visit.op->getOperands(), visit.rule.operands)) {
      if (has(sides, part.factor) || !gradients.contains(operand))
        continue;
      bool ofParameter = operand.getDefiningOp<ReadOp>();
      add(ofParameter ? ParameterSummed : GradientSummed, operand, *member,
          repeatsOf(visit.op) * timeOf(format::CollKind::AllReduce, bytesOf(operand)));
    }
  }
}

/// An op is divided by any class that it has; two of them exclude each other.
void GraphBuilder::price(const OpDims &visit) {
  std::vector<size_t> members;
  for (const OpDims::Part &part : visit.parts)
    if (std::optional<size_t> member = memberOf(part.dim); member && !llvm::is_contained(members, *member))
      members.push_back(*member);
  if (members.empty())
    return;
  addConflicts(members, graph.problem);
  OpCost cost = getCost(visit.op);
  int64_t bytes = 0, largest = 0;
  for (Value value :
       llvm::concat<Value>(llvm::to_vector(visit.op->getOperands()), llvm::to_vector(visit.op->getResults()))) {
    bytes += bytesOf(value);
    largest = std::max(largest, bytesOf(value));
  }
  bool varies =
      llvm::any_of(visit.parts, [&](const OpDims::Part &part) { return batch.contains(dims.classOf(part.dim)); });
  int64_t flops = varies ? cost.flops * setting.samples / setting.batch : cost.flops;
  // A fusable op is a pass over its largest value at most.
  int64_t forward = cost.fusable ? localTime(setting, 0, largest) : localTime(setting, flops, bytes);
  int64_t passes = 1 + llvm::count_if(visit.op->getOperands(), [&](Value value) { return gradients.contains(value); });
  int64_t saved = forward * passes * (setting.degree - 1) / setting.degree;
  graph.problem.effects.push_back({members, repeatsOf(visit.op) * saved});
  priceSums(visit);
  priceGradients(visit);
}

/// The optimizer passes over a parameter, its gradient and its states.
void GraphBuilder::priceUpdates() {
  constexpr int64_t passes = 7; // reads of all four, writes of three
  std::set<StringRef> seen;
  for (auto read : step.getBlock().getOps<ReadOp>()) {
    if (!gradients.contains(read) || !seen.insert(read.getVariable()).second)
      continue;
    std::vector<size_t> members;
    for (int64_t dim = 0; dim < cast<RankedTensorType>(read.getType()).getRank(); ++dim)
      if (std::optional<size_t> member = memberOf(dims.numberOf(read, dim)))
        members.push_back(*member);
    int64_t ns = localTime(setting, 0, passes * getByteSize(read.getResult())) * (setting.degree - 1) / setting.degree;
    StringRef owner = StringRef(read.getVariable()).rsplit('.').first;
    if (!members.empty())
      graph.problem.effects.push_back({members, setting.repeats(owner) * ns});
  }
}

/// Values that matmuls with sharded columns read. The axis may shard a dim that is neither the batch's nor added up by
/// the matmul: a sequence's.
void GraphBuilder::findInputs() {
  llvm::MapVector<Value, std::pair<int64_t, std::set<size_t>>> readers; // the dim, and classes
  for (const OpDims &visit : dims.ops()) {
    if (!isa<DotOp>(visit.op))
      continue;
    for (auto [operand, sides] : llvm::zip(visit.op->getOperands(), visit.rule.operands)) {
      int64_t dim = freeDim(visit, operand, sides);
      for (const OpDims::Part &part : visit.parts)
        if (std::optional<size_t> member = memberOf(part.dim); dim >= 0 && member && !has(sides, part.factor))
          readers.insert({operand, {dim, {}}}).first->second.second.insert(*member);
    }
  }
  for (auto &[value, reader] : readers) {
    std::optional<Provenance> from = getProvenance(value.getLoc());
    if (from && !from->path.empty())
      graph.inputs.push_back({from->path.str(), reader.first, {reader.second.begin(), reader.second.end()}});
  }
}

/// The first such dim of an operand that an op computes; -1: none.
int64_t GraphBuilder::freeDim(const OpDims &visit, Value operand, ArrayRef<DimFactors> sides) const {
  if (!operand.getDefiningOp() || isa<ReadOp>(operand.getDefiningOp()))
    return -1;
  for (auto [dim, factors] : llvm::enumerate(sides))
    if (factors.size() == 1 && visit.rule.factors[factors.front()].kind == FactorKind::Parallel &&
        visit.rule.factors[factors.front()].size % setting.degree == 0 && !batch.contains(dims.classOf(operand, dim)))
      return dim;
  return -1;
}

ShardGraph GraphBuilder::build() {
  batch = batchOf(step, dims);
  findParameters();
  mergeLayers();
  if (setting.trains)
    gradients = gradientsOf(step, symbols);
  for (const OpDims &visit : dims.ops())
    of[visit.op] = &visit;
  for (const OpDims &visit : dims.ops())
    price(visit);
  priceUpdates();
  findInputs();
  for (auto &[key, effect] : once)
    graph.problem.effects.push_back(effect);
  llvm::sort(graph.problem.conflicts);
  graph.problem.conflicts.erase(llvm::unique(graph.problem.conflicts), graph.problem.conflicts.end());
  return std::move(graph);
}

ShardGraph buildShardGraph(StepOp step, const ShardSetting &setting) { return GraphBuilder(step, setting).build(); }

} // namespace par
