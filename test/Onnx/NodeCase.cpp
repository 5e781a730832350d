// Runs one of ONNX's node tests: imports its model, interprets it and compares outputs within ONNX's own bound. Each
// case runs in a process of its own with a time limit.
#include "GradientCheck.h"

#include "par/Interpreter/Interpreter.h"
#include "par/Phases/Import/Import.h"
#include "par/Phases/Import/Operators.h"
#include "par/Phases/Import/Passes.h"

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

/// One input or output: a tensor, or the tensors of a sequence or an optional.
struct Datum {
  onnx::ValueInfo info;
  std::vector<onnx::Tensor> tensors;

  /// The step's name of tensor i.
  std::string nameOf(size_t i) const { return info.isSequence ? info.name + "." + std::to_string(i) : info.name; }
};
using Data = std::vector<Datum>;

/// PREFIX_0.pb, PREFIX_1.pb, ... of a case, one for each of `infos`; nothing and the reason if one is not of
/// its type.
std::optional<Data> readData(const fs::path &folder, const std::string &prefix,
                             const std::vector<onnx::ValueInfo> &infos, std::string &reason) {
  Data data;
  for (const onnx::ValueInfo &info : infos) {
    fs::path file = folder / "test_data_set_0" / (prefix + "_" + std::to_string(data.size()) + ".pb");
    auto tensors = onnx::readDataFile(file.string(), info, reason);
    if (!tensors)
      return std::nullopt;
    data.push_back({info, std::move(*tensors)});
  }
  return data;
}

/// Elements in row-major order; a StaticTensor stores repeated elements once.
template <class Number>
std::vector<Number> elementsOf(const StaticTensor &value) {
  std::vector<Number> elements;
  forEachIndex(value.getShape(), [&](ArrayRef<int64_t> index) {
    int64_t at = value.position(index);
    elements.push_back(std::is_integral_v<Number> ? Number(value.intAt(at)) : Number(value.floatAt(at)));
  });
  return elements;
}

/// Integers as the dialect has them: of the same bits, with a sign.
std::vector<int64_t> signedElements(const StaticTensor &value) {
  std::vector<int64_t> elements = elementsOf<int64_t>(value);
  unsigned width = 8 * onnx::byteSize(value.getType());
  for (int64_t &element : elements)
    element = llvm::SignExtend64(uint64_t(element), width);
  return elements;
}

interp::Tensor toTensor(const StaticTensor &value, RankedTensorType type) {
  if (isa<FloatType>(type.getElementType()))
    return interp::Tensor::ofFloats(type, elementsOf<double>(value));
  return interp::Tensor::ofInts(type, signedElements(value));
}

/// Relative bound of ONNX's own runner, wider where the element type resolves less; integers are equal.
double boundOf(onnx::ElementType type) {
  switch (type) {
  case onnx::ElementType::BF16:
    return 2e-2;
  case onnx::ElementType::F16:
    return 4e-3;
  default:
    return onnx::isFloat(type) ? 1e-3 : 0;
  }
}

/// `largest`: the largest magnitude in the expected tensor. The expected numbers were computed in their own type. If
/// terms of a sum cancel (an inverse transform's zeros), the rounding of the large terms is left: an ulp of these is no
/// error.
bool agree(double actual, double expected, double largest, onnx::ElementType type) {
  if (std::isnan(expected) || std::isnan(actual))
    return std::isnan(expected) && std::isnan(actual);
  if (std::isinf(expected) || std::isinf(actual))
    return actual == expected;
  bool half = type == onnx::ElementType::F16 || type == onnx::ElementType::BF16;
  double floor = half ? 1e-3 : std::max(1e-7, type == onnx::ElementType::F32 ? largest * 0x1p-23 : 0.0);
  return std::abs(actual - expected) <= (boundOf(type) > 0 ? floor + boundOf(type) * std::abs(expected) : 0);
}

/// The type's name in the dialect, whose integers have no sign.
std::string signless(onnx::ElementType type) {
  std::string text = onnx::spell(type);
  return text[0] == 'u' ? "i" + text.substr(1) : text;
}

bool isUnsigned(StepOp step, StringRef name) {
  auto names = step->getAttrOfType<ArrayAttr>(unsignedNames);
  return names && llvm::is_contained(names.getAsValueRange<StringAttr>(), name);
}

std::string describeDifference(RankedTensorType actual, bool isUnsigned, const onnx::Tensor &expected) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "is " << actual << (isUnsigned ? " without a sign" : "") << ", expected " << onnx::spell(expected.type) << "[";
  llvm::interleaveComma(expected.dims, out);
  out << "]";
  return text;
}

