// The facts at a name: rules from the plan, shardings from the module after Propagate by the provenance of its ops,
// bytes from the programs by the names of tensors and the provenance of the instructions that write buffers.
#include "par/Inspect/Named.h"

#include "BufferUse.h"

#include "par/Base/Provenance.h"
#include "par/Dialect/Par.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace par {

static bool isIn(StringRef module, StringRef outer) {
  return !outer.empty() && (module == outer || (module.starts_with(outer) && module[outer.size()] == '.'));
}

/// `{1: tp, blocks: 3}`
static std::string dimsOf(const PlanShard &rule) {
  std::vector<std::string> parts;
  for (const auto &[dim, axes] : rule.dims)
    parts.push_back(std::to_string(dim) + ": " + (axes->empty() ? "none" : llvm::join(*axes, "+")));
  if (rule.blocks)
    parts.push_back("blocks: " + std::to_string(**rule.blocks));
  if (rule.partial)
    parts.push_back("partial: " + llvm::join(**rule.partial, "+"));
  if (rule.closed && **rule.closed)
    parts.push_back("closed");
  return parts.empty() ? "replicated" : "{" + llvm::join(parts, ", ") + "}";
}

/// Rules of `shard` that match the name, or parameters of its module.
static std::vector<MetRule> rulesOf(const NamedThing &thing, const ModelPlan &model) {
  std::vector<MetRule> rules;
  for (const PlanShard &rule : model.plan.shard) {
    PatternMatches matches = matchPattern(rule.name.pattern, model.names);
    auto meets = [&](ArrayRef<unsigned> indices, auto nameOf) {
      return llvm::any_of(indices, [&](unsigned index) { return nameOf(index) == thing.name; });
    };
    bool met =
        llvm::any_of(matches.parameters, [&](unsigned index) { return llvm::is_contained(thing.parameters, index); });
    met |= llvm::any_of(matches.modules, [&](unsigned index) { return model.names.modules[index] == thing.module; });
    met |= meets(matches.nodes, [&](unsigned index) -> StringRef { return model.names.nodes[index].name; });
    met |= meets(matches.inputs, [&](unsigned index) -> StringRef { return model.names.inputs[index].name; });
    met |= meets(matches.outputs, [&](unsigned index) -> StringRef { return model.names.outputs[index].name; });
    if (met)
      rules.push_back({rule.name.origin.comment(), rule.name.pattern.text().str() + " " + dimsOf(rule)});
  }
  return rules;
}

/// The keys whose axes the shardings have without a rule of `shard`.
static void addKeys(const ModelPlan &model, NameFacts &facts) {
  const Plan &plan = model.plan;
  bool hasBatch = llvm::any_of(facts.shardings, [&](const ValueSharding &value) {
    return llvm::any_of(*plan.batch.over, [&](const std::string &axis) {
      return value.part != "stored" && StringRef(value.sharding).contains("{" + axis);
    });
  });
  if (hasBatch)
    facts.rules.push_back({plan.batch.over.origin.comment(),
                           "batch.over is " + llvm::join(*plan.batch.over, "+") + ", which shards the dim of samples"});
  if (facts.thing.kind == "parameter" && *plan.zero.level > 0)
    facts.rules.push_back({plan.zero.level.origin.comment(), "zero is " + std::to_string(*plan.zero.level) + " over " +
                                                                 llvm::join(*plan.zero.over, "+")});
}

/// `[{dp}, {}, {tp}]` of `#par.sharding<[{"dp"}, {}, {"tp"}]>`
static std::string textOf(ShardingAttr sharding) {
  std::string text;
  llvm::raw_string_ostream(text) << sharding;
  llvm::erase(text, '"');
  StringRef rest = text;
  rest.consume_front("#par.sharding<");
  rest.consume_back(">");
  return rest.str();
}

static std::string textOf(RankedTensorType type) {
  std::string element;
  llvm::raw_string_ostream(element) << type.getElementType();
  auto sizes = llvm::map_range(type.getShape(), [](int64_t size) { return std::to_string(size); });
  return element + "[" + llvm::join(sizes, "x") + "]";
}

namespace {

/// Collects the shardings at a name.
class ShardingFinder {
public:
  ShardingFinder(const NamedThing &thing, std::vector<ValueSharding> &found) : thing(thing), found(found) {}

