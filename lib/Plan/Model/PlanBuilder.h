// A checked tree to typed values.
#pragma once

#include "par/Plan/Language/Schema.h"
#include "par/Plan/Model/Optimizers.h"
#include "par/Plan/Model/Plan.h"

namespace par {

// Values of a scalar or list of a checked tree.
int64_t toInt(const PlanNode &node);
double toNumber(const PlanNode &node);
PlanAxes toAxes(const PlanNode &node);

/// The key `mesh_order`, of a plan whose mesh is built.
PlanMeshOrder buildMeshOrder(const PlanNode &root, const Plan &plan, PlanErrors &errors);

/// The key `recompute`.
PlanRecompute buildRecompute(const PlanNode &root, PlanErrors &errors);

/// Reads the tree by path; an absent key gets the given default.
class PlanReader {
public:
  PlanReader(const PlanNode &root, PlanErrors &errors) : root(root), errors(errors) {}

  WithOrigin<int64_t> integer(llvm::StringRef path, int64_t fallback) const {
    const PlanNode *node = root.at(path);
    return node ? WithOrigin<int64_t>{toInt(*node), node->origin} : WithOrigin<int64_t>{fallback, Origin()};
  }
  WithOrigin<double> number(llvm::StringRef path, double fallback) const {
    const PlanNode *node = root.at(path);
    return node ? WithOrigin<double>{toNumber(*node), node->origin} : WithOrigin<double>{fallback, Origin()};
  }
  WithOrigin<bool> boolean(llvm::StringRef path, bool fallback) const {
    const PlanNode *node = root.at(path);
    return node ? WithOrigin<bool>{node->text == "true", node->origin} : WithOrigin<bool>{fallback, Origin()};
  }
  WithOrigin<std::string> word(llvm::StringRef path, llvm::StringRef fallback) const {
    const PlanNode *node = root.at(path);
    return node ? WithOrigin<std::string>{node->text, node->origin} : WithOrigin<std::string>{fallback.str(), Origin()};
  }
  WithOrigin<std::optional<int64_t>> optionalInteger(llvm::StringRef path) const {
    const PlanNode *node = root.at(path);
    if (!node)
      return {std::nullopt, Origin()};
    return {toInt(*node), node->origin};
  }
  /// A key that is a word or a mapping with that word under `inner`.
  const PlanNode *shorthand(llvm::StringRef path, llvm::StringRef inner) const {
    const PlanNode *node = root.at(path);
    if (node && node->kind == PlanNode::Map)
      return node->at(inner);
    return node;
  }

  const PlanNode &root;
  PlanErrors &errors;
};

/// The key `train.optimizer.lr`.
PlanLearningRate buildRate(const PlanReader &reader);

/// The keys of a whole plan.
class PlanBuilder : PlanReader {
public:
  using PlanReader::PlanReader;
  Plan run();

private:
  PatternWithOrigin pattern(llvm::StringRef text, const Origin &origin) {
    std::string why;
    // The tree was checked: a pattern that does not parse cannot come here.
    return {NamePattern::parse(text, why).value_or(NamePattern()), origin};
  }
  std::vector<PatternWithOrigin> patterns(const PlanNode &list) {
    std::vector<PatternWithOrigin> result;
    for (const PlanNode &item : list.items)
      result.push_back(pattern(item.text, item.origin));
    return result;
  }
  void collectives(PlanCollectives &collectives, const WithOrigin<std::string> &device);
  void precision(PlanPrecision &precision);
  void target(PlanTarget &target);
  void mesh(Plan &plan);
  void stageMeshes(Plan &plan, const PlanNode &list);
  void dims(Plan &plan);
  void inputs(Plan &plan);
  void batch(Plan &plan);
  void train(PlanTrain &train, const Origin &origin);
  void clip(PlanTrain &train);
  PlanGroup group(const PlanEntry &entry);
  void loss(PlanLoss &loss);
  void optimizer(PlanOptimizer &optimizer);
  void averages(PlanTrain &train);
  void classes(PlanLoss &loss);
  void optimizerSetting(PlanOptimizer &optimizer, const OptimizerKind &kind, const OptimizerSetting &setting);
  WithOrigin<double> settingOf(const std::string &path, const PlanNode &node, const OptimizerKind &kind,
                               const OptimizerSetting &setting);
  void refuseOthersSettings(const OptimizerKind &kind);
  void shards(Plan &plan);
  void zero(Plan &plan);
  void offload(Plan &plan);
  void pipeline(Plan &plan);
  void table(PlanPipeline &pipeline, int64_t devices);
  void cuts(PlanPipeline &pipeline);
  void asynchronous(Plan &plan);
};

} // namespace par