/// "" if the output matches, else the first difference. For `random` outputs only type and shape are compared.
std::string compare(const interp::Tensor &actual, bool isUnsigned, const onnx::Tensor &expected, bool random) {
  std::string type;
  llvm::raw_string_ostream(type) << actual.getType().getElementType();
  if (ArrayRef<int64_t>(actual.getShape()) != ArrayRef<int64_t>(expected.dims) || type != signless(expected.type) ||
      isUnsigned != (onnx::spell(expected.type)[0] == 'u'))
    return describeDifference(actual.getType(), isUnsigned, expected);
  if (random)
    return "";
  auto known = StaticTensor::ofBytes(expected.type, expected.dims, expected.bytes);
  if (!known)
    return "is expected to be of " + onnx::spell(expected.type);
  if (!actual.isFloat()) {
    std::vector<int64_t> wanted = signedElements(*known);
    for (int64_t i = 0; i < actual.getSize(); ++i)
      if (actual.ints()[i] != wanted[i])
        return llvm::formatv("element {0} is {1}, expected {2}", i, actual.ints()[i], wanted[i]).str();
    return "";
  }
  std::vector<double> values = elementsOf<double>(*known);
  double largest = 0;
  for (double value : values)
    largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
  for (int64_t i = 0; i < actual.getSize(); ++i)
    if (!agree(actual.floats()[i], values[i], largest, expected.type))
      return llvm::formatv("element {0} is {1:e6}, expected {2:e6}", i, actual.floats()[i], values[i]).str();
  return "";
}

class NodeCase {
public:
  NodeCase(const fs::path &folder, bool gradients) : folder(folder), gradients(gradients) {
    DialectRegistry registry;
    registerDialect(registry);
    context.appendDialectRegistry(registry);
  }

  CaseResult run() {
    std::string reason;
    model = onnx::readModel((folder / "model.onnx").string(), reason);
    if (!model)
      return {Verdict::Refused, "model.onnx: " + reason};
    std::optional<Data> in = readData(folder, "input", model->inputs, reason), out;
    if (in)
      out = readData(folder, "output", model->outputs, reason);
    if (!in || !out)
      return {Verdict::Refused, "data that are not tensors: " + reason};
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
    if (!gradients)
      return interpret(*module);
    CaseResult result = checkGradients(*module, dataOf(module->lookupSymbol<StepOp>("predict")));
    if (!error.empty())
      result.reason += ": " + error;
    return result;
  }

private:
  /// Takes dims that the model leaves open from the data.
  void bindShapes() {
    for (auto [info, datum] : llvm::zip(model->inputs, inputs)) {
      if (!info.isTensor) {
        for (const onnx::Tensor &tensor : datum.tensors)
          options.held[info.name].push_back({tensor.type, Shape(tensor.dims.begin(), tensor.dims.end())});
        options.held.try_emplace(info.name);
        continue;
      }
      info.hasShape = true;
      info.shape.clear();
      for (int64_t dim : datum.tensors[0].dims)
        info.shape.push_back({dim, ""});
    }
  }

  /// Gives an input as known when a node asks for it, one after the other.
  OwningOpRef<ModuleOp> import() {
    for (;;) {
      std::set<std::string> asked;
      error.clear();
      if (OwningOpRef<ModuleOp> module = importModel(*model, options, &context, &asked)) {
        PassManager manager(&context);
        buildImportPipeline(manager);
        return succeeded(manager.run(*module)) ? std::move(module) : OwningOpRef<ModuleOp>();
      }
      size_t before = options.known.size();
      for (const Datum &datum : inputs)
        if (datum.info.isTensor && asked.contains(datum.info.name))
          if (auto value = read(datum.tensors[0]))
            options.known[datum.info.name] = *value;
      if (options.known.size() == before)
        return {};
    }
  }

  static std::optional<StaticTensor> read(const onnx::Tensor &tensor) {
    return StaticTensor::ofBytes(tensor.type, tensor.dims, tensor.bytes);
  }

