// The flags about ONNX's multi-device annotations, from the model's file to lines and files.
#include "OnnxDevices.h"

#include "Warnings.h"
#include "par/Compiler/Model.h"
#include "par/format/Printable.h"

#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace par {

static std::string count(int64_t number, StringRef word) {
  return (Twine(number) + " " + word + (number == 1 ? "" : "s")).str();
}

/// Says all findings; the number of broken rules.
static size_t report(const onnx::Model &model, DiagnosticSink sink) {
  size_t broken = 0;
  for (const onnx::DeviceFinding &each : onnx::checkDevices(model)) {
    CompileDiagnostic finding;
    finding.file = model.path;
    finding.warning = each.isNote;
    finding.message = each.message;
    sink(finding);
    broken += !each.isNote;
  }
  return broken;
}

std::string checkDeviceFlags(const CompileOptions &options) {
  if (options.emitOnnx && !StringRef(options.output).ends_with(".onnx"))
    return "--emit=onnx writes a model: say where, -o FILE.onnx";
  if (options.emitOnnx && options.check)
    return "--emit=onnx writes a model, --check writes nothing; leave out one of them";
  if (options.emitOnnx && (!options.stopAfter.empty() || options.printPlan || options.list))
    return "--emit=onnx writes a model and prints nothing; leave out --stop-after, --print-plan or --list";
  bool several = options.fit || options.searches || options.compare || !options.whatIf.empty() || !options.also.empty();
  if (options.onnxSharding && several)
    return "--onnx-sharding is for one plan; write it with --write-plan=F and give F to a search, a comparison or "
           "--also";
  if (options.emitOnnx && several)
    return "--emit=onnx writes one plan; leave out the search, the comparison or --also";
  return "";
}

int checkOnnxDevices(const CompileOptions &options, raw_ostream &out, DiagnosticSink sink) {
  std::vector<CompileDiagnostic> findings;
  auto keep = [&](const CompileDiagnostic &finding) {
    findings.push_back(finding);
    sink(finding);
  };
  std::shared_ptr<const Model> model = readModel(options.model, keep);
  if (!model || report(model->graph, keep) || !mayWarn(options, findings, sink))
    return WrongInput;
  if (options.quiet)
    return Done;
  if (model->graph.configurations.empty())
    out << "devices none: the model has no multi-device annotations\n";
  for (const onnx::DeviceConfiguration &configuration : model->graph.configurations) {
    onnx::DeviceCounts counts = onnx::countDevices(model->graph, configuration.name);
    out << "devices " << configuration.name << ": " << count(*configuration.devices, "device") << ", "
        << count(counts.shardings, "sharding") << " at " << count(counts.nodes, "node");
    if (counts.stages)
      out << ", " << count(counts.stages, "stage");
    out << "; every rule holds\n";
  }
  return Done;
}

static CompileDiagnostic errorAt(StringRef file, const Twine &message) {
  CompileDiagnostic finding;
  finding.file = file.str();
  finding.message = message.str();
  return finding;
}

static std::optional<DevicePlan> readDevicePlan(const CompileOptions &options, const Model *model,
                                                DiagnosticSink sink) {
  if (!model) {
    sink(errorAt("", "--onnx-sharding reads a model's annotations; give a model"));
    return std::nullopt;
  }
  std::optional<DevicePlan> plan = planOfDevices(*model, *options.onnxSharding, sink);
  if (!plan || options.writePlan.empty())
    return plan;
  std::error_code error;
  raw_fd_ostream file(options.writePlan, error);
  if (!error) {
    file << plan->text;
    file.close();
    error = file.error();
    file.clear_error();
  }
  if (!error)
    return plan;
  sink(errorAt(options.writePlan, "cannot write the plan (--write-plan): " + Twine(error.message())));
  return std::nullopt;
}

bool layDevices(const CompileOptions &options, const Model *model, DiagnosticSink sink, PlanText &text,
                std::string &configuration) {
  std::optional<DevicePlan> plan = readDevicePlan(options, model, sink);
  if (!plan)
    return false;
  configuration = plan->configuration;
  text.texts.push_back({plan->name, plan->text});
  return true;
}

bool keepsDevices(const Model &model, const std::string &configuration, const Compiled &compiled, DiagnosticSink sink) {
  StepDevices step = devicesOfStep(model, compiled, *compiled.module);
  std::vector<std::string> others = findOtherDevices(model.graph, configuration, step);
  for (const std::string &other : others)
    sink(errorAt(model.graph.path, other));
  return others.empty();
}

int emitOnnx(const CompileOptions &options, const Model &model, const Compiled &compiled, raw_ostream &out,
             DiagnosticSink sink) {
  StepDevices step = devicesOfStep(model, compiled, *compiled.module);
  std::string wrong = onnx::writeDevices(model.graph, step.configuration, step.nodes, options.output);
  if (!wrong.empty()) {
    sink(errorAt(options.output, wrong));
    return WrongInput;
  }
  if (options.quiet)
    return Done;
  int64_t nodes = 0, shardings = 0;
  for (const auto &node : step.nodes) {
    nodes += node.has_value();
    shardings += node ? int64_t(node->shardings.size()) : 0;
  }
  out << "wrote   " << format::printable(options.output) << ": " << count(*step.configuration.devices, "device") << ", "
      << count(shardings, "sharding") << " at " << count(nodes, "node") << " of " << step.nodes.size() << "\n";
  const std::pair<int64_t, const char *> left[] = {
      {step.sums, "unreduced sums, for which ONNX has no word"},
      {step.partAxes, "over a part of an axis of the mesh"},
      {int64_t(step.reshaped.size()), "computed in another shape than the file's"},
      {step.unshaped, "without a shape in the file"},
      {int64_t(step.parted.size()), "of nodes whose ops are on several stages"}};
  for (auto [number, what] : left)
    if (number)
      out << "  left out " << number << " " << what << "\n";
  return Done;
}

} // namespace par
