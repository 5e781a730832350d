//===- BuildTrain.cpp - the keys of train
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "PlanBuilder.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

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
  clip(train);
}

void PlanBuilder::clip(PlanTrain &train) {
  const PlanNode *norm = shorthand("train.clip", "norm"), *value = root.at("train.clip.value");
  if (norm && value)
    errors.error(value->origin, PlanMessage::clipTwice);
  if (const PlanNode *node = value ? value : norm; node && !node->isWord("none"))
    train.clip = {toNumber(*node), node->origin};
  train.clipsValues = {value != nullptr, train.clip.origin};
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
  loss.smoothing = number("train.loss.smoothing", 0);
  if (!(*loss.smoothing >= 0 && *loss.smoothing <= 1))
    errors.error(loss.smoothing.origin, PlanMessage::wrongValue, "train.loss.smoothing", "a number from 0 to 1",
                 root.at("train.loss.smoothing")->text);
  const PlanNode *node = root.at("train.loss");
  if (!node)
    return;
  if (node->kind == PlanNode::Map) {
    loss.kind = word("train.loss.kind", "cross_entropy");
    if (*loss.smoothing != 0 && *loss.kind != "cross_entropy")
      errors.error(loss.smoothing.origin, PlanMessage::smoothingOfOther, *loss.kind);
    return;
  }
  // One word is a kind of loss, any other text the name of a scalar output.
  bool kind = node->text == "cross_entropy" || node->text == "bce" || node->text == "mse" || node->text == "l1";
  (kind ? loss.kind : loss.output) = {node->text, node->origin};
}

void PlanBuilder::optimizer(PlanOptimizer &optimizer) {
  const PlanNode *word = shorthand("train.optimizer", "kind");
  optimizer.kind = {word ? word->text : "adamw", word ? word->origin : Origin()};
  const PlanNode *peak = shorthand("train.optimizer.lr", "peak");
  optimizer.lr.peak = {peak ? toNumber(*peak) : 1e-3, peak ? peak->origin : Origin()};
  optimizer.lr.warmup = integer("train.optimizer.lr.warmup", 0);
  optimizer.lr.decay = this->word("train.optimizer.lr.decay", "constant");
  optimizer.lr.steps = integer("train.optimizer.lr.steps", 0);
  optimizer.lr.floor = number("train.optimizer.lr.floor", 0);
  bool ends = *optimizer.lr.decay == "cosine" || *optimizer.lr.decay == "linear";
  if (ends && *optimizer.lr.steps <= *optimizer.lr.warmup)
    errors.error(optimizer.lr.decay.origin, PlanMessage::lrSteps, *optimizer.lr.decay,
                 *optimizer.lr.steps ? std::to_string(*optimizer.lr.steps) : "none");
  const OptimizerKind *kind = findOptimizerKind(*optimizer.kind);
  // The tree was checked: the schema's words are those of the table.
  if (!kind)
    return;
  optimizer.weightDecay = number("train.optimizer.weight_decay", kind->weightDecay);
  for (const OptimizerSetting &setting : kind->settings)
    optimizerSetting(optimizer, *kind, setting);
  refuseOthersSettings(*kind);
}

/// What the plan says of one setting, or its default.
void PlanBuilder::optimizerSetting(PlanOptimizer &optimizer, const OptimizerKind &kind,
                                   const OptimizerSetting &setting) {
  std::string path = std::string("train.optimizer.") + setting.key;
  if (setting.flag) {
    optimizer.*setting.flag = boolean(path, setting.value != 0);
    return;
  }
  Said<double> &said = optimizer.*setting.number;
  const PlanNode *node = root.at(path);
  auto take = [&](const PlanNode &from) {
    said = {toNumber(from), from.origin};
    if (!(*said >= setting.least && *said <= setting.most))
      errors.error(from.origin, PlanMessage::wrongValue, path, setting.range, from.text);
  };
  if (!node || node->kind != PlanNode::List) {
    said = {setting.value, Origin()};
    if (node)
      take(*node);
    return;
  }
  auto isOfKey = [&](const OptimizerSetting &other) { return StringRef(other.key) == setting.key; };
  size_t many = llvm::count_if(kind.settings, isOfKey);
  size_t place = &setting - llvm::find_if(kind.settings, isOfKey);
  said = {setting.value, node->origin};
  if (node->items.size() == many)
    take(node->items[place]);
  else if (place == 0) // once
    errors.error(node->origin, PlanMessage::wrongValue, path,
                 many == 2 ? "two numbers" : std::to_string(many) + " numbers",
                 std::to_string(node->items.size()));
}

/// Errors for the settings of other optimizers.
void PlanBuilder::refuseOthersSettings(const OptimizerKind &kind) {
  llvm::MapVector<llvm::StringRef, std::vector<std::string>> owners; // of each key
  for (const OptimizerKind &other : getOptimizerKinds())
    for (const OptimizerSetting &setting : other.settings)
      if (auto &names = owners[setting.key]; names.empty() || names.back() != other.name)
        names.push_back(other.name);
  const PlanNode *map = root.at("train.optimizer");
  for (auto &[key, names] : owners)
    if (const PlanEntry *entry = map ? map->find(key) : nullptr; entry && !llvm::is_contained(names, kind.name))
      errors.error(entry->origin, PlanMessage::optionOfOther, key, llvm::join(names, " and "), kind.name);
}

} // namespace par