  /// True if the outputs are random: the standard fixes only their type, shape and distribution.
  bool isRandom() const {
    return llvm::any_of(model->nodes, [&](const onnx::Node &node) {
      return llvm::is_contained(
                 {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"},
                 node.opType) ||
             (node.opType == "Dropout" && numberOf(node, 2, 0) != 0 && numberOf(node, 1, 0.5) != 0);
    });
  }

  /// The number that the data give for input i of a node.
  double numberOf(const onnx::Node &node, size_t i, double otherwise) const {
    for (const Datum &datum : inputs)
      if (i < node.inputs.size() && datum.info.isTensor && datum.info.name == node.inputs[i])
        if (auto value = read(datum.tensors[0]); value && value->getElements() == 1)
          return value->floatAt(0);
    for (const onnx::Tensor &tensor : model->initializers)
      if (i < node.inputs.size() && tensor.name == node.inputs[i])
        if (auto value = read(tensor); value && value->getElements() == 1)
          return value->floatAt(0);
    return otherwise;
  }

  interp::Named dataOf(StepOp step) const {
    interp::Named data;
    llvm::StringMap<RankedTensorType> types;
    for (auto [argument, name] : llvm::zip(step.getArguments(), step.getInputsAttr().getAsRange<StringAttr>()))
      types[name.getValue()] = cast<RankedTensorType>(argument.getType());
    for (const Datum &datum : inputs)
      for (auto [i, tensor] : llvm::enumerate(datum.tensors))
        if (RankedTensorType type = types.lookup(datum.nameOf(i)))
          data[datum.nameOf(i)] = toTensor(*read(tensor), type);
    return data;
  }

  CaseResult interpret(ModuleOp module) {
    auto step = module.lookupSymbol<StepOp>("predict");
    FailureOr<interp::Outcome> outcome = interp::runStep(step, {}, dataOf(step));
    if (failed(outcome))
      return {Verdict::Wrong, "cannot be interpreted: " + error};
    size_t expected = 0;
    for (const Datum &datum : outputs)
      for (auto [i, tensor] : llvm::enumerate(datum.tensors)) {
        std::string name = datum.nameOf(i);
        auto found = outcome->outputs.find(name);
        std::string difference = found == outcome->outputs.end()
                                     ? "is missing"
                                     : compare(found->second, isUnsigned(step, name), tensor, isRandom());
        if (!difference.empty())
          return {Verdict::Wrong, "output \"" + name + "\" " + difference};
        ++expected;
      }
    if (outcome->outputs.size() != expected)
      return {Verdict::Wrong, llvm::formatv("{0} outputs, expected {1}", outcome->outputs.size(), expected).str()};
    std::string given;
    for (const auto &[name, value] : options.known)
      given += (given.empty() ? "" : ", ") + name;
    return {Verdict::Passed, given};
  }

  fs::path folder;
  bool gradients;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::optional<onnx::Model> model;
  Data inputs, outputs;
  ImportOptions options;
  std::string error;
  bool located = false;
};

} // namespace

CaseResult runCase(const std::string &folder, bool gradients) { return NodeCase(folder, gradients).run(); }

CaseResult runCaseApart(const std::string &folder, unsigned seconds, bool gradients) {
  int ends[2];
  if (::pipe(ends))
    return {Verdict::Crashed, "no pipe"};
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(seconds);
    CaseResult result = runCase(folder, gradients);
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

const char *const scopeRule = "- inputs and outputs are tensors of f64, f32, f16, bf16, integers of 8 to 64 "
                              "bits with or without a sign, or bool;\n"
                              "- no operator of quantized numbers but DequantizeLinear;\n"
                              "- no operator whose output shape depends on the elements of its inputs: "
                              "Compress, ImageDecoder, NonMaxSuppression,\n"
                              "  NonZero, Unique. Shapes, axes and the like that are inputs are given when "
                              "compiling; how many cases needed it is\n"
                              "  counted too;\n"
                              "- of every domain and opset that has a node test.";

namespace {

std::string outsideOf(const onnx::Model &model, const std::string &op) {
  StringRef refusal = refusalOf(op);
  if (op == "Compress" || op == "ImageDecoder" || refusal.contains("depends on data"))
    return "data-dependent shape";
  if (refusal.contains("quantized"))
    return "quantized";
  for (const auto *infos : {&model.inputs, &model.outputs})
    for (const onnx::ValueInfo &info : *infos) {
      if (!info.isTensor)
        return info.isOptional ? "optional" : info.isSequence ? "sequence" : "no tensor";
      if (onnx::byteSize(info.type) == 0)
        return info.type == onnx::ElementType::String ? "string" : "narrow type";
    }
  return "";
}

} // namespace

CaseScope scopeOf(const std::string &folder) {
  fs::path path = folder, original = path.parent_path() /
                                     path.filename().string().substr(0, path.filename().string().find("_expanded"));
  std::string reason;
  auto read = [&](const fs::path &from) { return onnx::readModel((from / "model.onnx").string(), reason); };
  std::optional<onnx::Model> model = read(path), whole = fs::exists(original) ? read(original) : std::nullopt;
  if (!model || model->nodes.empty())
    return {"", ""};
  std::string op = (whole && !whole->nodes.empty() ? whole : model)->nodes.front().opType;
  return {op, outsideOf(*model, op)};
}

} // namespace par::test
