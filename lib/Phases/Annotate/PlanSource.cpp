#include "PlanSource.h"

#include "par/Base/MeshFactor.h"
#include "par/Base/Provenance.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace par {

Location planLocation(const Origin &origin, ModuleOp module) {
  if (origin.place().empty())
    return module.getLoc();
  return FileLineColLoc::get(module.getContext(), origin.file, origin.line, origin.column);
}

LogicalResult emitPlanErrors(const PlanErrors &errors, ModuleOp module) {
  errors.forEach([&](const Origin &where, StringRef message, ArrayRef<std::string> notes) {
    InFlightDiagnostic diagnostic = emitError(planLocation(where, module)) << message;
    for (const std::string &note : notes)
      diagnostic.attachNote() << note;
  });
  return failure(errors.any());
}

FailureOr<ModelPlan> loadPlan(ModuleOp module, ArrayRef<std::string> files, const ModelPlan *given) {
  if (given)
    return *given;
  PlanErrors errors;
  NameTable names = namesOfModule(module);
  std::optional<Plan> plan = readPlan(files, {}, errors);
  if (plan)
    completePlan(*plan, names, errors);
  if (failed(emitPlanErrors(errors, module)))
    return failure();
  return ModelPlan{std::move(*plan), std::move(names)};
}

SmallVector<std::string> refineAxes(const Plan &plan, ArrayRef<std::string> axes) {
  SmallVector<std::string> refined;
  for (const std::string &axis : axes)
    for (auto &[name, size] : refineAxis(axis, plan.axisSize(axis)))
      refined.push_back(name);
  return refined;
}

ShardingAttr buildSharding(const Plan &plan, const ResolvedShard &rule, int64_t rank, ArrayRef<int64_t> dimOf,
                           MLIRContext *context) {
  SmallVector<SmallVector<StringAttr>> axes(rank);
  for (const auto &[dim, said] : rule.dims)
    for (const std::string &axis : refineAxes(plan, *said))
      axes[dimOf[dim < 0 ? dim + dimOf.size() : dim]].push_back(StringAttr::get(context, axis));
  SmallVector<DimShardingAttr> dims;
  for (ArrayRef<StringAttr> list : axes)
    dims.push_back(DimShardingAttr::get(context, list, !*rule.closed));
  SmallVector<StringAttr> partial;
  for (const std::string &axis : rule.partial ? refineAxes(plan, **rule.partial) : SmallVector<std::string>())
    partial.push_back(StringAttr::get(context, axis));
  return ShardingAttr::get(context, dims, partial);
}

static std::vector<std::string> spellShape(RankedTensorType type) {
  std::vector<std::string> shape;
  for (int64_t size : type.getShape())
    shape.push_back(std::to_string(size));
  return shape;
}

NameTable namesOfModule(ModuleOp module) {
  NameTable names;
  for (auto variable : module.getOps<VariableOp>()) {
    if (variable.getKind() != VariableKind::parameter && variable.getKind() != VariableKind::frozen)
      continue;
    auto type = cast<RankedTensorType>(variable.getStored().value_or(variable.getType()));
    NameTable::Parameter parameter;
    parameter.name = variable.getSymName().str();
    parameter.shape = type.getShape().vec();
    parameter.type = "f32";
    parameter.trainable = variable.getKind() == VariableKind::parameter;
    names.parameters.push_back(std::move(parameter));
  }
  llvm::SetVector<StringRef> modules;
  llvm::StringSet<> nodes;
  for (auto step : module.getOps<StepOp>()) {
    if (auto inputs = step.getInputs())
      for (auto [name, type] : llvm::zip(*inputs, step.getArgumentTypes()))
        names.inputs.push_back({cast<StringAttr>(name).str(), spellShape(cast<RankedTensorType>(type)), ""});
    if (auto outputs = step.getOutputs())
      for (auto [name, type] : llvm::zip(*outputs, step.getResultTypes()))
        names.outputs.push_back({cast<StringAttr>(name).str(), spellShape(cast<RankedTensorType>(type)), ""});
    step.walk([&](Operation *op) {
      std::optional<Provenance> from = getProvenance(op->getLoc());
      if (!from || !isTensorOp(op))
        return;
      for (size_t dot = from->module.find('.'); dot != StringRef::npos; dot = from->module.find('.', dot + 1))
        modules.insert(from->module.take_front(dot));
      if (!from->module.empty())
        modules.insert(from->module);
      StringRef type = from->path.rsplit('/').second.split('.').first;
      if (nodes.insert(from->path).second)
        names.nodes.push_back({from->path.str(), from->module.str(), type.str(), ""});
    });
  }
  for (StringRef name : modules)
    names.modules.push_back(name.str());
  return names;
}

} // namespace par
