// Reads a model's file and completes a plan for it. Everything that is wrong with the plan is found in one go; the
// phases that follow ask it again and find nothing new.
#include "par/Compiler/Model.h"

#include "RankOrder.h"

#include "par/Phases/Import/Names.h"
#include "par/Phases/Train/Passes.h"
#include "par/Plan/Language/ForeignNames.h"
#include "par/Plan/Model/ReadPlan.h"
#include "par/format/Printable.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace par {

static CompileDiagnostic errorAt(StringRef file, const Twine &message) {
  CompileDiagnostic finding;
  finding.file = file.str();
  finding.message = message.str();
  return finding;
}

/// Warns of missing files of external data: planning needs no weights, training does. Weights that par.export left out
/// on purpose (weights=False) are in a file "*.absent", which is not looked for here.
static void warnOfMissingData(const onnx::Model &model, DiagnosticSink sink) {
  llvm::MapVector<StringRef, unsigned> missing;
  for (const onnx::Tensor &tensor : model.initializers)
    if (StringRef file = tensor.file;
        tensor.storage == onnx::Storage::Absent && !file.empty() && !file.ends_with(".absent"))
      ++missing[file];
  for (auto [file, tensors] : missing) {
    CompileDiagnostic finding = errorAt(
        model.path, "its external data \"" + file + "\" are not there; it is compiled without the weights in them (" +
                        Twine(tensors) + (tensors == 1 ? " tensor" : " tensors") + "), which par-run looks for again");
    finding.warning = true;
    sink(finding);
  }
}

std::shared_ptr<const Model> readModel(const std::string &path, DiagnosticSink sink) {
  // The bundle names its model, and a name is printed wherever that is looked for.
  if (llvm::any_of(path, format::isControl)) {
    sink(errorAt(path, "the path of a model holds no control character; rename it"));
    return nullptr;
  }
  std::string reason;
  std::optional<onnx::Model> graph = onnx::readModel(path, reason);
  if (!graph) {
    sink(errorAt(path, reason));
    return nullptr;
  }
  warnOfMissingData(*graph, sink);
  NameTable names = collectNames(*graph);
  return std::make_shared<const Model>(Model{std::move(*graph), std::move(names)});
}

CompileDiagnostic diagnosticAt(const Origin &where, StringRef modelPath) {
  CompileDiagnostic finding;
  finding.file = where.place().empty() ? modelPath.empty() ? "plan" : modelPath.str() : where.file;
  if (where.kind == Origin::File) {
    finding.line = where.line;
    finding.column = where.column;
  }
  return finding;
}

std::optional<uint64_t> PlannedModel::memoryLimit() const {
  if (plan.plan.target.memory->has_value())
    return *plan.plan.target.memory;
  if (hardware.capacity == 0)
    return std::nullopt;
  return hardware.capacity - hardware.reserve;
}

std::optional<uint64_t> PlannedModel::recomputeLimit() const {
  const PlanRecompute &recompute = plan.plan.recompute;
  if (!plan.plan.train || !recompute.hasBudget())
    return std::nullopt;
  std::optional<uint64_t> limit = memoryLimit();
  if (*recompute.kind == PlanRecompute::Memory)
    return std::min(*recompute.memory, limit.value_or(*recompute.memory));
  return limit;
}

/// The place of a tensor in the model's files; without a file's name, in the text of the model.
static format::Source copyOf(const onnx::Model &model, const onnx::Tensor &tensor, bool transposed) {
  format::Source copy;
  if (tensor.storage != onnx::Storage::Inline)
    copy.file = tensor.storage == onnx::Storage::InModel ? llvm::sys::path::filename(model.path).str() : tensor.file;
  copy.offset = tensor.offset;
  copy.length = tensor.length;
  copy.type = format::dtypeOf(onnx::spell(tensor.type)).value_or(format::DType::F32);
  copy.transposed = transposed;
  return copy;
}

