#include "NodeCase.h"

#include "par/Import/Import.h"
#include "par/Import/Passes.h"
#include "par/Interpreter/Interpreter.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

namespace par::test {
namespace {

using namespace mlir;
namespace fs = std::filesystem;
using Tensors = std::vector<onnx::Tensor>;

/// PREFIX_0.pb, PREFIX_1.pb, ... of a case; nothing and the reason if one is no tensor.
std::optional<Tensors> readTensors(const fs::path &folder, const std::string &prefix, std::string &reason) {
  Tensors tensors;
  for (int i = 0;; ++i) {
    fs::path file = folder / "test_data_set_0" / (prefix + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(file))
      return tensors;
    std::optional<onnx::Tensor> tensor = onnx::readTensorFile(file.string(), reason);
    if (!tensor)
      return std::nullopt;
    tensors.push_back(std::move(*tensor));
  }
}

/// Elements in row-major order; what repeats itself is held once in a StaticTensor.
template <class Number>
std::vector<Number> elementsOf(const StaticTensor &value) {
  std::vector<Number> elements;
  forEachIndex(value.getShape(), [&](ArrayRef<int64_t> index) {
    int64_t at = value.position(index);
    elements.push_back(std::is_integral_v<Number> ? Number(value.intAt(at)) : Number(value.floatAt(at)));
  });
  return elements;
}

interp::Tensor toTensor(const StaticTensor &value, RankedTensorType type) {
  if (isa<FloatType>(type.getElementType()))
    return interp::Tensor::ofFloats(type, elementsOf<double>(value));
  return interp::Tensor::ofInts(type, elementsOf<int64_t>(value));
}

/// Relative bound of ONNX's own runner, wider where the element type resolves less; integers are equal.
double boundOf(onnx::ElementType type) {
  switch (type) {
  case onnx::ElementType::BF16: return 2e-2;
  case onnx::ElementType::F16: return 4e-3;
  default: return onnx::isFloat(type) ? 1e-3 : 0;
  }
}

bool agree(double actual, double expected, onnx::ElementType type) {
  if (std::isnan(expected) || std::isnan(actual))
    return std::isnan(expected) && std::isnan(actual);
  if (std::isinf(expected) || std::isinf(actual))
    return actual == expected;
  double floor = type == onnx::ElementType::F16 || type == onnx::ElementType::BF16 ? 1e-3 : 1e-7;
  return std::abs(actual - expected) <= (boundOf(type) > 0 ? floor + boundOf(type) * std::abs(expected) : 0);
}

/// "" if the output is what is expected, else the first difference.
std::string compare(const interp::Tensor &actual, const onnx::Tensor &expected) {
  std::string type;
  llvm::raw_string_ostream(type) << actual.getType().getElementType();
  if (ArrayRef<int64_t>(actual.getShape()) != ArrayRef<int64_t>(expected.dims) || type != onnx::spell(expected.type)) {
    std::string text;
    llvm::raw_string_ostream out(text);
    out << "is " << actual.getType() << ", expected " << onnx::spell(expected.type) << "[";
    llvm::interleaveComma(expected.dims, out);
    out << "]";
    return text;
  }
  std::vector<double> values = elementsOf<double>(*StaticTensor::ofBytes(expected.type, expected.dims, expected.bytes));
  for (int64_t i = 0; i < actual.getSize(); ++i) {
    double got = actual.isFloat() ? actual.floats()[i] : double(actual.ints()[i]), wanted = values[i];
    if (!agree(got, wanted, expected.type))
      return llvm::formatv("element {0} is {1:e6}, expected {2:e6}", i, got, wanted).str();
  }
  return "";
}

class NodeCase {
public:
  explicit NodeCase(const fs::path &folder) : folder(folder) {
    DialectRegistry registry;
    registerDialect(registry);
    context.appendDialectRegistry(registry);
  }

