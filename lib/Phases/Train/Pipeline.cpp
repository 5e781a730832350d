// The order of Train's passes and their options.
#include "par/Phases/Train/Passes.h"

using namespace mlir;

namespace par {

void buildPrecisionPipeline(OpPassManager &manager, const TrainOptions &options) {
  manager.addPass(createSafeSoftmaxPass());
  if (options.compute != "f32") {
    MixPrecisionPassOptions mix;
    mix.compute = options.compute;
    mix.keep.assign(options.keep.begin(), options.keep.end());
    manager.addPass(createMixPrecisionPass(mix));
  }
  if (options.fusesAttention)
    manager.addPass(createFuseAttentionPass({options.device}));
}

void buildTrainPipeline(OpPassManager &manager, const TrainOptions &options) {
  AddOptimizerPassOptions optimizer{options.kind, options.lr, {}, options.weightDecay, {}, {}, {}, {}, options.states};
  auto named = [](StringRef name, double value) { return llvm::formatv("{0}={1:e17}", name, value).str(); };
  for (auto &[name, value] : options.settings)
    optimizer.settings.push_back(named(name, value));
  for (const TrainOptions::Parameter &parameter : options.parameters) {
    if (parameter.lrScale)
      optimizer.lrScales.push_back(named(parameter.name, *parameter.lrScale));
    if (parameter.weightDecay)
      optimizer.decays.push_back(named(parameter.name, *parameter.weightDecay));
    if (!parameter.kind.empty())
      optimizer.kinds.push_back(parameter.name + "=" + parameter.kind);
    for (auto &[attribute, value] : parameter.settings)
      optimizer.ownSettings.push_back(named(parameter.name + ":" + attribute, value));
  }
  ClipGradientsPassOptions clip;
  (options.clipsValues ? clip.value : clip.clip) = options.clip.value_or(0);
  clip.norm = options.norm || options.skipsNan;
  clip.loss = options.skipsNan;
  if (options.widens)
    manager.addPass(createWidenMastersPass());
  buildPrecisionPipeline(manager, options);
  manager.addPass(createDifferentiatePass());
  manager.addPass(createAdvanceCountersPass());
  if (options.compute != "f32" || options.widens)
    manager.addPass(createWidenSumsPass());
  SparseGradientsPassOptions sparse;
  for (const TrainOptions::Parameter &parameter : options.parameters)
    if (parameter.sparse)
      sparse.tables.push_back(parameter.name);
  if (!sparse.tables.empty())
    manager.addPass(createSparseGradientsPass(sparse));
  if (options.rounds)
    manager.addPass(createRoundParametersPass({*options.rounds}));
  bool scales = options.lossScale > 0;
  manager.addPass(createAddOptimizerPass(optimizer));
  if (scales)
    manager.addPass(createScaleLossPass({options.lossScale}));
  manager.addPass(createClipGradientsPass(clip));
  if (options.averageDecay)
    manager.addPass(createAverageWeightsPass({*options.averageDecay, options.averageWarmup, options.averageEvaluated}));
  if (scales || options.skipsNan)
    manager.addPass(createSkipOverflowPass({options.lossScaleGrowth, options.skipsNan}));
  manager.addPass(createVerifyTrainPass());
}

namespace {
struct TrainSettings : PassPipelineOptions<TrainSettings> {
  Option<std::string> optimizer{*this, "optimizer", llvm::cl::desc("the kind of update"), llvm::cl::init("sgd")};
  Option<double> lr{*this, "lr", llvm::cl::desc("value of @lr until the host sets it"), llvm::cl::init(0.001)};
  Option<std::string> compute{*this, "compute", llvm::cl::desc("f32, bf16 or fp16: of matmuls and activations"),
                              llvm::cl::init("f32")};
  Option<double> clip{*this, "clip", llvm::cl::desc("largest norm of all gradients together; 0: none"),
                      llvm::cl::init(0)};
  Option<double> lossScale{*this, "loss-scale", llvm::cl::desc("factor on the loss before the first step; 0: none"),
                           llvm::cl::init(0)};
  Option<double> average{*this, "average", llvm::cl::desc("share of averages that a step keeps; 0: no averages"),
                         llvm::cl::init(0)};
  Option<bool> skipsNan{*this, "skips-nan", llvm::cl::desc("a step with NaN updates nothing"), llvm::cl::init(false)};
  Option<std::string> device{*this, "device", llvm::cl::desc("cpu or cuda"), llvm::cl::init("cpu")};
};
} // namespace

void registerTrainPipeline() {
  PassPipelineRegistration<TrainSettings>("par-train", "forward into forward, backward and update",
                                          [](OpPassManager &manager, const TrainSettings &settings) {
                                            TrainOptions options;
                                            options.kind = settings.optimizer;
                                            options.lr = settings.lr;
                                            options.compute = settings.compute;
                                            if (settings.clip > 0)
                                              options.clip = settings.clip;
                                            options.lossScale = settings.lossScale;
                                            if (settings.average > 0)
                                              options.averageDecay = settings.average;
                                            options.skipsNan = settings.skipsNan;
                                            options.device = settings.device;
                                            buildTrainPipeline(manager, options);
                                          });
}

} // namespace par