/// Merges the parameters that the plan ties, in the graph and in the names. If the file has different numbers for them,
/// a warning says which ones are used.
static void tieModel(PlannedModel &planned, PlanErrors &errors) {
  std::vector<ParameterTie> ties = tieParameters(planned.plan.plan, planned.plan.names, errors);
  if (ties.empty())
    return;
  auto graph = std::make_shared<onnx::Model>(*planned.graph);
  for (const ParameterTie &tie : ties) {
    if (holdsOtherNumbers(*graph, tie))
      errors.warning(tie.origin, PlanMessage::tieNumbers, tie.name, tie.owner);
    for (const onnx::Tensor &tensor : graph->initializers)
      if (tensor.name == tie.name)
        planned.tiedCopies[tie.owner].push_back(copyOf(*graph, tensor, tie.transposed));
  }
  tieInModel(*graph, ties);
  planned.graph = graph;
}

/// Completes the plan that was read, and compares it with the model's names.
static void completeFor(PlannedModel &planned, const PlanningOptions &options, PlanErrors &errors) {
  Plan &plan = planned.plan.plan;
  const NameTable &names = planned.plan.names;
  if (planned.graph)
    tieModel(planned, errors);
  if (!completePlan(plan, names, errors) || !planned.graph)
    return;
  checkPlanNames(plan, names, errors);
  (void)trainOptions(plan, names, errors); // only for its errors; the phases call it again
  planned.importing = importOptions(plan, names, errors);
  warnOfUnused(plan, names, errors);
  planned.importing.nameAllLost = options.nameAllLost;
}

/// Finds the hardware file and compares the plan with it. Returns false after an error that is not only the plan's.
static bool completeForHardware(PlannedModel &planned, StringRef path, PlanErrors &errors, DiagnosticSink sink) {
  const Plan &plan = planned.plan.plan;
  llvm::Expected<Hardware> found = Hardware::find(*plan.target.hardware);
  if (!found) {
    CompileDiagnostic finding = diagnosticAt(plan.target.hardware.origin, path);
    finding.message = "target.hardware: " + llvm::toString(found.takeError());
    sink(finding);
    return false;
  }
  planned.hardware = *found;
  checkHosts(plan, found->ranks, errors);
  checkWithin(plan, planLevels(*found), errors);
  if (found->cores)
    checkSharedCores(plan, found->ranks, errors);
  checkAlgorithm(plan, found->ranks, found->hasHosts(), errors);
  return true;
}

/// Reports parameters that importing would refuse, beside the plan's mistakes.
static void reportLostParameters(const PlannedModel &planned, bool all, DiagnosticSink sink) {
  const Plan &plan = planned.plan.plan;
  if (!planned.graph || !plan.train || *plan.train->lost == "allow")
    return;
  std::optional<LostMessage> lost = describeLost(*planned.graph, all);
  if (!lost)
    return;
  CompileDiagnostic finding = errorAt(planned.graph->path, lost->message);
  finding.notes = lost->notes;
  sink(finding);
}

static void reportErrors(const PlannedModel &planned, StringRef path, const PlanErrors &errors, DiagnosticSink sink) {
  const NameTable &names = planned.plan.names;
  errors.forEachInOrder([&](const Origin &where, StringRef message, StringRef shown, ArrayRef<std::string> notes) {
    CompileDiagnostic finding = diagnosticAt(where, path);
    finding.message = nameRepeated(message, names);
    finding.shown = shown.str();
    for (const std::string &note : notes)
      finding.notes.push_back(nameRepeated(note, names));
    sink(finding);
  });
}

std::optional<PlannedModel> planModel(const std::shared_ptr<const Model> &model, const PlanText &text,
                                      const PlanningOptions &options, DiagnosticSink sink) {
  PlannedModel planned;
  planned.plugins = text.plugins;
  if (model) {
    planned.graph = std::shared_ptr<const onnx::Model>(model, &model->graph);
    planned.plan.names = model->names;
  }
  StringRef path = model ? StringRef(model->graph.path) : StringRef();
  PlanErrors errors;
  if (std::optional<Plan> plan = readPlan(text.files, text.texts, text.settings, errors)) {
    planned.plan.plan = std::move(*plan);
    completeFor(planned, options, errors);
  }
  if (!errors.any() && !completeForHardware(planned, path, errors, sink))
    return std::nullopt;
  reportErrors(planned, path, errors, sink);
  if (errors.any())
    reportLostParameters(planned, options.nameAllLost, sink);
  for (const auto &[where, message] : errors.warnings()) {
    CompileDiagnostic finding = diagnosticAt(where, path);
    finding.warning = true;
    finding.message = message;
    sink(finding);
  }
  if (errors.any())
    return std::nullopt;
  return planned;
}

} // namespace par