  void run(ModuleOp module, StringRef entry) {
    if (thing.kind == "parameter")
      for (VariableOp variable : module.getOps<VariableOp>())
        addVariable(variable);
    for (FragmentOp fragment : module.getOps<FragmentOp>())
      if (fragment.getSymName().starts_with((entry + ".").str()))
        fragment.walk([&](Operation *op) { addOp(fragment, op); });
    for (StepOp step : module.getOps<StepOp>())
      if (step.getSymName() == entry)
        addEnds(step);
  }

private:
  void add(ValueSharding value) {
    auto known = llvm::find(found, value);
    if (known == found.end())
      known = found.insert(found.end(), std::move(value));
    ++known->count;
  }
  void addDist(StringRef part, StringRef what, mlir::Type type) {
    if (auto dist = dyn_cast<DistType>(type))
      add({dist.getStage().getValue().str(), part.str(), what.str(), textOf(dist.getTensor()),
           textOf(dist.getSharding())});
  }
  void addVariable(VariableOp variable) {
    bool isOf = variable.getSymName() == thing.name || (variable.getOf() && *variable.getOf() == thing.name);
    if (isOf && variable.getAt())
      for (mlir::Type place : variable.getAt()->getAsValueRange<TypeAttr>())
        addDist("stored", stringifyVariableKind(variable.getKind()), place);
  }
  bool isAt(Operation *op) const {
    std::optional<Provenance> from = getProvenance(op->getLoc());
    if (!from)
      return false;
    return thing.kind == "node" ? from->path == thing.name : thing.kind == "module" && isIn(from->module, thing.name);
  }
  void addOp(FragmentOp fragment, Operation *op) {
    if (op == fragment || !isAt(op))
      return;
    for (Value result : op->getResults())
      if (ShardingAttr sharding = getSharding(result))
        add({fragment.getStage().str(), stringifyFragmentKind(fragment.getKind()).str(),
             op->getName().stripDialect().str(), textOf(cast<RankedTensorType>(result.getType())), textOf(sharding)});
  }
  void addEnds(StepOp step) {
    auto addNamed = [&](std::optional<ArrayAttr> names, TypeRange types, StringRef kind) {
      if (names && thing.kind == kind)
        for (auto [name, type] : llvm::zip(names->getAsRange<StringAttr>(), types))
          if (name == thing.name)
            addDist("step", kind, type);
    };
    addNamed(step.getInputs(), step.getFunctionType().getInputs(), "input");
    addNamed(step.getOutputs(), step.getFunctionType().getResults(), "output");
  }

  const NamedThing &thing;
  std::vector<ValueSharding> &found;
};

/// Collects the buffers of a name.
class BytesFinder {
public:
  BytesFinder(const NamedThing &thing, const format::Bundle &bundle, StringRef place)
      : thing(thing), bundle(bundle), place(place) {}

  std::vector<NamedBytes> run() {
    for (const format::Program &program : bundle.programs)
      addProgram(program);
    llvm::stable_sort(found, [](const NamedBytes &a, const NamedBytes &b) { return a.bytes > b.bytes; });
    return std::move(found);
  }

private:
  void addProgram(const format::Program &program) {
    BufferUses uses(bundle, program);
    llvm::DenseMap<uint32_t, int64_t> makers = findMakers(program);
    for (auto [number, buffer] : llvm::enumerate(program.buffers)) {
      auto maker = makers.find(number);
      bool isMade = maker != makers.end() && isHere(bundle.provenance[maker->second]);
      if (buffer.of != format::noIndex || !(buffer.tensor.empty() ? isMade : isState(buffer.tensor)))
        continue;
      bool host = buffer.space == format::Space::Host;
      add({program.name, host ? "in host memory" : toString(uses.of(number)).str(), typeOf(buffer), 1,
           buffer.bytes() * buffer.at.size()});
    }
  }
  /// Module and line of the first instruction that writes each buffer.
  static llvm::DenseMap<uint32_t, int64_t> findMakers(const format::Program &program) {
    llvm::DenseMap<uint32_t, int64_t> makers;
    for (const format::Block &block : program.blocks)
      for (const format::Instruction &instruction : block.instructions)
        for (const format::Operand &operand : instruction.operands)
          if (operand.access != format::Access::Read && instruction.provenance >= 0)
            makers.try_emplace(operand.buffer, instruction.provenance);
    return makers;
  }
  bool isState(StringRef name) const {
    const format::Tensor *tensor = bundle.manifest.findTensor(name.str());
    return thing.kind == "parameter" && tensor && (tensor->name == thing.name || tensor->of == thing.name);
  }
  bool isHere(StringRef maker) const {
    return thing.kind == "module" ? isIn(maker.split(", ").first, thing.name)
                                  : thing.kind == "node" && !place.empty() && maker == place;
  }
  void add(NamedBytes bytes) {
    auto known = llvm::find_if(found, [&](const NamedBytes &other) {
      return std::tie(other.role, other.use, other.type) == std::tie(bytes.role, bytes.use, bytes.type);
    });
    if (known == found.end())
      return found.push_back(std::move(bytes));
    ++known->count;
    known->bytes += bytes.bytes;
  }

  const NamedThing &thing;
  const format::Bundle &bundle;
  StringRef place;
  std::vector<NamedBytes> found;
};

} // namespace

NameFacts describeNamed(const NamedThing &thing, const Compiled &compiled, ArrayRef<Communication> communications) {
  const PlannedModel &planned = compiled.planned;
  NameFacts facts{thing, rulesOf(thing, planned.plan), {}, {}, {}};
  ShardingFinder(thing, facts.shardings).run(*compiled.modules.at("propagate"), planned.entry());
  addKeys(planned.plan, facts);
  for (const Communication &each : communications) {
    StringRef module = StringRef(each.place).split(", ").first;
    if (thing.kind == "module" ? isIn(module, thing.name) : !thing.module.empty() && module == thing.module)
      facts.communications.push_back(each);
  }
  StringRef source = StringRef(thing.about).split(", ").second;
  std::string place = thing.module + (source.empty() ? "" : ", " + source.str());
  facts.bytes = BytesFinder(thing, *compiled.bundle, place).run();
  return facts;
}

} // namespace par
