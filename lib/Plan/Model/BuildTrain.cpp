// The keys of train.
#include "PlanBuilder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

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
  if (const PlanNode *node = root.at("train.tie"))
    for (const PlanEntry &entry : node->entries)
      train.tie.push_back({pattern(entry.key, entry.origin), pattern(entry.value.text, entry.value.origin)});
  if (const PlanNode *node = root.at("train.init"))
    for (const PlanEntry &entry : node->entries)
      train.init.push_back({pattern(entry.key, entry.origin), {entry.value.text, entry.value.origin}});
  if (const PlanNode *node = root.at("train.groups"))
    for (const PlanEntry &entry : node->entries)
      train.groups.push_back(group(entry));
  clip(train);
  averages(train);
  if (const PlanNode *node = root.at("train.on_nan"))
    train.skipsNan = {node->isWord("skip"), node->origin};
}

void PlanBuilder::averages(PlanTrain &train) {
  const PlanNode *node = root.at("train.ema"), *decay = shorthand("train.ema", "decay");
  if (!node || node->isWord("none"))
    return;
  train.averages.emplace();
  train.averages->decay = {decay ? toNumber(*decay) : 0.999, decay ? decay->origin : node->origin};
  if (double share = *train.averages->decay; !(share >= 0 && share <= 1))
    errors.error(train.averages->decay.origin, PlanMessage::wrongValue, "train.ema.decay", "a number from 0 to 1",
                 decay->text);
  train.averages->warmup = boolean("train.ema.warmup", false);
  train.averages->evaluated = boolean("train.ema.eval", false);
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
  PlanGroup group;
  group.name = pattern(entry.key, entry.origin);
  auto read = [&](StringRef key, std::optional<WithOrigin<double>> &into) {
    if (const PlanEntry *inner = entry.value.find(key))
      into = WithOrigin<double>{toNumber(inner->value), inner->value.origin};
  };
  read("lr", group.lr);
  read("lr_scale", group.lrScale);
  read("weight_decay", group.weightDecay);
  if (const PlanEntry *inner = entry.value.find("sparse"))
    group.sparse = WithOrigin<bool>{inner->value.text == "true", inner->value.origin};
  if (const PlanEntry *inner = entry.value.find("kind"))
    group.kind = WithOrigin<std::string>{inner->value.text, inner->value.origin};
  llvm::StringMap<const OptimizerKind *> owners; // the first one that has the key
  for (const OptimizerKind &kind : getOptimizerKinds())
    for (const OptimizerSetting &setting : kind.settings)
      if (const PlanEntry *inner = entry.value.find(setting.key);
          inner && owners.try_emplace(setting.key, &kind).first->second == &kind) {
        std::string path = "train.groups." + entry.key + "." + setting.key;
        group.settings.push_back({&setting, settingOf(path, inner->value, kind, setting)});
      }
  return group;
}

/// The options of cross_entropy.
void PlanBuilder::classes(PlanLoss &loss) {
  loss.soft = boolean("train.loss.soft", false);
  if (const PlanNode *weights = root.at("train.loss.class_weights")) {
    loss.weights.origin = weights->origin;
    for (const PlanNode &weight : weights->items)
      if (loss.weights.value.emplace_back(toNumber(weight)) < 0)
        errors.error(weight.origin, PlanMessage::wrongValue, "train.loss.class_weights", "numbers from 0", weight.text);
  }
  if (*loss.kind == "cross_entropy") {
    if (*loss.soft && loss.ignore.given())
      errors.error(loss.ignore.origin, PlanMessage::ignoreOfShares);
    return;
  }
  if (*loss.smoothing != 0)
    errors.error(loss.smoothing.origin, PlanMessage::lossOptionOfOther, "smoothing", *loss.kind);
  if (!loss.weights->empty())
    errors.error(loss.weights.origin, PlanMessage::lossOptionOfOther, "class_weights", *loss.kind);
  if (*loss.soft)
    errors.error(loss.soft.origin, PlanMessage::lossOptionOfOther, "soft", *loss.kind);
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
    return classes(loss);
  }
  // One word is a kind of loss, any other text the name of a scalar output.
  bool kind = node->text == "cross_entropy" || node->text == "bce" || node->text == "mse" || node->text == "l1";
  (kind ? loss.kind : loss.output) = {node->text, node->origin};
}

void PlanBuilder::optimizer(PlanOptimizer &optimizer) {
  const PlanNode *word = shorthand("train.optimizer", "kind");
  optimizer.kind = {word ? word->text : "adamw", word ? word->origin : Origin()};
  optimizer.lr = buildRate(*this);
  const OptimizerKind *kind = findOptimizerKind(*optimizer.kind);
  optimizer.weightDecay = number("train.optimizer.weight_decay", kind ? kind->weightDecay : 0);
  // The tree was checked, so any other word is an op's of a plugin.
  if (!kind)
    return;
  for (const OptimizerSetting &setting : kind->settings)
    optimizerSetting(optimizer, *kind, setting);
  refuseOthersSettings(*kind);
}

/// Sets one setting to the plan's value, or to its default.
void PlanBuilder::optimizerSetting(PlanOptimizer &optimizer, const OptimizerKind &kind,
                                   const OptimizerSetting &setting) {
  std::string path = std::string("train.optimizer.") + setting.key;
  const PlanNode *node = root.at(path);
  WithOrigin<double> said = node ? settingOf(path, *node, kind, setting) : WithOrigin<double>{setting.value, Origin()};
  if (setting.flag)
    optimizer.*setting.flag = {*said != 0, said.origin};
  else
    optimizer.*setting.number = said;
}

/// The value of one setting in the node at `path`: a scalar, or its element of a list.
WithOrigin<double> PlanBuilder::settingOf(const std::string &path, const PlanNode &node, const OptimizerKind &kind,
                                          const OptimizerSetting &setting) {
  if (setting.flag)
    return {node.text == "true" ? 1.0 : 0.0, node.origin};
  const PlanNode *own = &node;
  if (node.kind == PlanNode::List) {
    auto isOfKey = [&](const OptimizerSetting &other) { return StringRef(other.key) == setting.key; };
    size_t many = llvm::count_if(kind.settings, isOfKey);
    size_t place = &setting - llvm::find_if(kind.settings, isOfKey);
    if (node.items.size() != many) {
      if (place == 0) // once
        errors.error(node.origin, PlanMessage::wrongValue, path,
                     many == 2 ? "two numbers" : std::to_string(many) + " numbers", std::to_string(node.items.size()));
      return {setting.value, node.origin};
    }
    own = &node.items[place];
  }
  WithOrigin<double> said{toNumber(*own), own->origin};
  if (!(*said >= setting.least && *said <= setting.most))
    errors.error(own->origin, PlanMessage::wrongValue, path, setting.range, own->text);
  return said;
}

/// Errors for the settings of other optimizers.
void PlanBuilder::refuseOthersSettings(const OptimizerKind &kind) {
  const PlanNode *map = root.at("train.optimizer");
  llvm::StringSet<> seen;
  for (const OptimizerKind &other : getOptimizerKinds())
    for (const OptimizerSetting &setting : other.settings) {
      auto isOfKey = [&](const OptimizerSetting &own) { return StringRef(own.key) == setting.key; };
      const PlanEntry *entry = map ? map->find(setting.key) : nullptr;
      if (entry && !llvm::any_of(kind.settings, isOfKey) && seen.insert(setting.key).second)
        errors.error(entry->origin, PlanMessage::optionOfOther, setting.key, ownersOfSetting(setting.key), kind.name,
                     other.name);
    }
}

} // namespace par