  CaseResult run() {
    std::string reason;
    model = onnx::readModel((folder / "model.onnx").string(), reason);
    if (!model)
      return {Verdict::Refused, "model.onnx: " + reason};
    std::optional<Tensors> in = readTensors(folder, "input", reason), out = readTensors(folder, "output", reason);
    if (!in || !out || in->size() != model->inputs.size() || out->size() != model->outputs.size())
      return {Verdict::Refused, "data that are not tensors" + (reason.empty() ? "" : ": " + reason)};
    inputs = std::move(*in);
    outputs = std::move(*out);
    bindShapes();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && error.empty()) {
        error = diagnostic.str();
        located = isa<FileLineColLoc>(diagnostic.getLocation());
      }
      return success();
    });
    OwningOpRef<ModuleOp> module = import();
    if (!module)
      return {located ? Verdict::Refused : Verdict::Wrong, error.empty() ? "refused without an error" : error};
    return interpret(*module);
  }

private:
  /// The data fix what the model leaves open. Optionals and sequences have no type here.
  void bindShapes() {
    for (auto [info, tensor] : llvm::zip(model->inputs, inputs)) {
      info.hasShape = info.isTensor;
      info.shape.clear();
      for (int64_t dim : tensor.dims)
        info.shape.push_back({dim, ""});
    }
  }

  /// Gives inputs as known one after the other, as nodes ask for them.
  OwningOpRef<ModuleOp> import() {
    ImportOptions options;
    for (;;) {
      std::set<std::string> asked;
      error.clear();
      if (OwningOpRef<ModuleOp> module = importModel(*model, options, &context, &asked)) {
        PassManager manager(&context);
        buildImportPipeline(manager);
        return succeeded(manager.run(*module)) ? std::move(module) : OwningOpRef<ModuleOp>();
      }
      size_t before = options.known.size();
      for (auto [info, tensor] : llvm::zip(model->inputs, inputs))
        if (asked.contains(info.name))
          if (auto value = StaticTensor::ofBytes(tensor.type, tensor.dims, tensor.bytes))
            options.known[info.name] = *value;
      if (options.known.size() == before)
        return {};
    }
  }

  CaseResult interpret(ModuleOp module) {
    auto step = module.lookupSymbol<StepOp>("predict");
    interp::Named data;
    for (auto [info, tensor] : llvm::zip(model->inputs, inputs))
      for (auto [argument, name] : llvm::zip(step.getArguments(), step.getInputsAttr().getAsRange<StringAttr>()))
        if (name.getValue() == info.name)
          data[info.name] = toTensor(*StaticTensor::ofBytes(tensor.type, tensor.dims, tensor.bytes),
                                     cast<RankedTensorType>(argument.getType()));
    FailureOr<interp::Outcome> outcome = interp::runStep(step, {}, data);
    if (failed(outcome))
      return {Verdict::Wrong, "cannot be interpreted: " + error};
    for (auto [info, tensor] : llvm::zip(model->outputs, outputs)) {
      auto found = outcome->outputs.find(info.name);
      std::string difference = found == outcome->outputs.end() ? "is missing" : compare(found->second, tensor);
      if (!difference.empty())
        return {Verdict::Wrong, "output \"" + info.name + "\" " + difference};
    }
    return {Verdict::Passed, ""};
  }

  fs::path folder;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::optional<onnx::Model> model;
  Tensors inputs, outputs;
  std::string error;
  bool located = false;
};

} // namespace

CaseResult runCase(const std::string &folder) { return NodeCase(folder).run(); }

CaseResult runCaseApart(const std::string &folder, unsigned seconds) {
  int ends[2];
  if (::pipe(ends))
    return {Verdict::Crashed, "no pipe"};
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(seconds);
    CaseResult result = runCase(folder);
    std::string text = char('0' + int(result.verdict)) + result.reason;
    ssize_t written = ::write(ends[1], text.data(), std::min<size_t>(text.size(), 4096));
    ::_exit(written < 0);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  ssize_t count = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (count <= 0)
    return {Verdict::Crashed, WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : "ended silently"};
  return {Verdict(text[0] - '0'), text.substr(1, count - 1)};
}

std::string operatorOf(const std::string &folder) {
  std::string reason;
  std::optional<onnx::Model> model = onnx::readModel(folder + "/model.onnx", reason);
  return model && !model->nodes.empty() ? model->nodes.front().opType : "";
}

} // namespace par::test
