// Exported models train in the interpreter to PyTorch's float64 losses, from PyTorch's gradients.
#include "Session.h"

#include "par/Phases/Import/Import.h"
#include "par/Phases/Import/Passes.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace par;
using namespace par::test;

namespace {

std::string pathOf(llvm::StringRef model, llvm::StringRef file) {
  return (llvm::Twine(PAR_SOURCE_DIR) + "/test/Models/" + model + "/" + file).str();
}

std::string contentOf(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  EXPECT_TRUE(buffer) << path.str();
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// Elements of a tensor from little-endian f32 or i64.
Tensor decode(RankedTensorType type, llvm::StringRef bytes) {
  using namespace llvm::support::endian;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    if (isa<FloatType>(type.getElementType()))
      floats.push_back(llvm::bit_cast<float>(read32le(bytes.data() + 4 * i)));
    else
      ints.push_back(read64le(bytes.data() + 8 * i));
  return floats.empty() ? Tensor::ofInts(type, ints) : Tensor::ofFloats(type, floats);
}

/// The bytes of each tensor of a safetensors file.
std::map<std::string, std::string> readTensors(llvm::StringRef path) {
  std::string content = contentOf(path);
  uint64_t length = llvm::support::endian::read64le(content.data());
  auto header = llvm::json::parse(llvm::StringRef(content).substr(8, length));
  EXPECT_TRUE(bool(header));
  std::map<std::string, std::string> tensors;
  for (auto &[name, entry] : *header->getAsObject()) {
    if (name == "__metadata__")
      continue;
    auto &range = *entry.getAsObject()->getArray("data_offsets");
    int64_t begin = *range[0].getAsInteger();
    tensors[name.str()] = content.substr(8 + length + begin, *range[1].getAsInteger() - begin);
  }
  return tensors;
}

/// A model, its data and PyTorch's numbers.
class ModelRun {
public:
  ModelRun(std::string name, std::string file, const TrainOptions &options, bool decomposeBefore = false,
           bool decomposeAfter = false)
      : data(readTensors(pathOf(name, "data.safetensors"))) {
    std::string error;
    std::optional<onnx::Model> model = onnx::readModel(pathOf(name, file), error);
    EXPECT_TRUE(model) << error;
    ImportOptions import;
    import.train = true;
    module = importModel(*model, import, &session.context);
    EXPECT_TRUE(module);
    session.run(*module, [&](OpPassManager &manager) {
      buildImportPipeline(manager);
      if (decomposeBefore)
        manager.addPass(createDecomposeOpsPass());
      buildTrainPipeline(manager, options);
      if (decomposeAfter)
        manager.addPass(createDecomposeOpsPass());
    });
    for (auto variable : module->getOps<VariableOp>())
      if (auto source = variable.getSource())
        variables[variable.getSymName().str()] =
            decode(variable.getTensorType(),
                   llvm::StringRef(contentOf(pathOf(name, cast<StringAttr>(source->get("file")).getValue())))
                       .substr(cast<IntegerAttr>(source->get("offset")).getInt()));
  }

  /// Runs step `index` on its rows; the next step sees its writes.
  Outcome train(int64_t index) {
    auto step = module->lookupSymbol<StepOp>("train");
    Named inputs;
    for (auto [name, type] :
         llvm::zip_equal(step.getInputsAttr().getAsValueRange<StringAttr>(), step.getArgumentTypes())) {
      auto tensor = cast<RankedTensorType>(type);
      int64_t bytes = tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8;
      inputs[name.str()] = decode(tensor, llvm::StringRef(data.at(name.str())).substr(index * bytes, bytes));
    }
    Outcome outcome = evaluate(*module, "train", variables, inputs);
    for (auto &[name, value] : outcome.written)
      variables[name] = value;
    return outcome;
  }

  Session session;
  OwningOpRef<ModuleOp> module;
  Named variables;
  std::map<std::string, std::string> data;
};

double normOf(const Named &tensors) {
  double squares = 0;
  for (auto &[name, tensor] : tensors)
    for (double value : tensor.floats())
      squares += value * value;
  return std::sqrt(squares);
}

struct ModelCase {
  const char *name, *file, *optimizer;
};

class ModelTest : public ::testing::TestWithParam<ModelCase> {};

TEST_P(ModelTest, TrainsAsPyTorchDoes) {
  const ModelCase &model = GetParam();
  auto reference = llvm::json::parse(contentOf(pathOf(model.name, "reference.json")));
  ASSERT_TRUE(bool(reference));
  const llvm::json::Object &run = *reference->getAsObject()->getObject("runs")->getObject(model.optimizer);
  const llvm::json::Object &options = *run.getObject("options");
  TrainOptions wanted;
  wanted.kind = model.optimizer;
  wanted.lr = *options.getNumber("lr");
  if (std::optional<double> momentum = options.getNumber("momentum"); momentum && wanted.kind == "momentum")
    wanted.settings.emplace_back("momentum", *momentum);
  wanted.weightDecay = options.getNumber("weight_decay").value_or(0);
  if (auto *betas = options.getArray("betas")) {
    wanted.settings.emplace_back("beta1", *(*betas)[0].getAsNumber());
    wanted.settings.emplace_back("beta2", *(*betas)[1].getAsNumber());
  }
  ModelRun training(model.name, model.file, wanted);

  std::map<std::string, std::string> gradients = readTensors(pathOf(model.name, "grads.safetensors"));
  for (unsigned step = 0; step < 10; ++step) {
    Outcome outcome = training.train(step);
    double expected = *(*run.getArray("losses_f64"))[step].getAsNumber();
    EXPECT_NEAR(outcome.outputs.at("loss").floats()[0], expected, 2e-5) << "step " << step;
    if (step > 0)
      continue;
    EXPECT_EQ(outcome.accumulators.size(), gradients.size());
    for (auto &[name, gradient] : outcome.accumulators)
      expectClose(gradient, decode(gradient.getType(), gradients.at(name)), 1e-4, name);
  }
  const llvm::json::Object &unstable = *run.getObject("unstable_norms");
  for (auto &[name, norm] : *run.getObject("param_norms_f64")) {
    // The key part of this bias has no gradient in exact arithmetic, and adamw divides by its size.
    bool ofKeys = name.str().find("c_attn.bias") != std::string::npos && wanted.kind == "adamw";
    if (!unstable.get(name))
      EXPECT_NEAR(normOf({{name.str(), training.variables.at(name.str())}}) / *norm.getAsNumber(), 1,
                  ofKeys ? 1e-3 : 1e-5)
          << name.str();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ModelTest,
    ::testing::Values(ModelCase{"mlp", "model.onnx", "sgd"}, ModelCase{"mlp", "model.legacy.onnx", "momentum"},
                      ModelCase{"mlp", "model.onnx", "adamw"}, ModelCase{"gpt2", "model.onnx", "sgd"},
                      ModelCase{"gpt2", "model.onnx", "momentum"}, ModelCase{"gpt2", "model.onnx", "adamw"}),
    [](const auto &info) { return std::string(info.param.name) + std::to_string(info.index) + info.param.optimizer; });

// torch.nn.utils.clip_grad_norm_: the whole norm comes out, and every update takes clip / (norm + 1e-6) of
// its gradient.
TEST(ModelClipping, ScalesEveryGradientByTheWholeNorm) {
  TrainOptions options;
  options.lr = 1;
  options.clip = 1;
  ModelRun training("gpt2", "model.onnx", options);
  Named before = training.variables;
  Outcome outcome = training.train(0);
  double norm = normOf(outcome.accumulators);
  EXPECT_NEAR(norm, 1.478, 1e-3);
  EXPECT_NEAR(outcome.outputs.at("grad_norm").floats()[0], norm, 1e-9);
  for (auto &[name, gradient] : outcome.accumulators) {
    Tensor moved = before.at(name);
    for (int64_t i = 0; i < moved.getSize(); ++i)
      moved.mutableFloats()[i] -= gradient.floats()[i] / (norm + 1e-6);
    expectClose(outcome.written.at(name), moved, 1e-9, name);
  }
}

// torch.nn.utils.clip_grad_value_: every element by itself; the reported norm is that before clipping.
TEST(ModelClipping, BoundsEveryElement) {
  TrainOptions options;
  options.lr = 1;
  options.clip = 0.01;
  options.clipsValues = true;
  ModelRun training("gpt2", "model.onnx", options);
  Named before = training.variables;
  Outcome outcome = training.train(0);
  EXPECT_NEAR(outcome.outputs.at("grad_norm").floats()[0], normOf(outcome.accumulators), 1e-9);
  int64_t bounded = 0, free = 0;
  for (auto &[name, gradient] : outcome.accumulators) {
    Tensor moved = before.at(name);
    for (int64_t i = 0; i < moved.getSize(); ++i) {
      // The threshold is an f32.
      double most = static_cast<float>(0.01), element = gradient.floats()[i];
      moved.mutableFloats()[i] -= std::clamp(element, -most, most);
      ++(std::abs(element) > most ? bounded : free);
    }
    expectClose(outcome.written.at(name), moved, 1e-9, name);
  }
  EXPECT_GT(bounded, 100);
  EXPECT_GT(free, 100);
}

// A norm below the threshold changes nothing.
TEST(ModelClipping, LeavesSmallGradientsAlone) {
  TrainOptions options;
  options.lr = 1;
  ModelRun freely("mlp", "model.onnx", options);
  options.clip = 100;
  ModelRun clipped("mlp", "model.onnx", options);
  Outcome free = freely.train(0), bounded = clipped.train(0);
  for (auto &[name, value] : free.written)
    expectClose(bounded.written.at(name), value, 1e-12, name);
}

// Decomposing all composites before Train or after it changes nothing but the rounding of f32 constants.
TEST(ModelDecomposition, GivesTheSameGradients) {
  TrainOptions options;
  ModelRun composites("gpt2", "model.onnx", options), before("gpt2", "model.onnx", options, true, false),
      after("gpt2", "model.onnx", options, false, true);
  Named whole = composites.train(0).accumulators, first = before.train(0).accumulators,
        last = after.train(0).accumulators;
  for (auto &[name, gradient] : whole) {
    expectClose(first.at(name), gradient, 1e-6, name + " decomposed before Train");
    expectClose(last.at(name), gradient, 1e-6, name + " decomposed after Train");
  }
}

} // namespace
