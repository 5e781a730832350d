// Shares of stages in the work of a step: modules by the provenance of ops, work by their costs.
#include "par/Inspect/Stages.h"

#include "par/Base/Provenance.h"
#include "par/Phases/Annotate/GradientFlow.h"
#include "par/Phases/Annotate/Passes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace par {

/// The last two segments of a name.
static StringRef tailOf(StringRef name) {
  SmallVector<StringRef, 8> parts = splitName(name);
  return parts.size() <= 2 ? name : name.substr(parts[parts.size() - 2].data() - name.data());
}

/// The stack of a numbered module, `transformer.h` for transformer.h.2.attn; empty without a number.
static StringRef stackOf(StringRef module) {
  SmallVector<StringRef, 8> parts = splitName(module);
  for (size_t i = 1; i < parts.size(); ++i)
    if (llvm::all_of(parts[i], llvm::isDigit))
      return module.take_front(parts[i - 1].end() - module.begin());
  return "";
}

/// Containers and stacks, by which names of modules are shortened.
struct ModuleNames {
  llvm::StringSet<> containers; ///< modules that hold numbered ones; they are not named
  llvm::StringSet<> stacks;     ///< stackOf each module

  /// An encoder's and a decoder's layers are `encoder.layers` and `decoder.layers`, the only ones `layers`.
  StringRef shortStack(StringRef stack) const {
    StringRef last = splitName(stack).back();
    bool alone = llvm::count_if(stacks.keys(), [&](StringRef other) { return splitName(other).back() == last; }) == 1;
    return alone ? last : tailOf(stack);
  }
};

/// The short name of an op's module: `h.2` for transformer.h.2.attn, `ln_f` for transformer.ln_f.
static std::string unitOf(StringRef module, const ModuleNames &names) {
  if (StringRef stack = stackOf(module); !stack.empty())
    return (names.shortStack(stack) + "." + splitName(module.drop_front(stack.size() + 1)).front()).str();
  SmallVector<StringRef, 8> parts = splitName(module);
  size_t skip = 0;
  for (std::string prefix = parts.empty() ? "" : parts[0].str();
       skip + 1 < parts.size() && names.containers.contains(prefix); prefix += "." + parts[skip].str())
    ++skip;
  return parts.empty() || names.containers.contains(module) ? "" : parts[skip].str();
}

static ModuleNames findModuleNames(StepOp step) {
  ModuleNames names;
  step.walk([&](Operation *op) {
    std::optional<Provenance> from = getProvenance(op->getLoc());
    StringRef stack = from ? stackOf(from->module) : "";
    if (stack.empty() || !names.stacks.insert(stack).second)
      return;
    for (size_t dot = stack.find('.'); dot != StringRef::npos; dot = stack.find('.', dot + 1))
      names.containers.insert(stack.take_front(dot));
  });
  return names;
}

/// The units of each stage, in the order in which they begin.
class StageUnits {
public:
  explicit StageUnits(size_t stages) : shown(stages), seen(stages), begins(stages) {}

  /// Adds a unit. If a cut splits it, its name includes the begin of the later part: `layers.0 from layers.0.blocks.1`.
  void add(int64_t stage, const std::string &unit, StringRef module, StringRef node) {
    if (begins[stage].empty())
      begins[stage] = "from " + node.str();
    if (unit.empty() || !seen[stage].insert(unit).second)
      return;
    bool isCut =
        llvm::any_of(ArrayRef(seen).take_front(stage), [&](const auto &before) { return before.contains(unit); });
    StringRef part = module.drop_front(std::min(module.find(unit), module.size()));
    shown[stage].push_back(isCut && part.size() > unit.size() ? unit + " from " + part.str() : unit);
  }
  /// The units; in a file without modules, the node that begins the stage.
  std::vector<std::string> of(size_t stage) const {
    return shown[stage].empty() ? std::vector<std::string>{begins[stage]} : shown[stage];
  }

private:
  std::vector<std::vector<std::string>> shown;
  std::vector<llvm::StringSet<>> seen;
  std::vector<std::string> begins;
};

std::vector<StageShare> findStageShares(ModuleOp module) {
  size_t count = llvm::range_size(module.getOps<StageOp>());
  auto steps = module.getOps<StepOp>();
  if (count < 2 || steps.empty())
    return {};
  StepOp step = *steps.begin();
  ModuleNames names = findModuleNames(step);
  StageUnits units(count);
  std::vector<StageShare> stages(count);
  GradientFlow flow(step);
  step.walk([&](Operation *op) {
    std::optional<int64_t> stage = getStage(op);
    std::optional<Provenance> from = getProvenance(op->getLoc());
    if (!stage || !from)
      return;
    std::string unit = from->path == "train.loss" ? "loss" : unitOf(from->module, names);
    units.add(*stage, unit, from->module, from->path);
    stages[*stage].work += double(flopsOf(op)) * double(1 + flow.backward(op));
  });
  for (auto [index, stage] : llvm::enumerate(stages))
    stage.modules = units.of(index);
  return stages;
}

} // namespace par
