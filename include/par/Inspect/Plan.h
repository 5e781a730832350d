// A model and its plan in figures.
#pragma once

#include "par/Phases/Annotate/Passes.h"

namespace par {

struct ModelFacts {
  std::string name; ///< of the file
  size_t nodes = 0;
  int64_t parameters = 0, elements = 0; ///< trainable ones
  int64_t frozen = 0;                   ///< of them, by the plan or in the module
  int64_t unnamed = 0;                  ///< of them, under names of the exporter
  std::vector<std::string> ties;        ///< "lm_head.weight = wte.weight"
};
ModelFacts describeModel(const ModelPlan &model);

/// Training marks of the PyTorch module.
struct ModuleFacts {
  std::vector<std::string> frozen, unfrozen; ///< frozen in the module; of these the ones that train.only trains
  std::vector<std::string> notes;            ///< "wte.weight no gradient from lookups of row 0 (padding_idx)"
};
/// Empty for a plan that does not train.
ModuleFacts describeModule(const ModelPlan &model);

using AxisSizes = std::vector<std::pair<std::string, int64_t>>;

struct PlanFacts {
  int64_t ranks = 1;
  std::vector<AxisSizes> meshes; ///< one; or one a stage, where one without axes is one rank
  bool meshEachStage = false;
  int64_t stages = 1;
  std::string schedule;
  int64_t flushEvery = 1;
  int64_t microbatches = 1, microbatchSize = 1;
  std::vector<std::string> sampleDims; ///< of the first input: sizes, or symbols without a size
  int64_t replicas = 1;                ///< that microbatches are dealt to in turn
  bool trains = false;
  std::vector<std::string> optimizers; ///< of the plan and of its groups; empty without training
  std::string compute, states, accumulate, reduce;
  std::vector<std::string> masterTypes; ///< types in the file of trained parameters whose masters are f32
  std::string batchNorm;
  int64_t seed = 0;
};
PlanFacts describePlan(const ModelPlan &model);

/// Parameters that recipes leave replicated: matrices of more than a twentieth of all elements.
struct RecipeFacts {
  std::vector<std::string> recipes;
  double cutPercent = 0;          ///< elements of parameters that rules shard
  std::vector<std::string> whole; ///< `layers.*.attn.qkv.weight`, the most elements first
};
/// Nothing without recipes, and if they leave little replicated.
std::optional<RecipeFacts> describeRecipes(const ModelPlan &model);

/// A dim of parameters that rules shard into parts of which more than a tenth is padding.
struct PaddedDim {
  std::string name; ///< of parameters: `layers.*.attn.qkv.weight`
  int64_t dim = 0, size = 0, shards = 1, kept = 0;
};
std::vector<PaddedDim> findPaddedDims(const ModelPlan &model);

/// A pattern of the plan and the names that it matches.
struct PatternMatch {
  std::string origin, pattern; ///< "plan.yaml:4", "h.*.attn.out.weight"
  struct Kind {
    std::string kind; ///< "parameter", "module", "node", "input" or "output"
    std::vector<std::string> names;
  };
  std::vector<Kind> kinds; ///< that it matches any of
};
/// Key by key as the file has them; without rules of recipes that match nothing.
std::vector<PatternMatch> findMatches(const ModelPlan &model);

} // namespace par
