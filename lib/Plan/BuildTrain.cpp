//===- BuildTrain.cpp - the keys of train
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "PlanBuilder.h"

using namespace llvm;

namespace par {

void PlanBuilder::train(PlanTrain &train, const Origin &origin) {
  train.origin = origin;
  loss(train.loss);
  optimizer(train.optimizer);
  if (const PlanNode *node = root.at("train.freeze"))
    train.freeze = patterns(*node);
  if (const PlanNode *node = root.at("train.only")) {
    train.only = patterns(*node);
    if (!train.freeze.empty())
      errors.error(node->origin, PlanMessage::freezeAndOnly);
  }
  train.lost = word("train.lost", "refuse");
  if (const PlanNode *node = root.at("train.init"))
    for (const PlanEntry &entry : node->entries)
      train.init.push_back({pattern(entry.key, entry.origin), {entry.value.text, entry.value.origin}});
  if (const PlanNode *node = root.at("train.groups"))
    for (const PlanEntry &entry : node->entries)
      train.groups.push_back(group(entry));
  if (const PlanNode *node = shorthand("train.clip", "norm"); node && !node->isWord("none"))
    train.clip = {toNumber(*node), node->origin};
}

PlanGroup PlanBuilder::group(const PlanEntry &entry) {
  PlanGroup group{pattern(entry.key, entry.origin), std::nullopt, std::nullopt, std::nullopt};
  auto read = [&](StringRef key, std::optional<Said<double>> &into) {
    if (const PlanEntry *inner = entry.value.find(key))
      into = Said<double>{toNumber(inner->value), inner->value.origin};
  };
  read("lr", group.lr);
  read("lr_scale", group.lrScale);
  read("weight_decay", group.weightDecay);
  return group;
}

void PlanBuilder::loss(PlanLoss &loss) {
  loss.labels = word("train.loss.labels", "labels");
  loss.output = word("train.loss.output", "");
  loss.ignore = integer("train.loss.ignore", -100);
  loss.shift = integer("train.loss.shift", 0);
  const PlanNode *node = root.at("train.loss");
  if (!node)
    return;
  if (node->kind == PlanNode::Map) {
    loss.kind = word("train.loss.kind", "cross_entropy");
    return;
  }
  // One word is a kind of loss, any other text the name of a scalar output.
  bool kind = node->text == "cross_entropy" || node->text == "mse" || node->text == "l1";
  (kind ? loss.kind : loss.output) = {node->text, node->origin};
}

void PlanBuilder::optimizer(PlanOptimizer &optimizer) {
  const PlanNode *kind = shorthand("train.optimizer", "kind");
  optimizer.kind = {kind ? kind->text : "adamw", kind ? kind->origin : Origin()};
  bool adamw = *optimizer.kind == "adamw";
  const PlanNode *peak = shorthand("train.optimizer.lr", "peak");
  optimizer.lr.peak = {peak ? toNumber(*peak) : 1e-3, peak ? peak->origin : Origin()};
  optimizer.lr.warmup = integer("train.optimizer.lr.warmup", 0);
  optimizer.lr.decay = word("train.optimizer.lr.decay", "constant");
  optimizer.lr.steps = integer("train.optimizer.lr.steps", 0);
  optimizer.lr.floor = number("train.optimizer.lr.floor", 0);
  if (*optimizer.lr.decay == "cosine" && *optimizer.lr.steps <= *optimizer.lr.warmup)
    errors.error(optimizer.lr.decay.origin, PlanMessage::lrSteps);
  optimizer.momentum = number("train.optimizer.momentum", 0.9);
  optimizer.nesterov = boolean("train.optimizer.nesterov", false);
  optimizer.eps = number("train.optimizer.eps", 1e-8);
  optimizer.weightDecay = number("train.optimizer.weight_decay", adamw ? 0.01 : 0);
  optimizer.beta1 = {0.9, Origin()};
  optimizer.beta2 = {0.999, Origin()};
  if (const PlanNode *betas = root.at("train.optimizer.betas")) {
    if (betas->items.size() != 2)
      errors.error(betas->origin, PlanMessage::wrongValue, "train.optimizer.betas", "two numbers",
                   std::to_string(betas->items.size()));
    optimizer.beta1 = {toNumber(betas->items.front()), betas->items.front().origin};
    optimizer.beta2 = {toNumber(betas->items.back()), betas->items.back().origin};
  }
  static constexpr std::pair<const char *, const char *> owners[] = {
      {"momentum", "momentum"}, {"nesterov", "momentum"}, {"betas", "adamw"}, {"eps", "adamw"}};
  const PlanNode *map = root.at("train.optimizer");
  for (auto [option, owner] : owners)
    if (const PlanEntry *entry = map ? map->find(option) : nullptr; entry && *optimizer.kind != owner)
      errors.error(entry->origin, PlanMessage::optionOfOther, option, owner, *optimizer.kind);
}

} // namespace par
